//go:build unix

package storetest

import (
	"syscall"
	"time"
)

// CPU returns the time that this process has had of the processor: others may
// be busy on it too.
func CPU() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
