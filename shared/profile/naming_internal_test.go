package profile

import (
	"testing"

	"github.com/affinityengine/affinity/shared/store"
)

// The naming of a flight is read by all messages that share the flight: who joins it to another changes neither.
func TestNamingsAreShared(t *testing.T) {
	a, b := &store.LogEvent{User: "a"}, &store.LogEvent{User: "b"}
	flights := []naming{{a: true}, {b: false}}
	var found naming
	for _, f := range flights {
		found = found.with(f)
	}
	if len(found) != 2 || len(flights[0]) != 1 || len(flights[1]) != 1 {
		t.Errorf("%d events in both, %d and %d in the flights", len(found), len(flights[0]), len(flights[1]))
	}
}
