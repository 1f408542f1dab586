package reenrich

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/affinityengine/affinity/shared/admission"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/event/bus"
	"github.com/affinityengine/affinity/shared/intake/enrich"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/queue"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/store"
)

const (
	// A pass resolves a batch once it has maxEvents events, which fit in a
	// message, or maxBytes of originals.
	maxEvents = 500
	maxBytes  = 4 << 20
	// stepRows is how many rows a pass reads between two checkpoints, in about
	// a second.
	stepRows = 10_000
)

// Resolver looks objects up in the current catalog.
type Resolver interface {
	// ResolveFirst resolves as many of the events, in their order, as may be in
	// memory with the filters of their objects. It returns their number.
	ResolveFirst(ctx context.Context, app string, events []event.Event) (bus.Resolution, int, error)
}

// Publisher sends a message to process. It splits a large one.
type Publisher interface {
	Publish(ctx context.Context, m bus.Message) error
}

// Applied stores which numeric bands logged events have: config.Store.
type Applied interface {
	ApplyBands(ctx context.Context, appID string, versions map[string]int64) error
}

// Work reads the log and publishes events. The function that runs its tasks
// must set all fields.
type Work struct {
	job.Plain
	Store *store.Store
	// Catalog must read index settings past any cache: once an event has its
	// filters, no later job corrects them.
	Catalog Resolver
	Bus     Publisher
	Config  job.Config
	Bands   Applied
	Queue   queue.Queue
	Now     func() time.Time
	Log     *slog.Logger
}

var _ job.Work = Work{}

// pass is one call of Process.
type pass struct {
	Work
	job      job.Job
	app      config.App
	shard    job.Shard
	until    time.Time
	progress func(job.Progress) error

	next   string
	counts Counts
	faults []string
	user   string           // of the last row
	rows   int              // since the last step
	bands  map[string]int64 // to give to events, by index
	// The events to resolve next, what is wrong with the filters of each, and the size
	// of their originals in bytes.
	batch []bus.Logged
	picks []picked
	bytes int
}

// picked is why an event is picked.
type picked struct {
	unknown int  // of its objects were unknown
	banded  bool // its filters are of earlier bands
}

// better reports whether an event with so many unknown objects now is to be published.
func (p picked) better(unknown int) bool {
	return unknown < p.unknown || p.banded && unknown == p.unknown
}

// errTime ends a scan when the time is over.
var errTime = errors.New("the time of the task is over")

// Process reads the log of a shard's users. Progress.Next is a place in the
// log.
func (w Work) Process(ctx context.Context, j job.Job, app config.App, shard job.Shard, until time.Time,
	progress func(job.Progress) error) (job.Progress, error) {
	p := job.ParamsOf[Params](j)
	s := &pass{Work: w, job: j, app: app, shard: shard, until: until, progress: progress, next: shard.Next,
		bands: p.Versions()}
	rows := store.Range{From: shard.Next, To: shard.To}
	s.user = rows.Within() // an earlier task has counted this user
	since := p.SinceMillis()
	err := w.Store.In(app.Region).Events.Log(app.ID, app.Log).ScanOriginals(ctx, rows, since, func(e store.Entry) error {
		return s.row(ctx, e)
	})
	if errors.Is(err, errTime) {
		return s.soFar(), nil
	}
	if err == nil {
		err = s.flush(ctx)
	}
	if err == nil {
		err = s.checkSchema(ctx)
	}
	if err != nil {
		return s.soFar(), err
	}
	// Users without events in the window count as processed too.
	s.counts.Users = max(s.counts.Users, shard.PlannedUsers-shard.Counts[job.CountUsers])
	done := s.soFar()
	done.Done = true
	return done, progress(done)
}

// soFar returns the progress of the pass.
func (s *pass) soFar() job.Progress {
	return job.Progress{Next: s.next, Counts: job.Count(s.counts), Faults: s.faults}
}

// row processes a row of the log.
func (s *pass) row(ctx context.Context, e store.Entry) error {
	s.counts.Events++
	if e.User != s.user {
		s.user = e.User
		s.counts.Users++
		s.counts.Known++
	}
	if err := s.pick(e); err != nil {
		s.fault(ctx, e, err)
	}
	if s.rows++; s.rows < stepRows && len(s.batch) < maxEvents && s.bytes < maxBytes {
		return nil
	}
	s.rows = 0
	if err := errors.Join(s.flush(ctx), s.checkSchema(ctx)); err != nil {
		return err
	}
	s.next = e.After()
	if err := s.progress(s.soFar()); err != nil {
		return err
	}
	if !s.Now().Before(s.until) {
		return errTime
	}
	return nil
}

// checkSchema returns an error if the schemas of the log have changed since the
// task read the app. A migration later removes the rows of the old schema, and
// a scan of them would miss events.
func (s *pass) checkSchema(ctx context.Context) error {
	current, err := s.Config.App(ctx, s.app.ID)
	if err == nil && current.Log.Generation != s.app.Log.Generation {
		err = profile.ErrSchemaChanged
	}
	if err != nil {
		return fmt.Errorf("read on in the log of %s, schema %s: %w", s.app.ID, s.app.Log.Read, err)
	}
	return nil
}

// pick adds an event with unknown objects, or with filters of earlier bands, to the
// batch. An error means that its row is damaged.
func (s *pass) pick(e store.Entry) error {
	if e.Fault != nil {
		return e.Fault
	}
	o, err := schema.ParseOriginal(e.Original)
	if err != nil || o.UnknownObjects == 0 && len(s.bands) == 0 {
		return err
	}
	logged, err := enrich.Logged(o, e.User, e.Time, e.ID)
	if err != nil {
		return err
	}
	named := logged.Event.Index
	why := picked{o.UnknownObjects, len(logged.Event.ObjectIDs) > 0 && o.Bands < s.bands[named]}
	if why == (picked{}) {
		return nil
	}
	s.batch, s.picks = append(s.batch, logged), append(s.picks, why)
	s.bytes += len(e.Original)
	return nil
}

// fault counts a row that cannot be read, and logs the first job.MaxFaults.
func (s *pass) fault(ctx context.Context, e store.Entry, err error) {
	s.counts.Faulty++
	s.note(ctx, e.Key(), err)
}

// note logs why a row is left out, and adds it to the faults of the shard.
func (s *pass) note(ctx context.Context, key string, err error) {
	if len(s.faults) >= job.MaxFaults {
		return
	}
	s.faults = append(s.faults, fmt.Sprintf("%s: %v", key, err))
	s.Log.LogAttrs(ctx, slog.LevelError, "row of the log is left out of the re-enrichment",
		slog.String("app", s.app.ID), slog.String("reenrich", s.job.ID), slog.String("key", key), slog.Any("error", err))
}

// flush resolves the batch and publishes the events that have newly known
// objects.
func (s *pass) flush(ctx context.Context) error {
	for done := 0; done < len(s.batch); {
		n, err := s.flushFirst(ctx, done)
		if err != nil {
			return fmt.Errorf("reenrich %d events of %s: %w", len(s.batch), s.app.ID, err)
		}
		done += n
	}
	s.batch, s.picks, s.bytes = nil, s.picks[:0], 0
	return nil
}

// flushFirst flushes events of the batch from one on, as many as may be in memory
// with the filters of their objects. It returns their number.
func (s *pass) flushFirst(ctx context.Context, from int) (int, error) {
	ctx, leave := admission.Process().Enter(ctx) // each call gives back what it took
	defer leave()
	events := make([]event.Event, len(s.batch)-from)
	for i := range events {
		events[i] = s.batch[from+i].Event
	}
	known, n, err := s.Catalog.ResolveFirst(ctx, s.app.ID, events)
	if err != nil {
		return 0, err
	}
	var resolved []bus.Logged
	for i := range n {
		if s.picks[from+i].better(enrich.UnknownObjects(&events[i], known.Objects)) {
			resolved = append(resolved, s.batch[from+i])
		}
	}
	published := len(resolved)
	if s.job.Kind != DryRun {
		if published, err = s.publish(ctx, resolved, known); err != nil {
			return 0, err
		}
	}
	s.counts.Resolved += int64(published)
	s.counts.StillUnknown += int64(n - published)
	return n, nil
}

// publish publishes events and returns their number. It leaves out, and reports,
// an event that fits into no message.
func (s *pass) publish(ctx context.Context, events []bus.Logged, known bus.Resolution) (int, error) {
	if len(events) == 0 {
		return 0, nil
	}
	m, err := bus.NewReenriched(s.app.ID, s.Now(), events, known)
	if err != nil {
		return 0, err
	}
	m.Region = s.shard.Region
	err = s.Bus.Publish(ctx, m)
	if !errors.As(err, &bus.TooLarge{}) {
		return len(events), err
	}
	if len(events) == 1 {
		s.note(ctx, fmt.Sprintf("%s,%s,%d,%s", s.app.ID, events[0].User, events[0].Time, events[0].ID), err)
		return 0, nil
	}
	first, err := s.publish(ctx, events[:len(events)/2], known)
	if err != nil {
		return 0, err
	}
	second, err := s.publish(ctx, events[len(events)/2:], known)
	return first + second, err
}
