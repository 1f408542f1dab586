//go:build race

package rowstream

import "bytes"

// lend calls fn with the bytes of a message, and destroys them afterwards: under the
// race detector a test fails whose code keeps a row.
func lend(b []byte, fn func([]byte) error) error {
	lent := bytes.Clone(b)
	defer func() {
		for i := range lent {
			lent[i] = 0xAA
		}
	}()
	return fn(lent)
}
