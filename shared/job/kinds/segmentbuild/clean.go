package segmentbuild

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/queue"
	"github.com/affinityengine/affinity/shared/rank/segment"
	"github.com/affinityengine/affinity/shared/store"
	"github.com/affinityengine/affinity/shared/wire"
)

// Deltas and Cleaning are the kinds of the tasks of segments that belong to no job.
var (
	Deltas   = queue.Kind[Request]{What: "a delta of segments", Path: "/segments/delta"}
	Cleaning = queue.Kind[Request]{What: "cleaning segments", Path: "/segments/clean"}
)

// Request is the body of such a task.
type Request struct {
	App string `json:"app"`
	// Version is that of the manifest to which a delta is added.
	Version int64 `json:"version,omitempty"`
	// Region is that of the manifest, of an app whose users have regions of their own.
	Region string `json:"region,omitempty"`
}

// Fault implements queue.Request.
func (r Request) Fault() string {
	if !config.ValidAppID(r.App) || r.Version < 0 || r.Region != "" && !config.ValidRegion(r.Region) {
		return "app, version and region must be present and well-formed"
	}
	return ""
}

// keptFor is how long a part stays that no manifest names any more: readers use a
// manifest for some seconds after another one has replaced it.
const keptFor = time.Hour

// cleanTask returns the task that follows the swap of a generation.
func cleanTask(app, generation string) (queue.Task, error) {
	return Cleaning.Task(app, Request{App: app}, keptFor+time.Minute, "segments-clean", app, generation)
}

// Clean drops the parts that no manifest has named for an hour, and the entries of the
// list of changes that no part needs. It is idempotent.
func (r *Runner) Clean(ctx context.Context, request Request) error {
	app, err := r.Config.App(ctx, request.App)
	if err != nil {
		return fmt.Errorf("drop old parts of segments: %w", err)
	}
	if app.Moving() {
		return nil // its segments are being copied; the next swap is followed by another task
	}
	for _, there := range regional(app) {
		if err := r.cleanIn(ctx, there); err != nil {
			return err
		}
	}
	return nil
}

// cleanIn is Clean in one region.
func (r *Runner) cleanIn(ctx context.Context, app config.App) error {
	s, oldest := r.work.storeOf(app), store.SlotOf(r.Now().Add(-store.ChangeDays*24*time.Hour))
	if _, err := s.Changes.Drop(ctx, app.ID, oldest); err != nil {
		return err
	}
	m, err := s.Segments.ReadSegmentManifest(ctx, app.ID)
	if errors.Is(err, wire.ErrNewer) {
		return nil // the newer version cleans
	}
	if err != nil {
		return err
	}
	if m.Version == 0 || r.Now().Sub(time.UnixMilli(m.BuiltAt)) < keptFor {
		return nil // another task follows the newer swap
	}
	// What has begun since the swap, or since an unfinished build started, may be named
	// yet.
	before := time.UnixMilli(m.BuiltAt)
	unfinished, err := r.Jobs.Unfinished(ctx, app.ID)
	if err != nil {
		return fmt.Errorf("list the unfinished builds of segments: %w", err)
	}
	for _, j := range unfinished {
		if j.StartedAt.Before(before) {
			before = j.StartedAt
		}
	}
	if app.Residency.On() { // an entry may name a user who has moved away
		if _, err := s.Changes.Drop(ctx, app.ID, neededSince(m, before)); err != nil {
			return err
		}
	}
	named := make(map[segment.PartID]bool, len(m.Parts))
	for _, p := range m.Parts {
		named[p.ID] = true
	}
	dropped := map[segment.PartID]bool{}
	err = s.Segments.DropSegmentParts(ctx, app.ID, func(id segment.PartID) bool {
		obsolete := !named[id] && id.Begun().Before(before)
		if obsolete {
			dropped[id] = true
		}
		return obsolete
	})
	r.Log.LogAttrs(ctx, slog.LevelInfo, "old parts of segments dropped", slog.String("app", app.ID),
		slog.Int("parts", len(dropped)))
	return err
}

// neededSince returns the first slot of changes that a base part of a manifest may lack, or one that has begun since an
// instant. Who still reads the manifest of before a delta takes no earlier one.
func neededSince(m segment.Manifest, began time.Time) store.ChangeSlot {
	since := store.CutAt(began)
	for _, p := range m.Parts {
		if !p.Delta {
			since = min(since, store.ChangeSlot(p.Cut))
		}
	}
	return since
}

// measure stores the sizes of the app's saved segments. A fault costs the numbers of a
// day and nothing else.
func (r *Runner) measure(ctx context.Context, app config.App) error {
	if r.work.Sizes == nil {
		return nil
	}
	if err := r.work.Sizes(ctx, app); err != nil {
		if ctx.Err() != nil {
			return err
		}
		r.Log.LogAttrs(ctx, slog.LevelWarn, "sizes of saved segments are not stored", slog.String("app", app.ID),
			slog.Any("error", err))
	}
	return nil
}
