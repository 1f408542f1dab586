package main

import (
	"bytes"
	"fmt"
	"os"
	"testing"

	"github.com/affinityengine/affinity/scripts/bench/differ"
	"github.com/affinityengine/affinity/shared/local/race"
)

// TestEngineEqualsModel runs an episode each of three fixed seeds, at once: operations wait for the
// configuration to take effect, and engines start again after kills. The engine is this test binary,
// so nothing is built. `affinity bench differ` runs longer ones.
func TestEngineEqualsModel(t *testing.T) {
	if testing.Short() {
		t.Skip("-short kills no process")
	}
	t.Parallel()
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			err := differ.Run(t.Context(), &out, differ.Options{
				Engine: os.Args[0], Environment: []string{asTool + "=1"}, Seed: seed, Steps: 60,
				Memory: race.Or[int64](1, 4) * differ.DefaultMemory, // the race detector needs more
			})
			t.Log(out.String())
			if err != nil {
				t.Error("the engine differs from the model of package differ")
			}
		})
	}
}
