// Package race tells a test whether the race detector runs. Under it code is ten
// times slower, so that some tests do less of the same.
package race

// Or returns how much a test does: so much, or less under the race detector.
func Or[T any](usual, less T) T {
	if On {
		return less
	}
	return usual
}
