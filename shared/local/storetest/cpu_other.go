//go:build !unix

package storetest

import "time"

var begun = time.Now()

// CPU returns the time itself, where that of the processor is not to be had.
func CPU() time.Duration { return time.Since(begun) }
