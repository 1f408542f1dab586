// Package cpu measures the processor time of benchmarks. It is a package of its own because the
// tests of the domain use it too, which reach no store.
package cpu
