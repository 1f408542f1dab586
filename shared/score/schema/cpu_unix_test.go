//go:build unix

package schema_test

import (
	"syscall"
	"time"
)

// cpu returns the processor time of this process, because other processes may
// use the processor too.
func cpu() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
