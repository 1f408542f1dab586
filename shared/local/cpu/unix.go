//go:build unix

package cpu

import (
	"syscall"
	"time"
)

// Time returns the processor time of this process, because other processes may use
// the processor too.
func Time() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
