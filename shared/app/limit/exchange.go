package limit

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/deadline"
)

// Board is the table through which processes share limits.
type Board interface {
	// ExchangeRates replaces what a process said of an app, and returns what each
	// process said within a day.
	ExchangeRates(ctx context.Context, app, process string, said []byte) (map[string][]byte, error)
}

const (
	// interval is the shortest time between two exchanges of a process for an app.
	interval = time.Second
	// fresh is how old a rate may be that counts.
	fresh = 5 * time.Second
	// busyPart is the part of a limit per second below which it is not exchanged.
	busyPart = 100
	// exchangeTime ends an exchange that the board does not answer.
	exchangeTime = 2 * time.Second
)

// note is what one process says of an app.
type note struct {
	At    int64            `json:"at"`             // ms
	Rates map[Kind]float64 `json:"rates"`          // what clients asked of it, per second
	Count map[string]int64 `json:"count"`          // by key and userKey: how often in an hour or day
	Lane  *lane            `json:"lane,omitempty"` // nil if it has nothing to say
}

// others is what the other processes said at the last exchange.
type others struct {
	at     time.Time
	rates  map[Kind][]float64 // ascending
	counts map[string]int64
	lanes  []lane
}

// key names the count of a kind in an hour.
func key(k Kind, hour int64) string { return string(k) + " " + strconv.FormatInt(hour, 10) }

// current reports whether a count is one of this hour or day.
func current(name string, hour, day int64) bool {
	kind, rest, _ := strings.Cut(name, " ")
	number, _, _ := strings.Cut(rest, " ")
	want := hour
	if kind == "user" {
		want = day
	}
	return number == strconv.FormatInt(want, 10)
}

// exchangeIfDue ends the window that is counted once it is long enough. If the
// process has something to say then, an exchange begins. a.mu is held.
func (l *Limiter) exchangeIfDue(a *app, now time.Time, n Numbers) {
	if l.board == nil {
		return
	}
	elapsed := now.Sub(a.began)
	if a.began.IsZero() {
		elapsed = interval
	}
	if elapsed < interval {
		if a.changed && !a.waiting {
			a.waiting = true
			l.after(interval-elapsed, func() {
				a.mu.Lock()
				defer a.mu.Unlock()
				a.waiting = false
				l.exchangeIfDue(a, l.now(), n)
			})
		}
		return
	}
	busy := false
	for _, k := range perSecond {
		c := a.counter(k)
		c.rate, c.asked = c.asked/elapsed.Seconds(), 0
		limit, _ := k.of(n)
		busy = busy || c.rate*busyPart > float64(limit)
	}
	a.began = now
	if a.exchanging || !a.changed && !busy {
		return
	}
	a.exchanging, a.changed = true, false
	said := a.note(now)
	l.begin(func() { l.exchange(a, said) })
}

// note is what the process says of the app now.
func (a *app) note(now time.Time) note {
	said := note{At: now.UnixMilli(), Rates: map[Kind]float64{}, Count: map[string]int64{}}
	for _, k := range perSecond {
		said.Rates[k] = a.counter(k).rate
	}
	for k, h := range map[Kind]hour{Jobs: a.jobs, Strategies: a.strategies} {
		if h.n > 0 && h.number == hourOf(now) {
			said.Count[key(k, h.number)] = h.n
		}
	}
	for name, n := range a.hot {
		if current(name, hourOf(now), dayOf(now)) {
			said.Count[name] = n
		}
	}
	if a.lane != (lane{}) {
		l := a.lane
		said.Lane = &l
	}
	return said
}

// exchange tells the board what this process says, and keeps what the others say.
// A fault changes nothing: what the others said grows old.
func (l *Limiter) exchange(a *app, said note) {
	ctx, cancel := deadline.Begin(context.Background(), exchangeTime)
	defer cancel()
	encoded, err := json.Marshal(said)
	var all map[string][]byte
	if err == nil {
		all, err = l.board.ExchangeRates(ctx, a.id, l.process, encoded)
	}
	if err != nil {
		l.failed(a.id, err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.exchanging = false
	if err != nil {
		a.changed = a.changed || len(said.Count) > 0 || said.Lane != nil
		return
	}
	delete(all, l.process)
	a.others = read(all, l.now())
	for _, k := range perSecond {
		a.counter(k).elsewhere = a.others.rates[k]
	}
}

// read decodes what other processes said. What this version cannot read does not
// count.
func read(all map[string][]byte, now time.Time) others {
	o := others{at: now, rates: map[Kind][]float64{}, counts: map[string]int64{}}
	for _, text := range all {
		var said note
		if json.Unmarshal(text, &said) != nil {
			continue
		}
		if now.Sub(time.UnixMilli(said.At)) < fresh {
			for k, rate := range said.Rates {
				if rate > 0 {
					o.rates[k] = append(o.rates[k], rate)
				}
			}
		}
		for name, n := range said.Count {
			if current(name, hourOf(now), dayOf(now)) {
				o.counts[name] += n
			}
		}
		if said.Lane != nil {
			o.lanes = append(o.lanes, *said.Lane)
		}
	}
	for _, rates := range o.rates {
		slices.Sort(rates)
	}
	return o
}
