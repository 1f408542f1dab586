package rowstream

import (
	"testing"

	"github.com/affinityengine/affinity/shared/local/race"
)

// Under the race detector nobody can use a message after its time.
func TestLentMessageIsDestroyed(t *testing.T) {
	var kept []byte
	if err := lend([]byte("row"), func(b []byte) error { kept = b; return nil }); err != nil {
		t.Fatal(err)
	}
	if intact := string(kept) == "row"; intact == race.On {
		t.Errorf("a message that was kept is %q, and the race detector runs: %v", kept, race.On)
	}
}
