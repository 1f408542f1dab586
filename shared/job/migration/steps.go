package migration

import (
	"context"
	"fmt"

	"github.com/affinityengine/affinity/shared/config"
	"github.com/affinityengine/affinity/shared/schema"
)

// Every step may be taken again while it is under way: then it is gone on with.

// look reads the app past any cache, and how far its move is.
func (m *Mover) look(ctx context.Context, appID string) (config.App, Status, error) {
	app, err := m.apps.App(ctx, appID)
	if err != nil {
		return app, Status{}, fmt.Errorf("look at the log of %s: %w", appID, err)
	}
	s, err := m.status(ctx, app)
	return app, s, err
}

// Begin is the step start: it begins a move to a schema.
func (m *Mover) Begin(ctx context.Context, appID string, to schema.Name) (Status, error) {
	app, s, err := m.look(ctx, appID)
	if err != nil {
		return s, err
	}
	switch {
	case s.Moving() && s.Move.Phase == config.Dual && s.Move.To == to:
		return s, nil
	case s.Moving() && s.Move.Phase == config.Dropping:
		return s, outOfOrder("The move from %s to %s is not over: `affinity schema drop --schema %s` must end first", s.Move.From, s.Move.To, s.Move.From)
	case s.Moving() && s.Move.Phase == config.RollingBack:
		return s, outOfOrder("The move from %s to %s is not given up yet: `affinity schema rollback` must end first", s.Move.From, s.Move.To)
	case s.Moving():
		return s, outOfOrder("A move from %s to %s is under way (%s): finish it, or give it up with `affinity schema rollback`", s.Move.From, s.Move.To, s.Move.Phase)
	case app.Log.Read == to:
		return s, outOfOrder("The log lies in %s already", to)
	}
	empty, err := m.logs.Log(appID, app.Log).Empty(ctx, to)
	if err != nil {
		return s, err
	}
	if !empty {
		return s, outOfOrder("There are rows of the app in %s, left over from before: `affinity schema drop --schema %s` removes them first", to, to)
	}
	return m.step(ctx, app, func(a *config.App) {
		a.Log.Write = []schema.Name{app.Log.Read, to}
		a.Move = config.Move{ID: m.newID("move"), From: app.Log.Read, To: to, Phase: config.Dual, StartedAt: m.stamp()}
	})
}

// Backfill copies what the window holds and the new schema does not, at most rate
// rows a second; 0 is without limit. It may be done again after it has ended.
func (m *Mover) Backfill(ctx context.Context, appID string, rate int) (Status, error) {
	app, s, err := m.look(ctx, appID)
	if err != nil {
		return s, err
	}
	switch phase := s.Move.Phase; {
	case !s.Moving():
		return s, outOfOrder("No move is under way: `affinity schema start --to %s` comes first", app.Log.Read.Other())
	case phase == config.Backfilling && s.Working():
		return m.resume(ctx, app)
	case s.Working(), phase == config.CutOver, phase == config.Dropping, phase == config.RollingBack:
		return s, outOfOrder("The move is at its %s: there is nothing to backfill now", phase)
	}
	return m.step(ctx, app, func(a *config.App) {
		a.Move.Phase, a.Move.Job, a.Move.Rate = config.Backfilling, m.newID(kindBackfill), rate
		a.Move.Backfill = a.Move.Job
	})
}

// Verify compares the two logs. It may be done again after it has ended.
func (m *Mover) Verify(ctx context.Context, appID string) (Status, error) {
	app, s, err := m.look(ctx, appID)
	if err != nil {
		return s, err
	}
	switch phase := s.Move.Phase; {
	case !s.Moving(), phase == config.Dual:
		return s, outOfOrder("There is nothing to verify: %s comes first", first(s))
	case phase == config.Verifying && s.Working():
		return m.resume(ctx, app)
	case phase == config.Backfilling && !s.done():
		return s, outOfOrder("The backfill is %s: it must be done first (`affinity schema backfill`)", s.Job.State)
	case phase != config.Backfilling && phase != config.Verifying:
		return s, outOfOrder("The move is at its %s: there is nothing to verify now", phase)
	}
	return m.step(ctx, app, func(a *config.App) {
		a.Move.Phase, a.Move.Job = config.Verifying, m.newID(kindVerify)
	})
}

// first is the command that comes first.
func first(s Status) string {
	if !s.Moving() {
		return fmt.Sprintf("`affinity schema start --to %s`", s.Log.Read.Other())
	}
	return "`affinity schema backfill`"
}

// Cutover has the new schema read. Only a move that was verified gets there.
func (m *Mover) Cutover(ctx context.Context, appID string) (Status, error) {
	app, s, err := m.look(ctx, appID)
	if err != nil {
		return s, err
	}
	switch phase := s.Move.Phase; {
	case !s.Moving():
		return s, outOfOrder("No move is under way: %s comes first", first(s))
	case phase == config.CutOver:
		return s, nil
	case phase == config.Dual:
		return s, outOfOrder("Nothing is copied yet: `affinity schema backfill` comes first, then `affinity schema verify`")
	case phase == config.Verifying && !s.done():
		return s, outOfOrder("The verification is %s: it must pass before reads change sides (`affinity schema verify`)", s.Job.State)
	case phase != config.Verifying:
		return s, outOfOrder("The logs are not verified: `affinity schema verify` comes first")
	case s.wider != "":
		return s, outOfOrder("%s: `affinity schema backfill` copies what the retention keeps now, then `affinity schema verify`", s.wider)
	}
	return m.step(ctx, app, func(a *config.App) {
		a.Log.Read, a.Move.Phase, a.Move.Job, a.Move.Undone = a.Move.To, config.CutOver, "", false
	})
}

// Rollback undoes the cutover: then the logs are to be verified anew. Before the
// cutover it gives the move up, and removes what it wrote.
func (m *Mover) Rollback(ctx context.Context, appID string) (Status, error) {
	app, s, err := m.look(ctx, appID)
	if err != nil {
		return s, err
	}
	switch phase := s.Move.Phase; {
	case !s.Moving():
		return s, outOfOrder("No move is under way: there is nothing to roll back")
	case phase == config.Dropping:
		return s, outOfOrder("%s is being removed: finish it, then move back with `affinity schema start --to %s`", s.Move.From, s.Move.From)
	case phase == config.RollingBack && s.Working():
		return m.resume(ctx, app)
	case phase == config.CutOver:
		return m.step(ctx, app, func(a *config.App) {
			a.Log.Read, a.Move.Phase, a.Move.Job, a.Move.Undone = a.Move.From, config.Backfilling, a.Move.Backfill, true
		})
	}
	if s.undoing() {
		// Some still read what was moved to, which nobody would write any more; nor is
		// it what somebody means who asks twice.
		return s, outOfOrder("The cutover is undone, but not everywhere before %.0f seconds have passed: only after that the move can be given up", s.Settles.Seconds()+1)
	}
	return m.step(ctx, app, func(a *config.App) {
		a.Log.Write, a.Move.Phase, a.Move.Job = []schema.Name{a.Move.From}, config.RollingBack, m.newID(kindDrop)
	})
}

// Drop ends the writing of a schema that is not read any more and removes the
// app's rows in it.
func (m *Mover) Drop(ctx context.Context, appID string, n schema.Name) (Status, error) {
	app, s, err := m.look(ctx, appID)
	if err != nil {
		return s, err
	}
	switch phase := s.Move.Phase; {
	case app.Log.Read == n:
		return s, outOfOrder("%s is what is read: only a schema that was left can be dropped", n)
	case phase == config.Dropping && s.Working():
		return m.resume(ctx, app)
	case s.Moving() && phase != config.CutOver && phase != config.Dropping:
		return s, outOfOrder("A move to %s is under way (%s): `affinity schema rollback` gives it up and removes what it wrote", s.Move.To, phase)
	case phase == config.CutOver && s.Settles > 0:
		return s, outOfOrder("The cutover is not in force everywhere before %.0f seconds have passed: drop %s after that", s.Settles.Seconds()+1, n)
	case s.wider != "":
		return s, outOfOrder("%s: `affinity schema rollback` undoes the cutover, then `affinity schema backfill` copies what the retention keeps now", s.wider)
	}
	return m.step(ctx, app, func(a *config.App) {
		if !s.Moving() { // rows that a process with an old configuration wrote late
			a.Move = config.Move{ID: m.newID("move"), From: n, To: a.Log.Read, StartedAt: m.stamp()}
		}
		a.Log.Write, a.Move.Phase, a.Move.Job = []schema.Name{a.Log.Read}, config.Dropping, m.newID(kindDrop)
	})
}
