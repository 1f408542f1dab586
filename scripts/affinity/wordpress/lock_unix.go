//go:build unix

package wordpress

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// lock keeps a second run away from a state file until it is called. The lock ends
// with the process, however that ends. Its file stays: to remove it would let two
// runs hold locks of the same name.
func lock(path string) (unlock func() error, err error) {
	file, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the state: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = file.Close() // nothing was written
		return nil, fmt.Errorf("another sync with the state %s is under way (%w)", path, err)
	}
	return func() error { return release(file) }, nil
}

// release ends the lock of a file and closes it. To close it would not be enough: a process
// that another goroutine is starting has a copy of the descriptor until it executes its
// program, and the lock is held as long as one of them is open.
func release(file *os.File) error {
	return errors.Join(syscall.Flock(int(file.Fd()), syscall.LOCK_UN), file.Close())
}
