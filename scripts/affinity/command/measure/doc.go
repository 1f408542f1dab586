// Package measure holds the commands that measure: load sends events at a rate, bench
// runs the benchmarks' program, and plan computes what an engine would need and cost.
// What they compute is in the packages load and plan. It keeps nothing.
package measure
