package gcloudtest_test

import (
	"net"
	"os"
	"testing"

	"github.com/affinityengine/affinity/shared/local/gcloudtest"
	"github.com/affinityengine/affinity/shared/local/must"
)

// starters are the emulators, by the variable that points at one.
var starters = map[string]func(testing.TB) string{
	"FIRESTORE_EMULATOR_HOST": gcloudtest.Firestore,
	"BIGTABLE_EMULATOR_HOST":  gcloudtest.Bigtable,
	"PUBSUB_EMULATOR_HOST":    gcloudtest.PubSub,
}

func TestEmulatorLivesAsLongAsItsTest(t *testing.T) {
	for variable, start := range starters {
		t.Run(variable, func(t *testing.T) {
			if os.Getenv(variable) != "" {
				t.Skipf("%s is set: none is started here", variable)
			}
			var addr string
			t.Run("while", func(t *testing.T) {
				addr = start(t)
				conn, err := net.Dial("tcp", addr)
				if err != nil {
					t.Fatalf("dial the emulator: %v", err)
				}
				conn.Close()
			})
			if addr == "" {
				t.Skip("no emulator was started; the line above says why")
			}
			if conn, err := net.Dial("tcp", addr); err == nil {
				conn.Close()
				t.Errorf("%s still accepts connections after its test", addr)
			}
		})
	}
}

func TestVariableWins(t *testing.T) {
	for variable, start := range starters {
		t.Run(variable, func(t *testing.T) {
			t.Setenv(variable, "127.0.0.1:1")
			if got := start(t); got != "127.0.0.1:1" {
				t.Errorf("got %q, want the address in %s", got, variable)
			}
		})
	}
}

func TestWithoutGcloud(t *testing.T) {
	for variable, start := range starters {
		t.Setenv(variable, "")
		t.Setenv(must.Emulators, "")
		t.Setenv("PATH", t.TempDir())
		t.Run(variable, func(t *testing.T) {
			t.Cleanup(func() {
				if !t.Skipped() {
					t.Error("the test was not skipped")
				}
			})
			start(t)
		})
	}
}
