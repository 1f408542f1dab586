// Package must ends a test whose step fails before the part that the test is about. It is a
// package of its own, without imports of this module, so that the tests of every package can use it.
//
// A test binary that links it collects garbage when the heap has grown to five times its live
// size, unless GOGC says otherwise: heaps of tests are small, and a fifth of the time of tests
// was the collector's.
package must

import (
	"io"
	"os"
	"runtime/debug"
	"testing"
)

func init() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
}

// Test is a testing.TB, or the test of a property.
type Test interface {
	Helper()
	Fatal(args ...any)
}

// Succeed ends the test if err is not nil.
func Succeed(t Test, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// CloseAtEnd closes c when the test ends. The test fails if c returns an error.
func CloseAtEnd(t testing.TB, c io.Closer) {
	t.Cleanup(func() {
		t.Helper()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}
