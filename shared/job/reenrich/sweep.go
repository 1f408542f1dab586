package reenrich

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/affinityengine/affinity/shared/bus"
	"github.com/affinityengine/affinity/shared/config"
	"github.com/affinityengine/affinity/shared/enrich"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/store"
)

const (
	// A message holds at most so many events, and a batch is resolved at the latest
	// when its events have so many bytes as they were sent.
	maxEvents = 500
	maxBytes  = 4 << 20
	// stepRows is how many rows are gone over between two places where the work may
	// stop: a second's, or less.
	stepRows = 10_000
)

// Resolver asks the catalog as it is now.
type Resolver interface {
	Resolve(ctx context.Context, app string, events []event.Event) (bus.Objects, error)
}

// Publisher sends a message to process, in parts if it must.
type Publisher interface {
	Publish(ctx context.Context, m bus.Message) error
}

// Work is what a job does to the log. All parts must be set where its tasks are
// carried out.
type Work struct {
	Store *store.Store
	// Catalog must know the settings of indexes as they are, not as a cache has them:
	// what was resolved once is not resolved again.
	Catalog Resolver
	Bus     Publisher
	Apps    job.Apps
	Now     func() time.Time
	Log     *slog.Logger
}

var _ job.Work = Work{}

// Obsolete is never: whatever changes, events whose objects are known now get them.
func (Work) Obsolete(job.Job, config.App) string { return "" }

// Verify has nothing to say: process sees to what was published.
func (Work) Verify(context.Context, job.Job, config.App, job.Shard) (int64, error) { return 0, nil }

// sweep is one call of Sweep.
type sweep struct {
	Work
	job      job.Job
	app      config.App
	shard    job.Shard
	until    time.Time
	progress func(job.Progress) error

	p    job.Progress
	user string // whose log it is in
	rows int    // since the last step
	// Events with unknown objects that wait to be resolved, how many each had, and
	// the bytes of all.
	batch   []bus.Logged
	unknown []int
	bytes   int
}

// errTime ends a scan whose time is over.
var errTime = errors.New("the time is over")

// Sweep goes over the log of a shard's users. Its places are those of the log.
// Events counts the rows, Changed those that were published, or would be in a dry
// run, Left those of whose unknown objects none is known yet, Faulty those whose
// original cannot be read.
func (w Work) Sweep(ctx context.Context, j job.Job, app config.App, shard job.Shard, until time.Time,
	progress func(job.Progress) error) (job.Progress, error) {
	s := &sweep{Work: w, job: j, app: app, shard: shard, until: until, progress: progress, p: job.Progress{Next: shard.Next}}
	part := store.Range{From: shard.Next, To: shard.To}
	s.user = part.Within() // he was counted by whoever began his log
	err := w.Store.Log(app.ID, app.Log).ScanOriginals(ctx, part, j.SinceMillis(), func(e store.Entry) error {
		return s.row(ctx, e)
	})
	if errors.Is(err, errTime) {
		return s.p, nil
	}
	if err == nil {
		err = s.flush(ctx)
	}
	if err == nil {
		err = s.unmoved(ctx)
	}
	if err != nil {
		return s.p, err
	}
	s.p.Done = true
	// Who has no event in the window was gone over as well.
	s.p.Visited = max(s.p.Visited, shard.PlannedUsers-shard.Visited)
	return s.p, progress(s.p)
}

// row looks at a row of the log.
func (s *sweep) row(ctx context.Context, e store.Entry) error {
	s.p.Events++
	if e.User != s.user {
		s.user = e.User
		s.p.Visited++
		s.p.Users++
	}
	if err := s.pick(e); err != nil {
		s.fault(ctx, e, err)
	}
	if s.rows++; s.rows < stepRows && len(s.batch) < maxEvents && s.bytes < maxBytes {
		return nil
	}
	s.rows = 0
	if err := errors.Join(s.flush(ctx), s.unmoved(ctx)); err != nil {
		return err
	}
	s.p.Next = e.After()
	if err := s.progress(s.p); err != nil {
		return err
	}
	if !s.Now().Before(s.until) {
		return errTime
	}
	return nil
}

// unmoved looks whether the log was read where it is to be read still: a schema
// that it has moved from is removed some time later, and rows of it are missed then.
func (s *sweep) unmoved(ctx context.Context) error {
	now, err := s.Apps.App(ctx, s.app.ID)
	if err == nil && now.Log.Generation != s.app.Log.Generation {
		err = profile.ErrSchemaChanged
	}
	if err != nil {
		return fmt.Errorf("go on with the log of %s, %s: %w", s.app.ID, s.app.Log.Read, err)
	}
	return nil
}

// pick puts an event with unknown objects in the batch. An error says that its row
// is damaged.
func (s *sweep) pick(e store.Entry) error {
	if e.Fault != nil {
		return e.Fault
	}
	o, err := enrich.ReadOriginal(e.Original)
	if err != nil || o.UnknownObjects == 0 {
		return err
	}
	logged, err := o.Logged(e.User, e.Time, e.ID)
	if err != nil {
		return err
	}
	s.batch, s.unknown, s.bytes = append(s.batch, logged), append(s.unknown, o.UnknownObjects), s.bytes+len(e.Original)
	return nil
}

// fault counts a row that cannot be read, and tells of the first.
func (s *sweep) fault(ctx context.Context, e store.Entry, err error) {
	if s.p.Faulty++; len(s.p.Faults) >= job.MaxFaults {
		return
	}
	s.p.Faults = append(s.p.Faults, fmt.Sprintf("%s: %v", e.Key(), err))
	s.Log.LogAttrs(ctx, slog.LevelError, "row of the log is damaged, left out of the re-enrichment", slog.String("app", s.app.ID),
		slog.String("reenrich", s.job.ID), slog.String("key", e.Key()), slog.Any("error", err))
}

// flush resolves the batch and publishes what has come to be known.
func (s *sweep) flush(ctx context.Context) error {
	if len(s.batch) == 0 {
		return nil
	}
	events := make([]event.Event, len(s.batch))
	for i := range s.batch {
		events[i] = s.batch[i].Event
	}
	objects, err := s.Catalog.Resolve(ctx, s.app.ID, events)
	if err != nil {
		return fmt.Errorf("reenrich %d events of %s: %w", len(events), s.app.ID, err)
	}
	resolved := s.batch[:0]
	for i := range events {
		if enrich.UnknownObjects(&events[i], objects) < s.unknown[i] {
			resolved = append(resolved, s.batch[i])
		}
	}
	if len(resolved) > 0 && s.job.Kind != DryRun {
		m, err := bus.NewReenriched(s.app.ID, s.Now(), resolved, objects)
		if err != nil {
			return err
		}
		if err := s.Bus.Publish(ctx, m); err != nil {
			return fmt.Errorf("reenrich %d events of %s: %w", len(resolved), s.app.ID, err)
		}
	}
	s.p.Changed += int64(len(resolved))
	s.p.Left += int64(len(events) - len(resolved))
	s.batch, s.unknown, s.bytes = nil, s.unknown[:0], 0
	return nil
}
