package limit

import "time"

// MayEvents returns a *Refused if Events would refuse a request. It is for the time
// before the body is read.
func (l *Limiter) MayEvents(id string, own Numbers) error {
	numbers, now, a := l.Numbers(own), l.now(), l.app(id)
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, err := l.mayEvents(a, now, numbers); err != nil {
		a.events.asked += max(1, a.batch)
		l.exchangeIfDue(a, now, numbers)
		return err
	}
	return nil
}

// mayEvents fills the buckets of events. It returns what is left, and a *Refused if
// an event would be refused.
func (l *Limiter) mayEvents(a *app, now time.Time, n Numbers) (State, error) {
	limit := n.EventsPerSecond
	f, twice := a.mayUse(now, &a.events, limit), a.mayUse(now, &a.events, 2*limit)
	a.events.fill(now, f)
	a.twice.fill(now, twice)
	s := a.events.state(now, limit, f)
	if a.twice.tokens <= 0 {
		return s, refuse(s, a.twice.until(0, twice),
			"The app's limit is %d events per second, and it has sent twice as many: send this request again later", limit)
	}
	if a.events.tokens <= 0 && a.lane.full(now, a.others) {
		return s, refuse(s, MaxRetry*time.Second,
			"The app's limit is %d events per second, and its slow lane is full: send this request again later", limit)
	}
	return s, nil
}

// Events counts n events that were received at a time. slow says that they are
// over the app's limit and go to its slow lane. The error is a *Refused if they
// are over twice the limit, or if the lane holds the work of ten minutes.
func (l *Limiter) Events(id string, own Numbers, n int, received time.Time) (s State, slow bool, err error) {
	numbers, now, a := l.Numbers(own), l.now(), l.app(id)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.events.asked += float64(n)
	a.batch += (float64(n) - a.batch) / 8
	defer l.exchangeIfDue(a, now, numbers)
	if s, err = l.mayEvents(a, now, numbers); err != nil {
		return State{}, false, err
	}
	a.twice.tokens -= float64(n)
	if slow = a.events.tokens <= 0; slow {
		a.lane.enter(received, a.others)
		a.changed = true
		return s, true, nil
	}
	a.events.tokens -= float64(n)
	s.Remaining = max(0, int(a.events.tokens))
	return s, false, nil
}
