package profile_test

import (
	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/app/limit"
)

// setWindow gives the app a write window or takes it away. Processes learn of it at
// different times, so some refresh while others mark.
func (w *simulation) setWindow() {
	ms := 0
	if w.windows {
		ms = rapid.SampledFrom([]int{0, 2000, 2000}).Draw(w.t, "window")
	}
	if err := w.apps.SetLimits(ctx, w.appID, limit.Numbers{WriteWindowMs: ms}); err != nil {
		w.t.Fatal(err)
	}
}
