package relocation_test

import (
	"testing"

	"github.com/affinityengine/affinity/shared/affinity"
	"github.com/affinityengine/affinity/shared/config"
)

// reach runs tasks until the move is in a phase.
func (w *world) reach(p config.MovePhase) {
	w.t.Helper()
	for w.app().Move.Phase != p {
		if !w.step() {
			w.t.Fatalf("no task leads to phase %s: %+v", p, w.app().Move)
		}
	}
}

// Nobody knows a user, in no phase of a move, and a ranking for them is that of a user without events.
func TestRankingOfAnUnknownUser(t *testing.T) {
	w := newWorld(t, 0)
	w.populate(2)
	for w.start("us"); len(w.tasks) > 0; w.step() {
		got, err := w.engine.ComputeRanking(ctx, w.app(), "nobody", affinity.Compile(w.app().Strategy))
		w.must(err)
		if got.Known || len(got.Affinities) > 0 {
			t.Errorf("phase %s: %+v", w.app().Move.Phase, got)
		}
	}
}
