//go:build !unix

package cpu

import "time"

var begun = time.Now()

// Time returns the real time on systems that do not report processor time.
func Time() time.Duration { return time.Since(begun) }
