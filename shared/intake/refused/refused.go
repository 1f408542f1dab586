// Package refused collects an app's refusals in memory and writes them to the store
// at most once a second, so that a refused request costs no write and waits for none.
// They are kept in the table refused of package store. Links between tokens that events
// ask for and do not get are collected likewise.
//
// It is separate from the functions, because several refuse events. Memory is
// bounded: beyond it refusals are counted without their events, and with more
// reasons than it holds they are lost and logged. A store that fails delays nobody:
// the refusals wait for the next write.
package refused

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"github.com/affinityengine/affinity/shared/cache"
	"github.com/affinityengine/affinity/shared/store"
)

const (
	// every is the time between two writes. The first refusal after it is written at
	// once.
	every = time.Second
	// MaxHeld is how long the event of a refusal may wait for a write. After it, only
	// the count is written. Events wait while the store fails, and on Cloud Run in an
	// instance without requests, which may get no CPU until its next request or its
	// end. The purge of a deleted user reads the stored events once more when no
	// process can hold older ones.
	MaxHeld = time.Hour
	// writeTime limits a write of all apps.
	writeTime = 10 * time.Second
	// maxBytes bounds the events in memory, maxReasons the pairs of an app and a
	// reason.
	maxBytes   = 4 << 20
	maxReasons = 10_000
)

// OptedOut is the reason of events of types that their users have opted out of. These
// events are accepted, and refused when they are applied.
const OptedOut = "The user has opted out of this type of event"

// Withheld is the reason of events that serve no purpose which their users grant, and of those that carry a consent
// which denies a purpose that they serve. They are accepted, and dropped when they are applied.
const Withheld = "No purpose that the event serves is granted, or its own consent denies one"

// Ahead is the reason of events that the clock of a machine keeps from counting, because it
// was wrong. They are accepted, and their time is too far ahead, or a deletion or an opt-out
// of their user is.
const Ahead = "The time of the event, or a deletion of its user, is ahead of the clock: it is that of a " +
	"machine whose clock was wrong"

// Table keeps refusals.
type Table interface {
	RecordRefused(ctx context.Context, app string, at time.Time, r store.Refusals) error
}

// Recorder collects refusals. It is safe for concurrent use.
type Recorder struct {
	store  Table
	log    *slog.Logger
	now    func() time.Time
	writer *cache.Writer

	mu      sync.Mutex
	waiting map[key]*refusals
	bytes   int   // of the waiting events
	last    int64 // sequence
	lost    int64 // refusals without a place, since the last write
}

type key struct{ app, reason string }

// refusals are those of an app for one reason.
type refusals struct {
	count  int64
	events []store.Refused // the oldest first
}

// New returns a Recorder that writes in the background.
func New(s Table, now func() time.Time, log *slog.Logger) *Recorder {
	r := &Recorder{store: s, log: log, now: now, waiting: map[key]*refusals{}}
	r.writer = cache.NewWriter(cache.WriterOptions{
		What: "refusals", Every: every, Longest: writeTime, Write: r.write, Waits: r.waits, Now: now,
	})
	return r
}

// Record adds a refusal of an app. It does not keep the memory of its event.
func (r *Recorder) Record(app string, refusal store.Refused) {
	if refusal.Event = bytes.Clone(refusal.Event); !json.Valid(refusal.Event) {
		refusal.Event = nil // the store could never write it
	}
	defer r.writer.Add()
	r.mu.Lock()
	defer r.mu.Unlock()
	of := r.of(key{app, refusal.Reason}, 1)
	if of == nil {
		return
	}
	r.last = max(r.last+1, r.now().UnixMicro())
	refusal.Sequence = r.last
	r.keep(of, refusal)
}

// Count adds refusals of an app of which no event is kept.
func (r *Recorder) Count(app, reason string, n int64) {
	defer r.writer.Add()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.of(key{app, reason}, n)
}

// of counts n refusals and returns where they wait, or nil if they have no place.
func (r *Recorder) of(k key, n int64) *refusals {
	of := r.waiting[k]
	if of == nil {
		if len(r.waiting) >= maxReasons {
			r.lost += n
			return nil
		}
		of = &refusals{}
		r.waiting[k] = of
	}
	of.count += n
	return of
}

// keep adds an event, and drops the oldest one beyond what a row of the store keeps.
func (r *Recorder) keep(of *refusals, e store.Refused) {
	if len(of.events) == store.RefusedOfReason {
		r.bytes -= len(of.events[0].Event)
		of.events = append(of.events[:0], of.events[1:]...)
	}
	if r.bytes+len(e.Event) > maxBytes {
		e.Event = nil
	}
	r.bytes += len(e.Event)
	of.events = append(of.events, e)
}

// Flush writes the refusals that wait. Those that cannot be written wait further.
func (r *Recorder) Flush(ctx context.Context) error { return r.writer.Flush(ctx) }

func (r *Recorder) waits() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.waiting) > 0
}

func (r *Recorder) write(ctx context.Context) error {
	apps, lost := r.take()
	if lost > 0 {
		r.log.LogAttrs(ctx, slog.LevelError, "refusals are lost: too many reasons wait", slog.Int64("refusals", lost))
	}
	return cache.WriteEach(apps, func(app string, list store.Refusals) error {
		err := r.store.RecordRefused(ctx, app, r.now(), list)
		if err != nil {
			r.putBack(app, list)
			r.log.LogAttrs(ctx, slog.LevelWarn, "refusals are not written yet", slog.String("app", app), slog.Any("error", err))
		}
		return err
	})
}

// take returns what waits, by app. Events that have waited too long are left out.
func (r *Recorder) take() (map[string]store.Refusals, int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	apps := map[string]store.Refusals{}
	oldest := r.now().Add(-MaxHeld)
	for k, of := range r.waiting {
		list, seen := apps[k.app]
		if !seen {
			list.Counts = map[string]int64{}
		}
		list.Counts[k.reason] += of.count
		for _, e := range of.events {
			if e.At.After(oldest) {
				list.Events = append(list.Events, e)
			}
		}
		apps[k.app] = list
	}
	lost := r.lost
	r.waiting, r.bytes, r.lost = map[key]*refusals{}, 0, 0
	return apps, lost
}

// putBack lets refusals wait again, before those that came since.
func (r *Recorder) putBack(app string, list store.Refusals) {
	r.mu.Lock()
	defer r.mu.Unlock()
	newer := map[key][]store.Refused{}
	for reason, n := range list.Counts {
		k := key{app, reason}
		of := r.of(k, n)
		if of == nil {
			continue
		}
		newer[k] = of.events
		for _, e := range of.events {
			r.bytes -= len(e.Event)
		}
		of.events = nil
	}
	for _, e := range list.Events {
		if of := r.waiting[key{app, e.Reason}]; of != nil {
			r.keep(of, e)
		}
	}
	for k, events := range newer {
		for _, e := range events {
			r.keep(r.waiting[k], e)
		}
	}
}
