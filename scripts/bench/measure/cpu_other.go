//go:build !unix

package measure

import (
	"errors"
	"time"
)

func peakMemory() int64 { return 0 }

func cpuTime() (time.Duration, error) {
	return 0, errors.New("the processor time of a process cannot be read on this system")
}
