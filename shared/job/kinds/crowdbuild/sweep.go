package crowdbuild

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/rank/crowd"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/consent"
	"github.com/affinityengine/affinity/shared/store"
)

// maxCellPairs bounds the pairs in a cell of a run, so that a cell stays far
// below the 10 MB that Bigtable recommends.
const maxCellPairs = 50_000

// indexSweep counts what users do with the objects of an index.
type indexSweep struct {
	name    string
	catalog *objectSet
	numbers map[string]uint32 // of the objects that the run has met
	ids     []string          // by number
	tally   *crowd.Tally
	counter *crowd.Counter
	touched bool // by the current user
	events  int64
	users   int64
	objects []uint32 // of the current event
}

// sweep is one call of Process over users.
type sweep struct {
	*task
	indexes []*indexSweep
	byName  map[string]*indexSweep
	base    job.Totals // of the job when the task began

	from   string // where the current run begins
	user   string // the current user, "" at the start of a run
	begun  int64  // users of the group with events
	next   string // the user before whom the run has stopped within a group
	counts Counts
	faults []string

	named   int   // bytes of what the run holds for each object that it has met
	ignored int64 // events of the run that name an object beyond maxNamed
}

// namedBytes is about what an object takes beside its id: its numbers, and the
// entries of a Counter and a Tally.
const namedBytes = 128

// errPause ends a sweep or a merge before its end.
var errPause = errors.New("the run ends")

// sweep counts users from the last checkpoint on. Progress.Next is a user token.
func (t *task) sweep(ctx context.Context) (job.Progress, error) {
	s := &sweep{task: t, byName: map[string]*indexSweep{}}
	if err := s.begin(ctx); err != nil {
		return job.Progress{}, err
	}
	s.from = t.shard.Next
	for {
		next, done, err := s.run(ctx)
		if err != nil {
			return job.Progress{}, err
		}
		if done {
			next = t.shard.To
		}
		if err := s.writeRun(ctx, next); err != nil {
			return job.Progress{}, err
		}
		if done {
			// A user whose row came later is not counted, and need not be.
			s.counts.Users = max(s.counts.Users, t.shard.PlannedUsers-t.shard.Counts[job.CountUsers])
			p := job.Progress{Next: s.from, Done: true, Counts: job.Count(s.counts), Faults: s.firstFaults()}
			return p, t.progress(p)
		}
		s.from = next
		p := job.Progress{Next: next, Counts: job.Count(s.counts), Faults: s.firstFaults()}
		if err := t.progress(p); err != nil {
			return job.Progress{}, err
		}
		if !t.now().Before(t.until) {
			return p, nil
		}
	}
}

// firstFaults returns the faults that a checkpoint lists.
func (s *sweep) firstFaults() []string { return s.faults[:min(len(s.faults), job.MaxFaults)] }

// run counts users until the shard, the memory or the time ends. It returns the
// user before whom it has stopped. After an error the caller drops what the
// tallies hold: the last user may be incomplete.
func (s *sweep) run(ctx context.Context) (next string, done bool, err error) {
	app := s.app
	app.RetentionDays = s.params.RetentionDays
	options := profile.SweepOptions{AsOf: s.params.AsOf, Strategy: affinity.Compile(app.Strategy), Until: s.until}
	if s.params.Sampled() {
		options.Only = func(user string) bool { return selects(user, s.params.Share) }
	}
	before, faults := s.counts, s.faults
	s.user, s.begun, s.next = "", 0, ""
	app = app.For(consent.Recommend)
	app.HeldOutToo = true // others get what is popular, not what is theirs
	end, err := s.Source.SweepObjects(ctx, app, store.Range{From: s.from, To: s.shard.To}, options, s.add,
		func(p profile.SweepProgress) error {
			s.endUser()
			s.counts.Users, s.begun = before.Users+p.Users, 0
			s.counts.Faulty, s.faults = before.Faulty+p.Faulty, slices.Concat(faults, p.Faults)
			next, done = p.Next, p.Done
			if s.full() && !done {
				return errPause
			}
			return nil
		})
	switch {
	case err == nil:
		next, done = end.Next, end.Done
	case errors.Is(err, profile.ErrStop):
		// Users of the group without events are not known. They count at the end of
		// the shard.
		next = s.next
		s.counts.Users += s.begun
	case !errors.Is(err, errPause):
		return "", false, err
	}
	return next, done, s.tooMany(ctx)
}

// full reports whether the run must end. It is called after each user, of whom a
// Counter counts at most crowd.MaxPairs pairs a day.
func (s *sweep) full() bool {
	different, buffered := 0, 0
	for _, x := range s.indexes {
		different += x.tally.Different()
		buffered += x.tally.Buffered()
	}
	if buffered > maxBuffered {
		different = 0
		for _, x := range s.indexes {
			x.tally.Release()
			different += x.tally.Different()
		}
	}
	return different >= s.MaxDifferent || s.named >= s.MaxNamed || s.aboveLimit()
}

// begin reads which objects the indexes hold. It ends the job if the job has read
// too many events, or if the objects are too many.
func (s *sweep) begin(ctx context.Context) (err error) {
	if s.base, err = s.runner.Jobs.Totals(ctx, s.app.ID, s.job.ID); err != nil {
		return fmt.Errorf("read the totals of %s: %w", s.job.ID, err)
	}
	if err := s.tooMany(ctx); err != nil {
		return err
	}
	objects := 0
	for _, name := range s.params.Indexes {
		x := &indexSweep{name: name, catalog: newObjectSet(),
			tally: crowd.NewTally(s.params.AsOf.UnixMilli(), s.params.halfLife())}
		err := s.Store.Catalog.ScanObjectIDs(ctx, s.app.ID, name, func(id string) error {
			if objects++; objects > s.MaxObjects {
				return fmt.Errorf("the indexes of the build hold more than %d objects: build them one at a time: %w",
					s.MaxObjects, job.ErrFailed)
			}
			x.catalog.add(id)
			return nil
		})
		if err != nil {
			return err
		}
		x.catalog.seal()
		s.indexes, s.byName[name] = append(s.indexes, x), x
	}
	s.restart()
	return nil
}

// restart forgets the objects that a run has met.
func (s *sweep) restart() {
	s.named, s.ignored = 0, 0
	for _, x := range s.indexes {
		x.numbers, x.ids, x.counter = map[string]uint32{}, nil, crowd.NewCounter(x.tally)
	}
}

// number returns the number of an object in the run. known is false for an object
// that the catalog lacks. room is false for a new one beyond twice MaxNamed: a run
// ends with its first user above MaxNamed, so only a robot names so many more.
func (s *sweep) number(x *indexSweep, id string) (n uint32, known, room bool) {
	if n, known = x.numbers[id]; known {
		return n, true, true
	}
	if !x.catalog.has(id) {
		return 0, false, true
	}
	if s.named >= 2*s.MaxNamed || len(x.ids) == crowd.MaxObjects {
		return 0, true, false
	}
	n, id = uint32(len(x.ids)), strings.Clone(id)
	x.numbers[id], x.ids = n, append(x.ids, id)
	s.named += len(id) + namedBytes
	return n, true, true
}

// add counts an event.
func (s *sweep) add(user string, e affinity.Event) error {
	if user != s.user {
		s.endUser()
		// A run has at least one user, so that the job goes on.
		if s.user != "" && s.full() {
			s.next = user
			return profile.ErrStop
		}
		s.user = user
		s.begun++
	}
	s.counts.Events++
	x := s.byName[e.Index]
	if x == nil {
		return nil
	}
	x.objects = x.objects[:0]
	unknown, ignored := false, false
	for _, id := range e.ObjectIDs {
		n, known, room := s.number(x, id)
		if known && room {
			x.objects = append(x.objects, n)
		}
		unknown, ignored = unknown || !known, ignored || !room
	}
	if unknown {
		s.counts.Unknown++
	}
	if ignored {
		s.ignored++
	}
	if len(x.objects) > 0 {
		x.counter.Add(e.Time, e.Type == event.Conversion, x.objects)
		x.touched = true
	}
	return nil
}

// endUser ends the current user.
func (s *sweep) endUser() {
	counted := int64(0)
	for _, x := range s.indexes {
		if !x.touched {
			continue
		}
		n := x.counter.End()
		x.touched = false
		x.events += n
		x.users++
		counted += n
	}
	if counted > 0 {
		s.counts.Known++
		s.counts.Counted += counted
	}
}

// writeRun writes what the tallies hold as the run of the users from s.from up to
// a place.
func (s *sweep) writeRun(ctx context.Context, to string) error {
	name := fmt.Sprintf("%06d-%s", s.shard.N, strings.ToLower(rand.Text()[:10]))
	for _, x := range s.indexes {
		header, err := runHeader{Shard: s.shard.N, From: s.from, To: to, Events: x.events, Users: x.users}.encode()
		if err != nil {
			return err
		}
		x.events, x.users = 0, 0
		byBucket := map[int][]crowd.Partial{}
		for _, part := range x.tally.Cut(s.Kept, func(n uint32) string { return x.ids[n] }) {
			b := bucketOf(part.ObjectID)
			byBucket[b] = append(byBucket[b], part)
			byBucket[ownBucket] = append(byBucket[ownBucket], crowd.Partial{ObjectID: part.ObjectID, Own: part.Own})
		}
		w := s.Store.Crowd.NewCrowdWriter(ctx, s.params.ref(s.app.ID, x.name))
		// The header names users.
		headers := s.Store.In(s.app.Region).Crowd.NewCrowdWriter(ctx, s.params.ref(s.app.ID, x.name))
		for b := range ownBucket + 1 {
			if len(byBucket[b]) == 0 {
				continue
			}
			if err := w.RunParts(b, name, encodeParts(byBucket[b])); err != nil {
				return err
			}
		}
		if err := w.Flush(); err != nil {
			return err
		}
		if err := headers.RunHeader(name, header); err != nil {
			return err
		}
	}
	if s.ignored > 0 {
		s.runner.Log.LogAttrs(ctx, slog.LevelWarn, "a user names more objects than a task holds, the others do not count",
			slog.String("app", s.app.ID), slog.String("crowd", s.job.ID), slog.String("to", to), slog.Int64("events", s.ignored))
	}
	s.restart()
	return nil
}

// encodeParts returns parts in cells of bounded size.
func encodeParts(parts []crowd.Partial) (cells [][]byte) {
	for len(parts) > 0 {
		n, pairs := 0, 0
		for n < len(parts) && pairs < maxCellPairs {
			for _, l := range parts[n].Links {
				pairs += len(l.Pairs)
			}
			pairs++
			n++
		}
		cells = append(cells, crowd.AppendParts(nil, parts[:n]))
		parts = parts[n:]
	}
	return cells
}

// aboveLimit reports whether the job, which reads all users, has read more
// events than it may.
func (s *sweep) aboveLimit() bool {
	return !s.params.Sampled() && s.base.Counts[job.CountEvents]+s.counts.Events > s.MaxEvents
}

// tooMany replaces the job by one that reads a sample of the users, if the job
// has read too many events. It returns ErrEnded in that case.
func (s *sweep) tooMany(ctx context.Context) error {
	if !s.aboveLimit() {
		return nil
	}
	read, visited := s.base.Counts[job.CountEvents]+s.counts.Events, s.base.Counts[job.CountUsers]+s.counts.Users
	all := float64(read) * float64(max(s.base.PlannedUsers, visited)) / float64(max(visited, 1))
	if err := s.runner.sample(ctx, s.job, float64(s.MaxEvents)/all); err != nil {
		return err
	}
	return fmt.Errorf("%s has read %d events: %w", s.job.ID, read, job.ErrEnded)
}
