package segmentbuild

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/rank/segment"
	"github.com/affinityengine/affinity/shared/store"
	"github.com/affinityengine/affinity/shared/wire"
)

// maxSwaps bounds the attempts to swap a manifest that deltas keep changing.
const maxSwaps = 10

// swap puts the parts of the build into the manifest, in place of all others: in each region in which users of the app
// live, also in one that the app has got since the build was planned.
func (t *task) swap(ctx context.Context, until time.Time, progress func(job.Progress) error) (job.Progress, error) {
	done, mine := job.Progress{Done: true}, false
	for _, app := range regional(t.app) {
		there := &task{Work: t.Work, job: t.job, app: app, params: t.params}
		parts, err := there.whole(ctx, until)
		if err != nil {
			return job.Progress{}, err
		}
		if parts == nil { // the time is over
			return job.Progress{}, nil
		}
		swapped, err := there.swapTo(ctx, parts)
		if err != nil {
			return job.Progress{}, err
		}
		mine = mine || swapped
	}
	if mine {
		if err := t.after(ctx); err != nil {
			return job.Progress{}, err
		}
	}
	return done, progress(done)
}

// whole returns the parts of the build, which cover all users. Two tasks of a shard
// that ran at once may each have replaced a description of the other, so that some
// users are in no part: whole packs them. It returns nil if the time is over before
// that.
func (t *task) whole(ctx context.Context, until time.Time) ([]segment.Part, error) {
	for {
		built, err := t.storeOf(t.app).Segments.BuiltParts(ctx, t.app.ID, t.params.Generation)
		if err != nil {
			return nil, err
		}
		parts, gap, complete := tile(built)
		if complete {
			return parts, nil
		}
		t.runner.Log.LogAttrs(ctx, slog.LevelWarn, "users are in no part, packing them", slog.String("app", t.app.ID),
			slog.String("segments", t.job.ID), slog.String("from", gap.From), slog.String("to", gap.To))
		p, err := t.pack(ctx, gap, computing(until), func(job.Progress) error { return nil })
		if err != nil {
			return nil, err
		}
		if !p.Done && !t.runner.Now().Before(until) {
			return nil, nil
		}
	}
}

// tile walks parts, ordered by From, from the first user to the last. If it comes to a
// place where no part begins, it returns the users from there to the next part.
func tile(built []segment.Part) (parts []segment.Part, gap store.Range, complete bool) {
	next := ""
	for i, p := range built {
		switch c := segment.TokenOrder(p.From, next); {
		case c < 0:
			continue // of a task that was repeated
		case c > 0:
			return nil, store.Range{From: next, To: p.From}, false
		}
		parts = append(parts, built[i])
		if p.To == "" {
			return parts, store.Range{}, true
		}
		next = p.To
	}
	return nil, store.Range{From: next}, false
}

// swapTo makes parts those of the manifest. It returns false if the manifest is one of a
// newer build, or none that this build may replace.
func (t *task) swapTo(ctx context.Context, parts []segment.Part) (bool, error) {
	totals, err := t.runner.Jobs.Totals(ctx, t.app.ID, t.job.ID)
	if err != nil {
		return false, fmt.Errorf("read the totals of %s: %w", t.job.ID, err)
	}
	for range maxSwaps {
		m, err := t.storeOf(t.app).Segments.ReadSegmentManifest(ctx, t.app.ID)
		switch {
		case errors.Is(err, wire.ErrNewer), err == nil && m.Generation > t.params.Generation:
			return false, nil
		case err != nil:
			return false, err
		case m.Generation == t.params.Generation: // this task has run before
			return true, nil
		}
		app, err := t.runner.Config.App(ctx, t.app.ID)
		if err != nil {
			return false, fmt.Errorf("swap segments: %w", err)
		}
		if t.Obsolete(t.job, app) != "" {
			return false, nil // the runner ends the build
		}
		next := segment.Manifest{
			ScoringVersion: t.params.ScoringVersion, RetentionDays: t.params.RetentionDays,
			HalfLives: app.Strategy.HalfLives, Generation: t.params.Generation, Job: t.job.ID,
			BuiltAt: t.runner.Now().UnixMilli(), Since: app.Segments.Since.UnixMilli(), Holdout: t.params.Holdout,
			Faulty: totals.Counts[job.CountFaulty], Parts: parts,
		}
		// The deltas of before are not among them: the list of changes has their users
		// since the cuts of the new parts.
		if _, err := t.storeOf(t.app).Segments.SwapSegmentManifest(ctx, t.app.ID, m.Version, next); err != nil {
			return false, err
		}
	}
	return false, fmt.Errorf("swap segments of %s: the manifest changed %d times", t.app.ID, maxSwaps)
}

// after orders what follows a swap: a delta of the users who have changed since their
// part was packed, and the removal of what nothing names any more.
func (t *task) after(ctx context.Context) error {
	if _, err := t.runner.Order(ctx, t.app.ID); err != nil {
		return err
	}
	clean, err := cleanTask(t.app.ID, t.params.Generation)
	if err != nil {
		return err
	}
	if err := t.runner.Queue.Create(ctx, clean); err != nil {
		return fmt.Errorf("order the removal of old parts of segments: %w", err)
	}
	t.runner.Log.LogAttrs(ctx, slog.LevelInfo, "segments swapped", slog.String("app", t.app.ID),
		slog.String("segments", t.job.ID))
	return t.runner.measure(ctx, t.app)
}
