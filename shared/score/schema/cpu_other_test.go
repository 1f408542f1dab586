//go:build !unix

package schema_test

import "time"

var begun = time.Now()

// cpu returns the real time on systems that do not report processor time.
func cpu() time.Duration { return time.Since(begun) }
