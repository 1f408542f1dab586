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
}

// Fault implements queue.Request.
func (r Request) Fault() string {
	if !config.ValidAppID(r.App) || r.Version < 0 {
		return "app and version must be present and well-formed"
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
	s := r.work.Store
	app, err := r.Config.App(ctx, request.App)
	if err != nil {
		return fmt.Errorf("drop old parts of segments: %w", err)
	}
	if app.Moving() {
		return nil // its segments are being copied; the next swap is followed by another task
	}
	if _, err := s.Changes.Drop(ctx, request.App, store.SlotOf(r.Now().Add(-store.ChangeDays*24*time.Hour))); err != nil {
		return err
	}
	m, err := s.Segments.ReadSegmentManifest(ctx, request.App)
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
	unfinished, err := r.Jobs.Unfinished(ctx, request.App)
	if err != nil {
		return fmt.Errorf("list the unfinished builds of segments: %w", err)
	}
	for _, j := range unfinished {
		if j.StartedAt.Before(before) {
			before = j.StartedAt
		}
	}
	named := make(map[segment.PartID]bool, len(m.Parts))
	for _, p := range m.Parts {
		named[p.ID] = true
	}
	dropped := map[segment.PartID]bool{}
	err = s.Segments.DropSegmentParts(ctx, request.App, func(id segment.PartID) bool {
		obsolete := !named[id] && id.Begun().Before(before)
		if obsolete {
			dropped[id] = true
		}
		return obsolete
	})
	r.Log.LogAttrs(ctx, slog.LevelInfo, "old parts of segments dropped", slog.String("app", request.App),
		slog.Int("parts", len(dropped)))
	return err
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
