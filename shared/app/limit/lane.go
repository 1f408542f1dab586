package limit

import "time"

// laneTime is how much work a slow lane may hold: as long as its oldest event may
// wait.
const laneTime = 10 * time.Minute

// lane is what one process knows of the slow lane of an app. The times are those
// of receipt, in ms.
type lane struct {
	From int64 `json:"from,omitempty"` // of the first event that it sent there since the lane was empty
	To   int64 `json:"to,omitempty"`   // of the last event that it sent there
	Done int64 `json:"done,omitempty"` // of the newest event that it applied from there
}

// enter notes that an event goes to the lane.
func (l *lane) enter(received time.Time, o others) {
	at := received.UnixMilli()
	// What has lain there for so long without a trace has been applied by a process
	// that could not say so.
	if l.To <= max(l.Done, o.done()) || at-l.To > laneTime.Milliseconds() {
		l.From = at
	}
	l.To = max(l.To, at)
}

// full reports whether the oldest event of the lane has waited for laneTime. It
// does not know while the board cannot be reached: then the lane is not full.
func (l *lane) full(now time.Time, o others) bool {
	if now.Sub(o.at) > fresh {
		return false
	}
	return l.waits(now, o) >= laneTime
}

// waits returns about how long the oldest event of the lane has waited, 0 if the
// lane is empty.
func (l *lane) waits(now time.Time, o others) time.Duration {
	done, at := max(l.Done, o.done()), now.UnixMilli()
	oldest := at
	for _, one := range append([]lane{*l}, o.lanes...) {
		if one.To > done && at-one.To <= laneTime.Milliseconds() {
			oldest = min(oldest, max(one.From, done))
		}
	}
	return time.Duration(at-oldest) * time.Millisecond
}

// done returns the time of receipt of the newest event that another process has
// applied from the lane, 0 if none has.
func (o others) done() int64 {
	var done int64
	for _, one := range o.lanes {
		done = max(done, one.Done)
	}
	return done
}

// Applied notes that a message from the slow lane of an app was applied, with the
// time at which it was received.
func (l *Limiter) Applied(id string, received time.Time) {
	now, a := l.now(), l.app(id)
	a.mu.Lock()
	defer a.mu.Unlock()
	if at := received.UnixMilli(); at > a.lane.Done {
		a.lane.Done, a.changed = at, true
	}
	l.exchangeIfDue(a, now, l.defaults)
}
