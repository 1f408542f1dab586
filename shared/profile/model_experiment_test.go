package profile_test

import (
	"errors"
	"fmt"
	"time"

	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/fault"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/experiment"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// refusedIf checks that a change of the configuration was refused if it must be, and else made.
func (w *simulation) refusedIf(must bool, err error) {
	f, ok := errors.AsType[*fault.Error](err)
	if refused := ok && f.Kind == fault.Invalid; err != nil && !refused || refused != must {
		w.t.Fatalf("refused: %v, want %t", err, must)
	}
}

// changeExperiment starts an experiment between versions that the strategy had, or changes, stops or promotes what runs.
func (w *simulation) changeExperiment() {
	app, x := w.app(), config.ExperimentsOf(config.NewCached(w.apps, 0))
	now := time.UnixMilli(w.clock.Load())
	e, kind := app.Experiment, "start"
	if e.On() && !e.Ended(now) {
		kind = rapid.SampledFrom([]string{"change", "stop", "promote"}).Draw(w.t, "experiment")
	}
	switch kind {
	case "start":
		// The clocks of all processes are past the start: they differ by half a minute at most.
		e = experiment.Experiment{Name: fmt.Sprint("x", w.experiments), StartAt: now.Add(-45 * time.Second), Metric: "clicks",
			Arms: make([]experiment.Arm, 2)}
		w.experiments++
		for i := range e.Arms {
			version := rapid.Int64Range(1, app.StrategyVersion).Draw(w.t, "version")
			e.Arms[i] = experiment.Arm{Name: fmt.Sprint("arm", i), Strategy: version}
		}
		if rapid.IntRange(0, 3).Draw(w.t, "of versions that may score otherwise") > 0 {
			next := app.Strategy
			next.PersonalizationImpact = (next.PersonalizationImpact + 1) % 3
			_, _, err := w.apps.SetStrategy(ctx, w.appID, next)
			must.Succeed(w.t, err)
			e.Arms[0].Strategy, e.Arms[1].Strategy = app.StrategyVersion, app.StrategyVersion+1
		}
		fallthrough
	case "change":
		e.Arms = append([]experiment.Arm{}, e.Arms...)
		e.Arms[0].Weight = rapid.SampledFrom([]float64{0.1, 0.5, 0.9}).Draw(w.t, "weight")
		e.Arms[1].Weight = 1 - e.Arms[0].Weight
		e.Coverage = rapid.SampledFrom([]float64{0.5, 1, 1}).Draw(w.t, "coverage")
		_, _, err := x.Set(ctx, w.appID, e, now)
		w.refusedIf(!w.alike(app, e.Arms[0].Strategy) || !w.alike(app, e.Arms[1].Strategy), err)
	case "stop":
		_, _, err := x.Stop(ctx, w.appID, e.Name, now)
		must.Succeed(w.t, err)
	case "promote":
		promoted := e.Arms[rapid.IntRange(0, 1).Draw(w.t, "arm")]
		_, to, err := x.Promote(ctx, w.appID, e.Name, promoted.Name, now)
		must.Succeed(w.t, err)
		if to.ScoringVersion != app.ScoringVersion || !to.Strategy.Equal(w.version(promoted.Strategy)) {
			w.t.Fatalf("after the promotion of version %d: %+v", promoted.Strategy, to)
		}
	}
	w.changed()
}

func (w *simulation) version(n int64) strategy.Strategy {
	s, err := w.apps.StrategyVersion(ctx, w.appID, n)
	must.Succeed(w.t, err)
	return s
}

// alike reports whether a version scores as the active one does.
func (w *simulation) alike(app config.App, n int64) bool {
	return w.version(n).SameScoring(app.Strategy)
}

// arm returns the arm of the user, and their strategy, by the configuration alone.
func (w *simulation) arm(app config.App) (experiment.Assignment, strategy.Strategy) {
	if e := app.Experiment; e.On() && e.StoppedAt.IsZero() {
		if i, ok := e.Arm("u"); ok {
			return experiment.Assignment{Experiment: e.Name, Arm: e.Arms[i].Name}, w.version(e.Arms[i].Strategy)
		}
	}
	return experiment.Assignment{}, app.Strategy
}

// placed checks that a user who was read gets the strategy of their arm.
func (w *simulation) placed(when string, app config.App, got profile.Result) {
	in, of := w.arm(app)
	if got.Assigned != in || !got.App.Strategy.Equal(of) {
		w.t.Fatalf("%s: the user is in %+v and gets %+v, want %+v and %+v", when, got.Assigned, got.App.Strategy, in, of)
	}
}
