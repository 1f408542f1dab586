package config

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/affinityengine/affinity/shared/app/documents"
	"github.com/affinityengine/affinity/shared/score/experiment"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// ArmRanking is what the strategy of an arm orders by. It scores as the active strategy does, so all users have one
// stored profile, whatever arm they are in.
type ArmRanking struct {
	Impact     int                          `json:"impact"`
	Ranking    *strategy.Ranking            `json:"ranking,omitempty"`
	Placements map[string]*strategy.Ranking `json:"placements,omitempty"`
}

// InArm returns the app with the strategy that the user of a unit gets, and the arm they are in: the app as it is, and
// none, if in none. StrategyVersion is that of the arm, and ScoringVersion, by which profiles are stored, stays. So no
// profile may be read under the app that comes back.
func (a App) InArm(unit string, now time.Time) (App, experiment.Assignment) {
	if !a.Experiment.Runs(now) {
		return a, experiment.Assignment{}
	}
	i, ok := a.Experiment.Arm(unit)
	if !ok {
		return a, experiment.Assignment{}
	}
	arm, by := a.Experiment.Arms[i], a.ArmRankings[i]
	a.StrategyVersion = arm.Strategy
	a.Strategy.PersonalizationImpact, a.Strategy.Ranking, a.Strategy.Placements = by.Impact, by.Ranking, by.Placements
	return a, experiment.Assignment{Experiment: a.Experiment.Name, Arm: arm.Name}
}

// compares reports whether an experiment of the app that has not ended has an arm of this version.
func (a App) compares(version int64, now time.Time) bool {
	return !a.Experiment.Ended(now) && slices.ContainsFunc(a.Experiment.Arms, func(arm experiment.Arm) bool {
		return arm.Strategy == version
	})
}

// maxLateStart is how long ago a start may be: clocks differ, and requests take their time.
const maxLateStart = time.Minute

// WithExperiment returns the app with an experiment that begins or changes, and reports whether that changes the app.
// strategyOf returns the strategies of its arms. Without a seed and a start it keeps those it had; a new one begins
// now, and its name is the seed. The error is of kind fault.Invalid, or that of strategyOf.
func (a App) WithExperiment(e experiment.Experiment, strategyOf func(version int64) (strategy.Strategy, error),
	now time.Time) (App, bool, error) {
	old := a.Experiment
	known := old.Name == e.Name
	if known {
		e.Seed, e.StartAt = cmp.Or(e.Seed, old.Seed), cmp.Or(e.StartAt, old.StartAt)
	}
	// Reads go by milliseconds: one of the same as the start is in it.
	e.Seed, e.StartAt = cmp.Or(e.Seed, e.Name), Stamp(cmp.Or(e.StartAt, now)).Truncate(time.Millisecond)
	e.EndAt = e.EndAt.UTC().Truncate(time.Millisecond)
	if err := e.Check(); err != nil {
		return a, false, err
	}
	switch {
	case known && old.Ended(now):
		return a, false, e.Refuse("it has ended: give the next one another name")
	case old.On() && !known && !old.Ended(now):
		return a, false, e.Refuse("%q has not ended, and an app has one experiment at a time: stop that first", old.Name)
	case !e.EndAt.IsZero() && !now.Before(e.EndAt):
		return a, false, e.Refuse("endAt %s is in the past", e.EndAt.Format(time.RFC3339))
	case !(known && e.StartAt.Equal(old.StartAt)) && now.Sub(e.StartAt) > maxLateStart:
		return a, false, e.Refuse("startAt %s is in the past: leave it out to begin now", e.StartAt.Format(time.RFC3339))
	case a.Holdout.On() && a.Holdout.Seed == e.Seed:
		return a, false, e.Refuse("the holdout of the app has the seed %q, and would take its users from the first arm: "+
			"choose another seed", e.Seed)
	}
	if known && old.Runs(now) { // its arms stay
		if err := e.CheckChange(old); err != nil {
			return a, false, err
		}
		a.Experiment = e
		return a, !reflect.DeepEqual(e, old), nil
	}
	rankings := make([]ArmRanking, len(e.Arms))
	for i, arm := range e.Arms {
		s, err := strategyOf(arm.Strategy)
		if errors.Is(err, ErrNotFound) {
			return a, false, e.Refuse("arm %q: strategy %d does not exist or is no longer kept", arm.Name, arm.Strategy)
		}
		if err != nil {
			return a, false, err
		}
		if why := a.unlike(s); why != "" {
			return a, false, e.Refuse("arm %q: strategy %d %s", arm.Name, arm.Strategy, why)
		}
		rankings[i] = ArmRanking{s.PersonalizationImpact, s.Ranking, s.Placements}
	}
	a.Experiment, a.ArmRankings = e, rankings
	return a, !reflect.DeepEqual(e, old), nil
}

// unlike returns why a strategy cannot be that of some users while the app has its active one; "": it can.
func (a App) unlike(s strategy.Strategy) string {
	switch {
	case !a.Strategy.SameScoring(s):
		return fmt.Sprintf("scores otherwise than version %d, which is active: arms must share "+
			"the scoring of the active strategy, and may differ in ranking, placements and personalizationImpact",
			a.StrategyVersion)
	case s.RankingOrDefault().Popularity.HalfLife != a.Strategy.RankingOrDefault().Popularity.HalfLife:
		return "has another ranking.popularity.halfLife than the active one: the statistics of an index have one for " +
			"all users"
	}
	return ""
}

// Experiments are the experiments of apps. They are read from the store, and changed through its cache.
type Experiments struct {
	cached *Cached
	store  *Store
}

// ExperimentsOf returns the experiments of a configuration.
func ExperimentsOf(c *Cached) Experiments { return Experiments{c, c.store} }

// maxExperiments is how many definitions of an app are kept. Beyond it those that began first go.
const maxExperiments = 100

func experimentPath(appID, name string) string {
	return AppPath(appID) + "/experiments/" + documents.ID(name)
}

// Get returns an experiment, also one that has ended, or ErrNotFound.
func (x Experiments) Get(ctx context.Context, appID, name string) (experiment.Experiment, error) {
	var d experimentDocument
	err := read(ctx, x.store.documents, experimentPath(appID, name), &d)
	if err == nil {
		var e experiment.Experiment
		if e, err = d.experiment(); err == nil {
			return e, nil
		}
	}
	return experiment.Experiment{}, fmt.Errorf("read experiment %q of app %q: %w", name, appID, err)
}

// All returns the experiments of an app, the one that began last first. It returns ErrNotFound if the app does not
// exist.
func (x Experiments) All(ctx context.Context, appID string) ([]experiment.Experiment, error) {
	found, err := below[experimentDocument](ctx, x.store, appID, documents.Query{Collection: "experiments"})
	all := make([]experiment.Experiment, len(found))
	for i := 0; i < len(found) && err == nil; i++ {
		all[i], err = found[i].experiment()
	}
	if err != nil {
		return nil, fmt.Errorf("list the experiments of app %q: %w", appID, err)
	}
	slices.SortFunc(all, func(a, b experiment.Experiment) int {
		return cmp.Or(b.StartAt.Compare(a.StartAt), cmp.Compare(a.Name, b.Name))
	})
	return all, nil
}

// Set begins or changes an experiment: see App.WithExperiment. It returns the experiment as it is stored, and whether
// that has changed it. It returns ErrNotFound if the app does not exist.
func (x Experiments) Set(ctx context.Context, appID string, e experiment.Experiment,
	now time.Time) (set experiment.Experiment, changed bool, err error) {
	err = x.change(ctx, appID, "set", e.Name, func(old App) (App, []documents.Write, error) {
		all, err := x.All(ctx, appID)
		if err != nil {
			return old, nil, err
		}
		i := slices.IndexFunc(all, func(other experiment.Experiment) bool { return other.Name == e.Name })
		if i >= 0 && old.Experiment.Name != e.Name {
			return old, nil, e.Refuse("it has ended: give the next one another name")
		}
		var app App
		app, changed, err = old.WithExperiment(e, func(version int64) (strategy.Strategy, error) {
			return x.store.StrategyVersion(ctx, appID, version)
		}, now)
		if set = app.Experiment; err != nil || !changed {
			return old, nil, err
		}
		write, err := putExperiment(appID, set)
		writes := []documents.Write{write}
		if err == nil && i < 0 && len(all) >= maxExperiments {
			var d documents.Document
			d, err = x.store.documents.Get(ctx, experimentPath(appID, all[len(all)-1].Name))
			writes = append(writes, documents.Delete(d))
		}
		return app, writes, err
	})
	return set, changed, err
}

// Stop ends an experiment, and reports whether it had not ended. It returns ErrNotFound if there is none of that name.
func (x Experiments) Stop(ctx context.Context, appID, name string,
	now time.Time) (stopped experiment.Experiment, changed bool, err error) {
	err = x.change(ctx, appID, "stop", name, func(app App) (App, []documents.Write, error) {
		if changed = false; app.Experiment.Name != name || app.Experiment.Ended(now) {
			stopped, err = x.Get(ctx, appID, name)
			return app, nil, err
		}
		app.Experiment.StoppedAt, changed = Stamp(now), true
		stopped = app.Experiment
		write, err := putExperiment(appID, stopped)
		return app, []documents.Write{write}, err
	})
	return stopped, changed, err
}

// Promote makes the strategy of an arm the active one, under a new version unless it is active, and ends the
// experiment. It returns the experiment, and the app afterwards. It returns ErrNotFound if there is no such
// experiment, and an error of kind fault.Invalid if the strategy of the arm cannot become the active one.
func (x Experiments) Promote(ctx context.Context, appID, name, arm string,
	now time.Time) (promoted experiment.Experiment, app App, err error) {
	published := false
	err = x.change(ctx, appID, "promote an arm of", name, func(old App) (App, []documents.Write, error) {
		e, err := x.Get(ctx, appID, name)
		if err != nil {
			return old, nil, err
		}
		chosen, ok := e.Armed(arm)
		if !ok {
			return old, nil, e.Refuse("it has no arm %.70q", arm)
		}
		s, err := x.store.StrategyVersion(ctx, appID, chosen.Strategy)
		if errors.Is(err, ErrNotFound) {
			return old, nil, e.Refuse("strategy %d of arm %q is no longer kept", chosen.Strategy, arm)
		}
		if err != nil {
			return old, nil, err
		}
		if !old.Strategy.SameScoring(s) {
			return old, nil, e.Refuse("strategy %d of arm %q scores otherwise than version %d, which is active: "+
				"restore it as any other version", chosen.Strategy, arm, old.StrategyVersion)
		}
		if e.Promoted = arm; !e.Ended(now) {
			e.StoppedAt = Stamp(now)
		}
		if promoted, app = e, old; old.Experiment.Name == name {
			app.Experiment = e
		}
		p := Publication{Note: fmt.Sprintf("arm %s of experiment %s", arm, name)}
		if app, published, err = app.Publish(s, p); err != nil {
			return old, nil, err
		}
		write, err := putExperiment(appID, e)
		writes := []documents.Write{write}
		if err == nil && published {
			var kept strategyDocument
			kept, err = newStrategyDocument(app, p.Note)
			writes = append(writes, documents.Create(strategyPath(appID, app.StrategyVersion), kept))
		}
		return app, writes, err
	})
	if err == nil && published {
		x.store.pruneAfter(ctx, app)
	}
	return promoted, app, err
}

// change is changeApp of the store. What the cache holds of the app is read again afterwards.
func (x Experiments) change(ctx context.Context, appID, what, name string,
	change func(App) (App, []documents.Write, error)) error {
	defer x.cached.apps.Evict(appID)
	if err := x.store.changeApp(ctx, appID, change); err != nil {
		return fmt.Errorf("%s experiment %q of app %q: %w", what, name, appID, err)
	}
	return nil
}

func putExperiment(appID string, e experiment.Experiment) (documents.Write, error) {
	text, err := json.Marshal(e)
	return documents.Put(experimentPath(appID, e.Name), experimentDocument{e.Name, string(text)}), err
}

func (d experimentDocument) experiment() (e experiment.Experiment, err error) {
	if err = json.Unmarshal([]byte(d.Definition), &e); err != nil {
		err = fmt.Errorf("parse stored experiment: %w", err)
	}
	return e, err
}
