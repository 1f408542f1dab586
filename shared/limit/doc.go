// Package limit bounds how much clients may send. It keeps its counts in memory.
package limit
