// Package recent keeps a sample of the events that an app has sent in the last minutes:
// for a person who looks whether events arrive, and what they contain. Process records
// events that it has applied. A Recorder takes a few of each app and second, and writes
// them to the table recent of package store in the background. So no message waits for a
// write or fails because of one, and what cannot be written is lost.
//
// The sample is personal data. The Recorder leaves out events of users who are deleted or have opted
// out, and events that serve no purpose which their users grant. Readers read the states of users and do
// so again, and the purge of a user removes what was written before it, its second task what was written at
// the same time. It is a package of its own because process, which writes the sample, links nothing of those who
// read it.
package recent

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/affinityengine/affinity/shared/cache"
	"github.com/affinityengine/affinity/shared/score/consent"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/store"
)

const (
	// perSecond is how many events of an app a process takes in a second.
	perSecond = 5
	// maxListed is how many objects and filters of an event are kept, and maxText how
	// many bytes of each.
	maxListed = 5
	maxText   = 256
	// maxWaiting and maxApps bound the memory of a process whose table fails, or that
	// serves very many apps. Further events are left out.
	maxWaiting = 2_000
	maxApps    = 10_000
	// every is the time between two writes. The first event after it is written at once.
	every = time.Second
	// maxHeld is how long an event may wait. An idle instance may get no CPU until its
	// next request, when nobody asks for the event any more. It is much less than the
	// time between the two purges of a deletion.
	maxHeld = store.RecentMinutes * time.Minute
	// stateFresh is how old what is known of a user may be at the write: for an event that
	// has waited longer, the recorder reads the user's state again.
	stateFresh = 2 * time.Second
	// writeTime limits a write of all apps.
	writeTime = 5 * time.Second
	// logInterval is the time between two lines of the log about writes that fail.
	logInterval = time.Minute
)

// Table keeps samples.
type Table interface {
	AddRecent(ctx context.Context, app string, events []store.RecentEvent) error
	DropRecent(ctx context.Context, app string, now time.Time) error
}

// States reads the states of users of an app. Users without one are missing.
type States func(ctx context.Context, app string, users []string) (map[string]store.User, error)

// Recorder takes samples. It is safe for concurrent use. A nil Recorder takes none.
type Recorder struct {
	store  Table
	states States
	log    *slog.Logger
	now    func() time.Time
	writer *cache.Writer

	mu         sync.Mutex
	second     int64          // since 1970, in which taken counts
	taken      map[string]int // by app
	waiting    map[string][]waiting
	held       int              // waiting events
	dropped    map[string]int64 // the last minute in which the rows of an app were dropped
	lastLogged time.Time        // when the last failure was logged
}

// waiting is an event that waits for a write.
type waiting struct {
	store.RecentEvent
	// unsure says that the user may have been excluded when the event was applied.
	unsure   bool
	since    time.Time
	purposes consent.Setting
}

// New returns a Recorder that writes in the background.
func New(s Table, states States, now func() time.Time, log *slog.Logger) *Recorder {
	r := &Recorder{
		store: s, states: states, log: log, now: now, taken: map[string]int{}, waiting: map[string][]waiting{},
		dropped: map[string]int64{},
	}
	r.writer = cache.NewWriter(cache.WriterOptions{
		What: "recent events", Every: every, Longest: writeTime, Write: r.write, Waits: r.waits, Failed: r.say, Now: now,
	})
	return r
}

// Record takes some of the events of an app that were applied, and its purposes. excluded says that some of
// their users are deleted, have opted out, or do not grant a purpose. It does not keep the memory of the events.
func (r *Recorder) Record(app string, purposes consent.Setting, events []store.LogEvent, excluded bool) {
	if r == nil || len(events) == 0 {
		return
	}
	now := r.now()
	for _, e := range events[:r.take(app, len(events), now)] {
		if e.Receipt <= now.Add(-maxHeld).UnixMilli() {
			continue // nobody reads its row
		}
		r.keep(app, waiting{inShort(&e), excluded, now, purposes})
	}
}

// take returns how many of n events the sample takes.
func (r *Recorder) take(app string, n int, now time.Time) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if second := now.Unix(); second != r.second {
		r.second = second
		clear(r.taken)
	}
	taken, known := r.taken[app]
	if n = min(n, perSecond-taken, maxWaiting-r.held); n <= 0 || !known && len(r.taken) >= maxApps {
		return 0
	}
	r.taken[app] = taken + n
	return n
}

// inShort returns what the sample keeps of an event.
func inShort(e *store.LogEvent) store.RecentEvent {
	short := store.RecentEvent{
		User: strings.Clone(e.User), ID: strings.Clone(e.ID), Time: e.Time, Receipt: e.Receipt, Type: e.Type,
		Name: strings.Clone(e.Name), Index: e.Index,
	}
	if short.Index == "" { // an event by filters has it in its original alone
		if o, err := schema.ParseOriginal(e.Original); err == nil {
			short.Index = o.Index
		}
	}
	short.Index = strings.Clone(short.Index)
	for _, id := range e.ObjectIDs[:min(len(e.ObjectIDs), maxListed)] {
		short.ObjectIDs = append(short.ObjectIDs, cut(id))
	}
	for _, c := range e.Counts[:min(len(e.Counts), maxListed)] {
		short.Filters = append(short.Filters, cut(c.Facet+":"+c.Value))
	}
	return short
}

// cut returns the beginning of a text, in memory of its own.
func cut(text string) string {
	if len(text) <= maxText {
		return strings.Clone(text)
	}
	end := maxText
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "..."
}

// keep lets an event wait for a write.
func (r *Recorder) keep(app string, e waiting) {
	r.mu.Lock()
	r.waiting[app] = append(r.waiting[app], e)
	r.held++
	r.mu.Unlock()
	r.writer.Add()
}

func (r *Recorder) waits() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.held > 0
}

// say logs a failure, unless it has logged one a short time ago.
func (r *Recorder) say(ctx context.Context, err error) {
	now := r.now()
	r.mu.Lock()
	logged := now.Sub(r.lastLogged) < logInterval
	if !logged {
		r.lastLogged = now
	}
	r.mu.Unlock()
	if !logged {
		r.log.LogAttrs(ctx, slog.LevelWarn, "recent events are not written", slog.Any("error", err))
	}
}

// Flush writes the events that wait. Those that cannot be written are lost.
func (r *Recorder) Flush(ctx context.Context) error {
	if r == nil {
		return nil
	}
	return r.writer.Flush(ctx)
}

func (r *Recorder) write(ctx context.Context) error {
	r.mu.Lock()
	apps := r.waiting
	r.waiting, r.held = map[string][]waiting{}, 0
	r.mu.Unlock()
	return cache.WriteEach(apps, func(app string, events []waiting) error { return r.writeApp(ctx, app, events) })
}

// writeApp writes events of an app, without those that are excluded. Once a minute it drops
// the rows that nobody reads any more.
func (r *Recorder) writeApp(ctx context.Context, app string, all []waiting) error {
	var events, unsure []store.RecentEvent
	var users []string
	var purposes consent.Setting
	for _, e := range all {
		purposes = e.purposes
		if e.unsure || r.now().Sub(e.since) > stateFresh {
			unsure, users = append(unsure, e.RecentEvent), append(users, e.User)
		} else {
			events = append(events, e.RecentEvent)
		}
	}
	if len(unsure) > 0 { // a quiet app pays one request for its sample, not two
		states, err := r.states(ctx, app, users)
		if err != nil {
			return err
		}
		events = append(events, Counted(purposes, unsure, states)...)
	}
	if len(events) == 0 {
		return nil
	}
	if err := r.store.AddRecent(ctx, app, events); err != nil {
		return err
	}
	now := r.now()
	minute := now.Unix() / 60
	r.mu.Lock()
	drop := r.dropped[app] != minute
	if len(r.dropped) >= maxApps {
		clear(r.dropped)
	}
	r.dropped[app] = minute
	r.mu.Unlock()
	if !drop {
		return nil
	}
	return r.store.DropRecent(ctx, app, now)
}

// Counted returns those of some events that count: their users have a state, have not
// been deleted since, have not opted out of the type, and grant a purpose that the event serves.
func Counted(of consent.Setting, events []store.RecentEvent, states map[string]store.User) []store.RecentEvent {
	var counted []store.RecentEvent
	judge := of.Judge(consent.Kept)
	for _, e := range events {
		state, known := states[e.User]
		if known && !state.Excludes(e.Type, e.Time, e.Receipt) &&
			judge.View(state.Consents).Keeps(e.Type, e.Name, e.Time, e.Receipt) {
			counted = append(counted, e)
		}
	}
	return counted
}
