package profile_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/store"
)

// TestModelOfResidents is TestModelOfMoves with an app whose user has a region of their own, and moves from one to the
// other while processes are at work that remember where the user lived. It runs half as many histories.
func TestModelOfResidents(t *testing.T) {
	eu, euClient := storetest.NewWithClient(t, gates()...)
	us, usClient := storetest.NewDeployed(t, gates()...)
	var histories atomic.Int64
	must.Succeed(t, flag.Set("rapid.checks", fmt.Sprint((*campaign+1)/2)))
	rapid.Check(t, func(t *rapid.T) {
		w := newRegional(t, eu, us, euClient, usClient, fmt.Sprint("resident", histories.Add(1)))
		for range rapid.IntRange(0, 15).Draw(t, "steps before") {
			w.residentStep()
		}
		for _, mode := range []config.ResidencyMode{config.ResidencyPrepare, config.ResidencyOn} {
			w.settleAll()
			w.reside(mode)
			for range rapid.IntRange(0, 20).Draw(t, "steps of the mode") {
				w.residentStep()
			}
		}
		w.settleAll()
		for range rapid.IntRange(20, 100).Draw(t, "steps") {
			w.residentStep()
		}
		w.finishResident()
	})
}

// reside changes the mode of residency.
func (w *simulation) reside(mode config.ResidencyMode) {
	_, err := w.apps.SetResidency(ctx, w.appID, config.Residency{Mode: mode, Regions: []string{"eu", "us"}}, 0)
	must.Succeed(w.t, err)
	w.resident = true
	w.changed()
}

func (w *simulation) residentStep() {
	kinds := []string{"advance", "advance", "advance", "advance", "advance", "advance", "advance", "advance", "message", "message", "redeliver",
		"import", "abandon", "read", "rank", "stored", "fold", "round", "delete", "opt out", "opt in", "restore", "purge", "strategy", "minutes", "window", "marked", "live", "live", "clean"}
	app := w.known()
	switch kind := rapid.SampledFrom(kinds).Draw(w.t, "step"); kind {
	case "live":
		if app.Residency.Mode != config.ResidencyOn {
			return
		}
		e, region := w.process(), rapid.SampledFrom([]string{"eu", "us"}).Draw(w.t, "region")
		w.start("live in "+region, func(ctx context.Context) error {
			err := profile.ResidentsOf(e).Move(ctx, app, "u", region, endless)
			if t, ok := errors.AsType[interface {
				error
				Transient() bool
			}](err); ok && t.Transient() {
				return nil // what was left there is not removed yet
			}
			return err
		})
	case "clean":
		if w.resident {
			w.clean()
		}
	case "abandon":
		e := w.process()
		w.startOnEvents("abandon", e.Abandon)
	case "stored":
		e := w.process()
		w.start("stored", func(ctx context.Context) error {
			return e.ReadStored(ctx, app, []string{"u"}, func(string, []byte) error { return nil })
		})
	case "round", "fold":
		if app.Residency.On() {
			app = app.In(rapid.SampledFrom([]string{"eu", "us"}).Draw(w.t, "region"))
		}
		w.stepOf(kind, app)
	default:
		w.stepOf(kind, app)
	}
}

// clean waits until nobody acts on an earlier location, and cleans both regions.
func (w *simulation) clean() {
	w.settleAll()
	w.rememberers = nil
	w.clock.Add(config.TTL.Milliseconds() + 2*minute) // the clocks of processes differ
	for _, region := range []string{"eu", "us"} {
		e := w.process()
		w.start("clean "+region, func(ctx context.Context) error {
			_, err := profile.ResidentsOf(e).Clean(ctx, w.app(), "u", region, 0)
			return err
		})
	}
}

// finishResident ends all processes, and compares profiles with the log.
func (w *simulation) finishResident() {
	w.settleMessages()
	w.settleAll()
	w.exact("at the end")
	for range 3 { // the first may complete a move whose mover died
		w.clean()
		w.drain()
	}
	w.settleAll()
	w.check("clean")
	w.exact("clean")
	lives, err := profile.ResidentsOf(w.engine).Region(ctx, w.app(), "u")
	must.Succeed(w.t, err)
	w.checkOnlyIn(lives)
	for _, region := range []string{"eu", "us"} {
		_, err := w.engine.Recompute(ctx, w.app().In(region), store.Range{}, profile.RecomputeOptions{Maintain: true}, func(profile.Progress) error { return nil })
		must.Succeed(w.t, err)
	}
	w.exact("after a recompute")
	w.checkOnlyIn(lives)
}
