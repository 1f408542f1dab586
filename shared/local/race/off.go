//go:build !race

package race

// On reports whether the race detector runs.
const On = false
