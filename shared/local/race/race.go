// Package race tells a test whether the race detector runs. Under it code is ten
// times slower, so that some tests do less of the same.
package race

import "testing"

// Or returns how much a test does: so much, or less under the race detector.
func Or[T any](usual, less T) T {
	if On {
		return less
	}
	return usual
}

// Skip skips a test under the race detector, with the reason why the test cannot show it
// anything: the test also runs without the detector.
func Skip(tb testing.TB, reason string) {
	if tb.Helper(); On {
		tb.Skip("not under the race detector: " + reason)
	}
}
