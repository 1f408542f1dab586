//go:build !unix

package measure

import "syscall"

// unprivileged changes nothing.
func unprivileged(string) (*syscall.SysProcAttr, error) { return nil, nil }
