package limit

import (
	"fmt"
	"time"
)

// A user with this part of a day's events is made known to other processes, the
// maxHot first such users of an app and day.
const (
	hotPart = 20
	maxHot  = 100
)

type user struct{ app, token string }

// userDay counts the events of a user on one day.
type userDay struct{ day, n int64 }

// Surplus counts events by their users, and returns the positions of those whose
// user has had as many events today as they may.
func (l *Limiter) Surplus(id string, own Numbers, n int, token func(i int) string) []int {
	limit, now := int64(l.Numbers(own).UserEventsPerDay), l.now()
	day, a := dayOf(now), l.app(id)
	a.mu.Lock()
	defer a.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.exchangeIfDue(a, now, l.Numbers(own))
	var surplus []int
	for i := range n {
		u := user{id, token(i)}
		counted, ok := l.users.Get(u)
		if !ok || counted.day != day {
			counted = &userDay{day: day}
			l.users.Set(u, counted)
		}
		elsewhere := int64(0)
		if len(a.others.counts) > 0 {
			elsewhere = a.others.counts[userKey(day, u.token)]
		}
		if counted.n+elsewhere >= limit {
			surplus = append(surplus, i)
			continue
		}
		if counted.n++; counted.n*hotPart > limit {
			a.heat(day, u.token, counted.n)
		}
	}
	return surplus
}

// heat notes a user with many events.
func (a *app) heat(day int64, token string, n int64) {
	name := userKey(day, token)
	if _, known := a.hot[name]; !known {
		if a.hot == nil || len(a.hot) >= maxHot {
			a.cool(day)
		}
		if len(a.hot) >= maxHot {
			return
		}
	}
	a.hot[name], a.changed = n, true
}

// cool forgets the users of earlier days.
func (a *app) cool(day int64) {
	kept := map[string]int64{}
	for name, n := range a.hot {
		if current(name, day/24, day) {
			kept[name] = n
		}
	}
	a.hot = kept
}

func dayOf(t time.Time) int64 { return t.Unix() / 86_400 }

func userKey(day int64, token string) string { return fmt.Sprintf("user %d %s", day, token) }
