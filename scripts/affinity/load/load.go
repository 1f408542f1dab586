// Package load sends events and reads profiles at a fixed rate, whether the
// engine keeps up or not, and measures how long both take.
//
// It is separate from the command line because it is a measurement: it works from
// the moment that a request was due and waits for nothing. The events that it
// sends stay in the app; it keeps nothing else.
package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/googleapis/gax-go/v2"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
)

// Options say what to send.
type Options struct {
	Rate     float64 // events per second
	Reads    float64 // profile reads per second
	Ranks    float64 // rank requests per second
	Feeds    float64 // pages of a suggested feed per second
	Duration time.Duration
	Users    int
	Preload  int // events of each user before the measurement
	Persons  int // of 100 users have an anonymous token, too, with half of their events
	Index    string
	Batch    int // events per request
	// Candidates is how many objects a rank request or a feed orders. Run puts as many
	// into the index if Ranks or Feeds is not 0.
	Candidates int
}

// maxRate bounds each rate: one process on one machine cannot keep time beyond
// it.
const maxRate = 100_000

// Check returns an error that names the flag of a value out of range.
func (o Options) Check() error {
	switch {
	case !(o.Rate > 0 && o.Rate <= maxRate):
		return fmt.Errorf("--rate %v: must be more than 0 and at most %d events per second", o.Rate, maxRate)
	case !(o.Reads >= 0 && o.Reads <= maxRate):
		return fmt.Errorf("--reads %v: must be 0 to %d reads per second", o.Reads, maxRate)
	case !(o.Ranks >= 0 && o.Ranks <= maxRate):
		return fmt.Errorf("--ranks %v: must be 0 to %d rank requests per second", o.Ranks, maxRate)
	case !(o.Feeds >= 0 && o.Feeds <= maxRate):
		return fmt.Errorf("--feeds %v: must be 0 to %d pages per second", o.Feeds, maxRate)
	case o.Ranks+o.Feeds > 0 && (o.Candidates < 1 || o.Candidates > api.MaxCandidates):
		return fmt.Errorf("--candidates %d: must be 1 to %d", o.Candidates, api.MaxCandidates)
	case o.Duration <= 0:
		return fmt.Errorf("--for %s: must be more than 0, such as 30s", o.Duration)
	case o.Users < 1:
		return fmt.Errorf("--users %d: must be 1 or more", o.Users)
	case o.Preload < 0 || o.Preload > maxPreload:
		return fmt.Errorf("--preload %d: must be 0 to %d events of each user", o.Preload, maxPreload)
	case o.Persons < 0 || o.Persons > 100:
		return fmt.Errorf("--persons %d: must be 0 to 100 of 100 users", o.Persons)
	case o.Persons > 0 && o.Preload == 0:
		return errors.New("--persons needs --preload 1 or more: the first events link the tokens")
	case o.Batch < 1 || o.Batch > api.MaxEvents:
		return fmt.Errorf("--batch %d: must be 1 to %d", o.Batch, api.MaxEvents)
	case o.Index == "":
		return errors.New("--index must not be empty")
	}
	return nil
}

const (
	samplesPerSecond = 20               // events whose lag is measured, as many of each kind
	sampleTimeout    = 30 * time.Second // a sampled event that takes longer counts as never seen
	// concurrency bounds the requests in flight, so that a stuck engine does not
	// exhaust this machine. Requests beyond it count as not sent.
	concurrency = 4096
)

// Run sends the events, the reads and the rank requests of one run and waits for the
// last answers. Events have the types, names and facets that the strategy scores. If
// the context ends, the report covers the time until then.
func Run(ctx context.Context, c *client.Client, o Options, s api.Strategy) (Report, error) {
	l := newLoader(c.WithRetry(client.NoRetry), o, newMix(s, o.Index))
	if err := l.findClock(ctx); err != nil {
		return Report{}, err
	}
	if o.Ranks+o.Feeds > 0 {
		if err := l.putObjects(ctx); err != nil {
			return Report{}, err
		}
	}
	if o.Feeds > 0 {
		if err := l.setFeed(ctx); err != nil {
			return Report{}, err
		}
	}
	if o.Preload > 0 {
		if err := l.introduce(ctx, c); err != nil {
			return Report{}, err
		}
	}
	l.run(ctx)
	return l.report(), nil
}

// loader is one run. Its counts are complete once run has returned.
type loader struct {
	c    *client.Client // does not repeat requests
	o    Options
	mix  *mix
	name string // of this run, in the tokens of its users
	// ahead is the engine's clock minus this machine's, too small rather than too
	// large.
	ahead time.Duration

	took time.Duration // time spent sending

	running sync.WaitGroup
	slots   chan struct{}

	mu                                sync.Mutex
	accepted, refused, failed, unsent int64 // events
	firstError                        string
	lag, lagNew                       *samples // of the users of the run, and of users without earlier events
	lagLinked                         *samples // of anonymous tokens
	unknown                           int64    // reads
	reads, ranks, feeds               *stream
	walks                             map[string]walk // by user
	fallback                          int64           // pages

	candidates []string // of a rank request
}

// samples are events whose lag is measured.
type samples struct {
	took   *hdrhistogram.Histogram // microseconds
	unseen int64
}

// stream are the requests of one kind whose latency is measured.
type stream struct {
	took           *hdrhistogram.Histogram // microseconds
	errors, unsent int64
}

func histogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, int64(2*time.Minute/time.Microsecond), 3)
}

func newLoader(c *client.Client, o Options, m *mix) *loader {
	return &loader{
		c: c, o: o, mix: m, name: fmt.Sprintf("load-%08x", rand.Uint32()),
		slots: make(chan struct{}, concurrency), lag: &samples{took: histogram()},
		lagNew: &samples{took: histogram()}, lagLinked: &samples{took: histogram()},
		reads: &stream{took: histogram()}, ranks: &stream{took: histogram()},
		feeds: &stream{took: histogram()}, walks: map[string]walk{},
	}
}

// findClock sends one event without a timestamp and reads the time that the
// engine gave it. The engine's clock may run ahead or behind, and it would change
// the time of an event from its future. This request also warms up both sides.
func (l *loader) findClock(ctx context.Context) error {
	user := l.name + "-clock"
	event := l.mix.event(user, time.Time{})
	event.Timestamp = 0
	if err := l.c.Events().Send(ctx, event); err != nil {
		return fmt.Errorf("send a first event: %w", err)
	}
	answered := time.Now()
	var p api.Profile
	err := cli.Poll(ctx, sampleTimeout, func() (_ bool, err error) {
		p, err = l.c.Profiles().Get(ctx, user, api.ProfileQuery{})
		if isUnknownUser(err) {
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

func isUnknownUser(err error) bool {
	var refused *api.Error
	return errors.As(err, &refused) && refused.Status == http.StatusNotFound
}

// run sends everything and waits for the last answers.
func (l *loader) run(ctx context.Context) {
	requests := l.o.Rate / float64(l.o.Batch)
	sampleEvery := max(1, int(math.Round(requests/samplesPerSecond)))
	begun := time.Now()
	var pacers sync.WaitGroup
	pacers.Go(func() {
		pace(ctx, requests, l.o.Duration, func(n int, due time.Time) {
			var to *samples
			kinds := []*samples{l.lag, l.lagNew}
			if l.persons() > 0 {
				kinds = append(kinds, l.lagLinked)
			}
			if n%sampleEvery == 0 {
				to = kinds[n/sampleEvery%len(kinds)]
			}
			l.start(func() { l.send(ctx, n, due, to) }, func() { l.unsent += int64(l.o.Batch) })
		})
	})
	pacers.Go(func() { l.stream(ctx, l.reads, l.o.Reads, l.read) })
	pacers.Go(func() { l.stream(ctx, l.ranks, l.o.Ranks, l.rank) })
	pacers.Go(func() { l.stream(ctx, l.feeds, l.o.Feeds, l.page) })
	pacers.Wait()
	l.took = time.Since(begun)
	if ctx.Err() == nil {
		l.took = max(l.took, l.o.Duration) // the last request is due shortly before the end
	}
	l.running.Wait()
}

// pace calls at a fixed rate, each call when it is due. It does not wait for what
// was called.
func pace(ctx context.Context, rate float64, lasts time.Duration, call func(n int, due time.Time)) {
	begun := time.Now()
	for n := range int(math.Round(rate * lasts.Seconds())) {
		due := begun.Add(time.Duration(float64(n) / rate * float64(time.Second)))
		if wait := time.Until(due); wait > 0 {
			if gax.Sleep(ctx, wait) != nil {
				return
			}
		}
		call(n, due)
	}
}

// stream sends requests of one kind at a fixed rate, and measures each from the
// moment that it was due.
func (l *loader) stream(ctx context.Context, s *stream, rate float64, ask func(context.Context) error) {
	pace(ctx, rate, l.o.Duration, func(_ int, due time.Time) {
		l.start(func() {
			err := ask(ctx)
			took := time.Since(due)
			if err != nil {
				l.fault(ctx, err, func() { s.errors++ })
				return
			}
			l.count(func() { record(s.took, took) })
		}, func() { s.unsent++ })
	})
}

// start calls do in the background, or drop if too many requests are in flight.
func (l *loader) start(do, drop func()) {
	select {
	case l.slots <- struct{}{}:
		l.running.Go(func() {
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

// send sends one request, and measures the lag of its first event if that is sampled.
// A sample of new users has a user of its own.
func (l *loader) send(ctx context.Context, n int, due time.Time, to *samples) {
	at := time.Now().Add(l.ahead)
	events := make([]api.Event, l.o.Batch)
	for i := range events {
		user := rand.IntN(l.o.Users)
		events[i] = l.mix.event(l.user(user), at)
		if user < l.persons() && rand.IntN(2) == 0 {
			events[i].UserToken = anonymous(l.user(user))
		}
	}
	whose := events[0].UserToken
	switch to {
	case l.lag: // of users without another token, if there are any
		whose = l.user(min(l.persons(), l.o.Users-1) + rand.IntN(max(1, l.o.Users-l.persons())))
		events[0].UserToken = whose
	case l.lagNew:
		whose = fmt.Sprintf("%s-s%d", l.name, n)
		events[0].UserToken = whose
	case l.lagLinked:
		whose = l.user(rand.IntN(l.persons()))
		events[0].UserToken = anonymous(whose)
	}
	if err := l.c.Events().Send(ctx, events...); err != nil {
		l.fault(ctx, err, func() {
			var refused *api.Error
			if errors.As(err, &refused) {
				l.refused += int64(len(events))
			} else {
				l.failed += int64(len(events))
			}
		})
		return
	}
	l.count(func() { l.accepted += int64(len(events)) })
	if to != nil {
		l.running.Go(func() { l.watch(ctx, whose, events[0], due, to) })
	}
}

func (l *loader) user(n int) string { return fmt.Sprintf("%s-u%d", l.name, n) }

// persons is how many users, the first ones, have an anonymous token, too.
func (l *loader) persons() int { return l.o.Users * l.o.Persons / 100 }

// anonymous returns the anonymous token of a user.
func anonymous(user string) string { return user + "-anonymous" }

// watch measures the time from due until the profile of a user is as new as the event: until its
// lastEventAt is at least the event's time. A later event of the same user that counts
// first ends the wait, too.
func (l *loader) watch(ctx context.Context, user string, event api.Event, due time.Time, to *samples) {
	err := cli.Poll(ctx, sampleTimeout, func() (bool, error) {
		p, err := l.c.Profiles().Get(ctx, user, api.ProfileQuery{})
		return err == nil && p.LastEventAt.UnixMilli() >= event.Timestamp, nil // a failed read may succeed next time
	})
	took := time.Since(due)
	l.count(func() {
		switch {
		case err == nil:
			record(to.took, took)
		case ctx.Err() == nil:
			to.unseen++
		}
	})
}

// read reads the profile of a random user, who may be unknown if no event of theirs
// came before.
func (l *loader) read(ctx context.Context) error {
	_, err := l.c.Profiles().Get(ctx, l.user(rand.IntN(l.o.Users)), api.ProfileQuery{})
	if isUnknownUser(err) {
		l.count(func() { l.unknown++ })
		return nil
	}
	return err
}

// fault counts a failure and keeps the first. Requests that an interrupt broke
// off do not count.
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
