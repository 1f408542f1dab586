package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
)

const (
	samplesPerSecond = 10               // events whose lag is measured
	sampleWithin     = 30 * time.Second // then a sampled event counts as never seen
	inFlightMost     = 4096             // requests; beyond it they are counted as not sent, so that a stuck engine does not eat this machine
)

// loader sends one load. Its counts are complete once run has returned.
type loader struct {
	c     *client
	o     loadOptions
	mix   *mix
	name  string        // of this run, in its users' tokens
	ahead time.Duration // the engine's clock less this machine's, rather too small than too large

	took time.Duration // of sending

	going sync.WaitGroup
	slots chan struct{}

	mu                                sync.Mutex
	accepted, refused, failed, unsent int64 // events
	readErrors, readsUnsent           int64
	unseen                            int64 // samples
	firstError                        string
	lag, reads                        *hdrhistogram.Histogram // microseconds
}

func newLoader(c *client, o loadOptions, m *mix) *loader {
	histogram := func() *hdrhistogram.Histogram { return hdrhistogram.New(1, int64(2*time.Minute/time.Microsecond), 3) }
	return &loader{
		c: c, o: o, mix: m, name: fmt.Sprintf("load-%08x", rand.Uint32()),
		slots: make(chan struct{}, inFlightMost), lag: histogram(), reads: histogram(),
	}
}

// findClock sends one event without a timestamp and reads the time it was given: the engine's clock may have been set, and an event of
// its future would be given another time. It also warms both sides up.
func (l *loader) findClock(ctx context.Context) error {
	user := l.name + "-clock"
	event := l.mix.event(user, time.Time{})
	event.Timestamp = 0
	if err := l.post(ctx, []loadEvent{event}); err != nil {
		return fmt.Errorf("send a first event: %w", err)
	}
	answered := time.Now()
	var p profileAnswer
	err := poll(ctx, sampleWithin, func() (bool, error) {
		err := l.read(ctx, user, &p)
		if statusOf(err) == http.StatusNotFound {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return fmt.Errorf("read the profile of the first event: %w", err)
	}
	l.ahead = p.LastEventAt.Sub(answered)
	return nil
}

// run sends everything and waits for the last answers.
func (l *loader) run(ctx context.Context) {
	requests := l.o.rate / float64(l.o.batch)
	sampleEvery := max(1, int(math.Round(requests/samplesPerSecond)))
	begun := time.Now()
	var pacers sync.WaitGroup
	pacers.Go(func() {
		pace(ctx, requests, l.o.lasts, func(n int, due time.Time) {
			l.begin(func() { l.send(ctx, n, due, n%sampleEvery == 0) }, func() { l.unsent += int64(l.o.batch) })
		})
	})
	pacers.Go(func() {
		pace(ctx, l.o.reads, l.o.lasts, func(_ int, due time.Time) {
			l.begin(func() { l.readOne(ctx, due) }, func() { l.readsUnsent++ })
		})
	})
	pacers.Wait()
	l.took = time.Since(begun)
	if ctx.Err() == nil {
		l.took = max(l.took, l.o.lasts) // the last is due a moment before the end
	}
	l.going.Wait()
}

// pace calls at a fixed rate, each call at its own due time, and never waits for what was called.
func pace(ctx context.Context, rate float64, lasts time.Duration, call func(n int, due time.Time)) {
	begun := time.Now()
	for n := range int(math.Round(rate * lasts.Seconds())) {
		due := begun.Add(time.Duration(float64(n) / rate * float64(time.Second)))
		if wait := time.Until(due); wait > 0 {
			if cli.Sleep(ctx, wait) != nil {
				return
			}
		}
		call(n, due)
	}
}

// begin does something in the background, or counts it as not done when too much is under way.
func (l *loader) begin(do, drop func()) {
	select {
	case l.slots <- struct{}{}:
		l.going.Go(func() {
			defer func() { <-l.slots }()
			do()
		})
	default:
		l.count(drop)
	}
}

func (l *loader) count(add func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	add()
}

// send sends one request. The first event of a sampled one is of a user of its own, so that the profile's lastEventAt tells of it alone.
func (l *loader) send(ctx context.Context, n int, due time.Time, sampled bool) {
	at := time.Now().Add(l.ahead)
	events := make([]loadEvent, l.o.batch)
	for i := range events {
		events[i] = l.mix.event(l.user(rand.IntN(l.o.users)), at)
	}
	if sampled {
		events[0].UserToken = fmt.Sprintf("%s-s%d", l.name, n)
	}
	if err := l.post(ctx, events); err != nil {
		l.fault(ctx, err, func() {
			if statusOf(err) > 0 {
				l.refused += int64(len(events))
			} else {
				l.failed += int64(len(events))
			}
		})
		return
	}
	l.count(func() { l.accepted += int64(len(events)) })
	if sampled {
		l.going.Go(func() { l.watch(ctx, events[0], due) })
	}
}

func (l *loader) user(n int) string { return fmt.Sprintf("%s-u%d", l.name, n) }

// watch measures how long it takes until the event is in its user's profile.
func (l *loader) watch(ctx context.Context, event loadEvent, due time.Time) {
	err := poll(ctx, sampleWithin, func() (bool, error) {
		var p profileAnswer
		err := l.read(ctx, event.UserToken, &p)
		return err == nil && p.LastEventAt.UnixMilli() >= event.Timestamp, nil // whatever a read fails of, the next may succeed
	})
	took := time.Since(due)
	l.count(func() {
		switch {
		case err == nil:
			record(l.lag, took)
		case ctx.Err() == nil:
			l.unseen++
		}
	})
}

// readOne reads the profile of some user, known or not.
func (l *loader) readOne(ctx context.Context, due time.Time) {
	err := l.read(ctx, l.user(rand.IntN(l.o.users)), nil)
	took := time.Since(due)
	if err != nil && statusOf(err) != http.StatusNotFound {
		l.fault(ctx, err, func() { l.readErrors++ })
		return
	}
	l.count(func() { record(l.reads, took) })
}

// fault counts a failure and keeps the first; what broke off because the tool was interrupted is none.
func (l *loader) fault(ctx context.Context, err error, add func()) {
	if ctx.Err() != nil {
		return
	}
	l.count(func() {
		add()
		l.firstError = cmp.Or(l.firstError, err.Error())
	})
}

func record(h *hdrhistogram.Histogram, took time.Duration) {
	micros := min(max(took.Microseconds(), h.LowestTrackableValue()), h.HighestTrackableValue())
	_ = h.RecordValue(micros) // fails only out of range
}

func (l *loader) post(ctx context.Context, events []loadEvent) error {
	body, err := json.Marshal(map[string]any{"events": events})
	if err != nil {
		return fmt.Errorf("encode events: %w", err)
	}
	_, err = l.c.do(ctx, http.MethodPost, "/1/events", body)
	return err
}

// read reads a profile into p, which may be nil.
func (l *loader) read(ctx context.Context, user string, p *profileAnswer) error {
	path := "/1/profiles/" + url.PathEscape(user)
	if p == nil {
		_, err := l.c.do(ctx, http.MethodGet, path, nil)
		return err
	}
	return l.c.get(ctx, path, p)
}

// escapeFilter writes a filter as the events API wants it: what percent-decoding would change is encoded.
func escapeFilter(filter string) string { return strings.ReplaceAll(filter, "%", "%25") }
