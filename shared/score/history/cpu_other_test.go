//go:build !unix

package history_test

import "time"

var begun = time.Now()

// cpu returns the time itself, where that of the processor is not to be had.
func cpu() time.Duration { return time.Since(begun) }
