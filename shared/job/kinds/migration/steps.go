package migration

import (
	"context"
	"fmt"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/score/schema"
)

// A repeated step resumes its unfinished job.

// Start starts a migration: from now on every writer writes the schema to as
// well.
func (m *Migrator) Start(ctx context.Context, appID string, to schema.Name) (Status, error) {
	app, s, err := m.read(ctx, appID)
	if err != nil {
		return s, err
	}
	switch {
	case s.Active() && s.Migration.Phase == config.Dual && s.Migration.To == to:
		return s, nil
	case s.Active() && s.Migration.Phase == config.Dropping:
		return s, outOfOrder("The migration from %s to %s is not complete: `affinity schema drop --schema %s` must end first",
			s.Migration.From, s.Migration.To, s.Migration.From)
	case s.Active() && s.Migration.Phase == config.RollingBack:
		return s, outOfOrder("The rollback of the migration from %s to %s is not complete: `affinity schema "+
			"rollback` must end first",
			s.Migration.From, s.Migration.To)
	case s.Active():
		return s, outOfOrder("A migration from %s to %s is under way (%s): finish it, or abandon it with `affinity "+
			"schema rollback`",
			s.Migration.From, s.Migration.To, s.Migration.Phase)
	case app.Log.Read == to:
		return s, outOfOrder("The log is in %s already", to)
	case app.Moving():
		return s, outOfOrder("The app moves from region %s to %s (%s): it must arrive, or go back, first",
			app.Move.From, app.Move.To, app.Move.Phase)
	}
	empty, err := m.empty(ctx, app, to)
	if err != nil {
		return s, err
	}
	if !empty {
		return s, outOfOrder("%s holds rows of the app from before: `affinity schema drop --schema %s` removes them first",
			to, to)
	}
	return m.step(ctx, app, func(a *config.App) {
		a.Log.Write = []schema.Name{app.Log.Read, to}
		a.Migration = config.Migration{
			ID: m.newID("migration"), From: app.Log.Read, To: to, Phase: config.Dual, StartedAt: m.stamp(),
		}
	})
}

// Backfill copies the rows in the window to the new schema, at most rate rows a
// second; 0 is no limit. It may be repeated after it has ended.
func (m *Migrator) Backfill(ctx context.Context, appID string, rate int) (Status, error) {
	app, s, err := m.read(ctx, appID)
	if err != nil {
		return s, err
	}
	switch phase := s.Migration.Phase; {
	case !s.Active():
		return s, outOfOrder("No migration is under way: `affinity schema start --to %s` comes first", app.Log.Read.Other())
	case phase == config.Backfilling && s.Working():
		return m.resume(ctx, app)
	case s.Working(), phase == config.CutOver, phase == config.Dropping, phase == config.RollingBack:
		return s, outOfOrder("The migration is in phase %s: a backfill is not possible now", phase)
	}
	return m.step(ctx, app, func(a *config.App) {
		a.Migration.Phase, a.Migration.Job, a.Migration.Rate = config.Backfilling, m.newID(kindBackfill), rate
		a.Migration.Backfill = a.Migration.Job
	})
}

// Verify compares the two logs. It may be repeated after it has ended.
func (m *Migrator) Verify(ctx context.Context, appID string) (Status, error) {
	app, s, err := m.read(ctx, appID)
	if err != nil {
		return s, err
	}
	switch phase := s.Migration.Phase; {
	case !s.Active(), phase == config.Dual:
		return s, outOfOrder("There is nothing to verify yet: %s comes first", firstCommand(s))
	case phase == config.Verifying && s.Working():
		return m.resume(ctx, app)
	case phase == config.Backfilling && !s.done():
		return s, outOfOrder("The backfill is %s: it must complete first (`affinity schema backfill`)", s.Job.State)
	case phase != config.Backfilling && phase != config.Verifying:
		return s, outOfOrder("The migration is in phase %s: a verification is not possible now", phase)
	}
	return m.step(ctx, app, func(a *config.App) {
		a.Migration.Phase, a.Migration.Job = config.Verifying, m.newID(kindVerify)
	})
}

// firstCommand is the command with which a migration continues.
func firstCommand(s Status) string {
	if !s.Active() {
		return fmt.Sprintf("`affinity schema start --to %s`", s.Log.Read.Other())
	}
	return "`affinity schema backfill`"
}

// Cutover makes readers use the new schema, after a verification that found no
// difference.
func (m *Migrator) Cutover(ctx context.Context, appID string) (Status, error) {
	app, s, err := m.read(ctx, appID)
	if err != nil {
		return s, err
	}
	switch phase := s.Migration.Phase; {
	case !s.Active():
		return s, outOfOrder("No migration is under way: %s comes first", firstCommand(s))
	case phase == config.CutOver:
		return s, nil
	case phase == config.Dual:
		return s, outOfOrder("The older events are not copied yet: " +
			"`affinity schema backfill` comes first, then `affinity schema verify`")
	case phase == config.Verifying && !s.done():
		return s, outOfOrder("The verification is %s: it must pass before the cutover (`affinity schema verify`)",
			s.Job.State)
	case phase != config.Verifying:
		return s, outOfOrder("The logs are not verified: `affinity schema verify` comes first")
	case s.incomplete != "":
		return s, outOfOrder("%s: run `affinity schema backfill` for the current retention, then `affinity schema verify`",
			s.incomplete)
	}
	return m.step(ctx, app, func(a *config.App) {
		a.Log.Read, a.Migration.Phase, a.Migration.Job, a.Migration.Undone = a.Migration.To, config.CutOver, "", false
	})
}

// Rollback undoes the cutover; another cutover needs a new verification. Before
// the cutover, Rollback abandons the migration and removes the rows in the new
// schema.
func (m *Migrator) Rollback(ctx context.Context, appID string) (Status, error) {
	app, s, err := m.read(ctx, appID)
	if err != nil {
		return s, err
	}
	switch phase := s.Migration.Phase; {
	case !s.Active():
		return s, outOfOrder("No migration is under way: there is nothing to roll back")
	case phase == config.Dropping:
		return s, outOfOrder("The rows in %s are being removed: finish the drop, then migrate back with `affinity "+
			"schema start --to %s`",
			s.Migration.From, s.Migration.From)
	case phase == config.RollingBack && s.Working():
		return m.resume(ctx, app)
	case phase == config.CutOver:
		return m.step(ctx, app, func(a *config.App) {
			a.Log.Read, a.Migration.Phase = a.Migration.From, config.Backfilling
			a.Migration.Job, a.Migration.Undone = a.Migration.Backfill, true
		})
	}
	if s.undoing() {
		// Some processes still read the new schema, which writers would leave.
		// Besides, an operator who repeats the command may not mean it.
		return s, outOfOrder("The undone cutover has not propagated yet: the migration can be abandoned in %.0f s",
			s.Propagation.Seconds()+1)
	}
	return m.step(ctx, app, func(a *config.App) {
		a.Log.Write, a.Migration.Phase, a.Migration.Job = []schema.Name{a.Migration.From}, config.RollingBack,
			m.newID(kindDrop)
	})
}

// Drop makes writers leave a schema that readers no longer use, and removes the
// app's rows in it.
func (m *Migrator) Drop(ctx context.Context, appID string, n schema.Name) (Status, error) {
	app, s, err := m.read(ctx, appID)
	if err != nil {
		return s, err
	}
	switch phase := s.Migration.Phase; {
	case app.Log.Read == n:
		return s, outOfOrder("Reads use %s: only a schema that is no longer read can be dropped", n)
	case phase == config.Dropping && s.Working():
		return m.resume(ctx, app)
	case s.Active() && phase != config.CutOver && phase != config.Dropping:
		return s, outOfOrder("A migration to %s is under way (%s): `affinity schema rollback` abandons it and "+
			"removes what it wrote",
			s.Migration.To, phase)
	case phase == config.CutOver && s.Propagation > 0:
		return s, outOfOrder("The cutover has not propagated yet: in %.0f s %s can be dropped",
			s.Propagation.Seconds()+1, n)
	case s.incomplete != "":
		return s, outOfOrder("%s: run `affinity schema rollback` to undo the cutover, "+
			"then `affinity schema backfill` for the current retention", s.incomplete)
	}
	return m.step(ctx, app, func(a *config.App) {
		if !s.Active() { // the rows came late, from a process with an old configuration
			a.Migration = config.Migration{ID: m.newID("migration"), From: n, To: a.Log.Read, StartedAt: m.stamp()}
		}
		a.Log.Write, a.Migration.Phase, a.Migration.Job = []schema.Name{a.Log.Read}, config.Dropping, m.newID(kindDrop)
	})
}
