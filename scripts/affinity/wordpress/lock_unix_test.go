//go:build unix

package wordpress

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A released lock is free although a process that is being started holds a copy of the
// descriptor.
func TestReleasedLockIsFree(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	file, err := os.OpenFile(state+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		t.Fatal(err)
	}
	if _, err := lock(state); err == nil {
		t.Error("two runs have the lock")
	}
	held, err := syscall.Dup(int(file.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(held)
	if err := release(file); err != nil {
		t.Fatal(err)
	}
	unlock, err := lock(state)
	if err != nil {
		t.Fatalf("after the release: %v", err)
	}
	if err := unlock(); err != nil {
		t.Error(err)
	}
}
