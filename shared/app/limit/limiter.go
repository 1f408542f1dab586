package limit

import (
	"crypto/rand"
	"sync"
	"time"

	"github.com/affinityengine/affinity/shared/cache"
)

const (
	// maxApps is how many apps a Limiter counts at a time. Beyond it one that is used
	// seldom, or was not used for long, starts again.
	maxApps = 10_000
	// maxUsers is how many users it counts, of all apps.
	maxUsers = 50_000
)

// Limiter counts what apps ask for and refuses what is over their limits. It is
// safe for concurrent use.
type Limiter struct {
	now      func() time.Time
	defaults Numbers
	board    Board
	process  string
	// begin runs an exchange beside the request that is due for one, after begins
	// one later.
	begin func(func())
	after func(time.Duration, func())
	// failed learns of an exchange that failed.
	failed func(app string, err error)

	mu    sync.Mutex
	apps  cache.Map[string, *app]
	users cache.Map[user, *userDay]
}

// New returns a Limiter. defaults replace the zeros of an app's numbers. A nil
// board shares nothing: then each process permits whole limits. failed learns of
// faults of the board; they stop no request.
func New(now func() time.Time, defaults Numbers, board Board, failed func(app string, err error)) *Limiter {
	return &Limiter{
		now: now, defaults: defaults.Or(Defaults), board: board, process: rand.Text()[:8],
		apps: cache.New[string, *app](maxApps), users: cache.New[user, *userDay](maxUsers),
		begin: func(exchange func()) { go exchange() },
		after: func(d time.Duration, f func()) { time.AfterFunc(d, f) }, failed: failed,
	}
}

// Numbers returns the limits of an app: its own, and the defaults for the others.
func (l *Limiter) Numbers(own Numbers) Numbers { return own.Or(l.defaults) }

// app is what one process counts of one app.
type app struct {
	id string
	mu sync.Mutex

	events, imports, reads counter
	twice                  bucket  // of events in any lane, at twice the rate
	batch                  float64 // events of the latest requests, on average
	jobs, strategies       hour
	slots                  map[Slot]int // requests under way
	lane                   lane
	hot                    map[string]int64 // users with many events today
	began                  time.Time        // the window of time that is counted
	changed                bool             // something to publish has changed
	exchanging, waiting    bool             // an exchange runs, or will begin by itself
	others                 others
}

// counter is a limit per second.
type counter struct {
	bucket
	// asked is what clients asked for since the window began, permitted or not. rate
	// is the same in the window before, per second.
	asked, rate float64
	elsewhere   []float64 // the same in other processes, ascending
}

// hour counts what happened in one hour of the clock.
type hour struct {
	number  int64 // of hours since 1970
	n       int64
	refused int64 // requests that were given back, of this process
}

// maxRefused times a limit per hour is how many requests an app may send to one process
// in an hour that are refused for another reason.
const maxRefused = 10

func hourOf(t time.Time) int64 { return t.Unix() / 3600 }

func (l *Limiter) app(id string) *app {
	l.mu.Lock()
	defer l.mu.Unlock()
	a, ok := l.apps.Get(id)
	if !ok {
		a = &app{id: id}
		l.apps.Set(id, a)
	}
	return a
}

// counter returns the counter of a kind that is limited per second.
func (a *app) counter(k Kind) *counter {
	switch k {
	case Reads:
		return &a.reads
	case Imports:
		return &a.imports
	}
	return &a.events
}

// mayUse returns how much of a limit this process may use.
func (a *app) mayUse(now time.Time, c *counter, limit int) flow {
	if len(c.elsewhere) == 0 || now.Sub(a.others.at) > fresh {
		return flow{float64(limit), float64(limit)}
	}
	return share(float64(limit), c.rate, c.elsewhere)
}

// Take counts one of a kind. The error is a *Refused if the limit is used up.
func (l *Limiter) Take(id string, own Numbers, k Kind) (State, error) {
	numbers, now, a := l.Numbers(own), l.now(), l.app(id)
	limit, perHour := k.of(numbers)
	a.mu.Lock()
	defer a.mu.Unlock()
	if perHour {
		s, err := a.takeHourly(now, k, limit)
		l.exchangeIfDue(a, now, numbers)
		return s, err
	}
	c := a.counter(k)
	c.asked++
	l.exchangeIfDue(a, now, numbers)
	f := a.mayUse(now, c, limit)
	c.fill(now, f)
	if c.tokens <= 0 {
		return State{}, refuse(c.state(now, limit, f), c.until(0, f),
			"The app's limit is %d %s per second: send this request again later", limit, k)
	}
	c.tokens--
	return c.state(now, limit, f), nil
}

// Charge counts n more of a kind that is limited per second, for a request that
// Take let through. It refuses nothing: later requests wait instead.
func (l *Limiter) Charge(id string, own Numbers, k Kind, n int) {
	if n <= 0 {
		return
	}
	now, a := l.now(), l.app(id)
	limit, _ := k.of(l.Numbers(own))
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.counter(k)
	c.asked += float64(n)
	c.fill(now, a.mayUse(now, c, limit))
	c.tokens -= float64(n)
}

// takeHourly counts one in the current hour. Over the limit, the next hour must
// begin first.
func (a *app) takeHourly(now time.Time, k Kind, limit int) (State, error) {
	h, number := a.hour(k), hourOf(now)
	if h.number != number {
		*h = hour{number: number}
	}
	s := a.hourly(h, k, limit)
	wait := s.Reset.Sub(now)
	if s.Remaining == 0 {
		return State{}, refuse(s, wait, "The app's limit is %d %s per hour: send this request again later", limit, k)
	}
	if h.refused >= maxRefused*int64(limit) {
		return State{}, refuse(s, wait, "The app's limit is %d %s per hour, and %d of its requests were refused: "+
			"send this request again later",
			limit, k, h.refused)
	}
	h.n++
	a.changed = true
	s.Remaining--
	return s, nil
}

// hourly is what is left of a limit in an hour.
func (a *app) hourly(h *hour, k Kind, limit int) State {
	used := int(h.n + a.others.counts[key(k, h.number)])
	return State{Limit: limit, Remaining: max(0, limit-used), Reset: time.Unix((h.number+1)*3600, 0)}
}

// hour returns the counter of a kind that is limited per hour.
func (a *app) hour(k Kind) *hour {
	if k == Strategies {
		return &a.strategies
	}
	return &a.jobs
}

// giveBack takes back one of a kind that Take counted with a state. It returns what is
// left then. False means that nothing is counted per hour, or that the hour is over.
func (l *Limiter) giveBack(id string, k Kind, taken State) (State, bool) {
	if k != Jobs && k != Strategies {
		return State{}, false
	}
	a := l.app(id)
	a.mu.Lock()
	defer a.mu.Unlock()
	h := a.hour(k)
	if h.n == 0 || !taken.Reset.Equal(time.Unix((h.number+1)*3600, 0)) {
		return State{}, false
	}
	h.n--
	h.refused++
	a.changed = true
	return a.hourly(h, k, taken.Limit), true
}
