package affinity

import (
	"math"
	"time"

	"github.com/affinityengine/affinity/shared/event"
)

const day = 24 * 60 * 60 * 1000 // ms

// Window selects the events that count: those with
// Now - retention < time <= Now that are not deleted.
type Window struct {
	Now           int64 // ms: the T of the formula
	RetentionDays int   // 0 = no limit
	DeletedUntil  int64 // ms: events up to and including it are deleted; 0 = none
	// ReceivedUntil (ms): later events are deleted, too, if they were received by then.
	// A window does not know receipts: the reader of events leaves these out.
	ReceivedUntil int64
	// Since (ms): earlier events do not count, although they are in the retention: at a Now of the
	// past, its window reaches back to events that have expired. 0 = none.
	Since int64
	// Marks is the number of marks of the user when the events were read.
	Marks int64
	// Clock and Ahead (ms) are those of a reader that does not name Now. Now is then the
	// reader's clock or, if one is later, the time of the newest event of up to Clock +
	// Ahead. No machine can have received a later event, unless its clock was wrong. It is
	// not in the window until the clock comes that near to it. Ahead is 0 for a caller
	// that names Now: each event enters the window at its time.
	Clock, Ahead int64
}

// Tombstone returns what is deleted.
func (w Window) Tombstone() Tombstone { return Tombstone{w.DeletedUntil, w.ReceivedUntil} }

// Tombstone is what the deletions of a user cover. Both numbers only rise, and are
// raised together. They are never more than event.MaxAhead apart.
type Tombstone struct {
	DeletedUntil  int64 // ms: events of these times are deleted; 0 = none
	ReceivedUntil int64 // ms: so are events received by then; at least DeletedUntil
}

// Covers reports whether an event with a time and a receipt (ms) is deleted.
func (t Tombstone) Covers(time, receipt int64) bool {
	return t.DeletedUntil != 0 && (time <= t.DeletedUntil || receipt <= t.ReceivedUntil)
}

// Alive returns the first time (ms) whose events are not deleted, whatever their
// receipts: an event is at most event.MaxAhead ahead of its receipt. It returns 0 for
// no deletion. Between DeletedUntil and it lies the band of events that only their
// receipts decide.
func (t Tombstone) Alive() int64 {
	if t.DeletedUntil == 0 {
		return 0
	}
	return max(t.DeletedUntil, min(t.ReceivedUntil, math.MaxInt64-2*maxAhead)+maxAhead) + 1
}

const maxAhead = int64(event.MaxAhead / time.Millisecond)

// Contains reports whether an event at time t (ms) counts.
func (w Window) Contains(t int64) bool {
	return w.oldest() <= t && t <= w.Now && !w.deleted(t)
}

// From returns the first ms inside the window, or math.MinInt64 if the window
// has no start.
func (w Window) From() int64 {
	from := w.oldest()
	if w.DeletedUntil != 0 {
		from = max(from, min(w.DeletedUntil, math.MaxInt64-1)+1)
	}
	return from
}

// leaves returns the first Now (ms) at which time t is too old for the window,
// or math.MaxInt64 if t never is.
func (w Window) leaves(t int64) int64 {
	if r := w.retention(); r < math.MaxInt64 && t <= math.MaxInt64-r {
		return t + r
	}
	return math.MaxInt64
}

// enters returns the first instant (ms) at which the window contains time t, if t
// is later than Now. Otherwise, or if t is deleted, it returns math.MaxInt64.
// Clock skew between servers produces such events.
func (w Window) enters(t int64) int64 {
	if t <= w.Now || w.deleted(t) {
		return math.MaxInt64
	}
	return max(t, math.MinInt64+w.Ahead) - w.Ahead
}

// ahead reports whether the window would contain a time t later than Now, if Now were t.
func (w Window) ahead(t int64) bool {
	return t > w.Now && !w.deleted(t) && (w.Ahead == 0 || t <= w.Clock+w.Ahead)
}

func (w Window) deleted(t int64) bool {
	return w.DeletedUntil != 0 && t <= w.DeletedUntil
}

// oldest returns the first ms inside the retention, and not before Since.
func (w Window) oldest() int64 {
	oldest := int64(math.MinInt64)
	if r := w.retention(); r < math.MaxInt64 && w.Now >= math.MinInt64+r {
		oldest = w.Now - r + 1
	}
	if w.Since != 0 {
		oldest = max(oldest, w.Since)
	}
	return oldest
}

// retention returns the retention in ms, math.MaxInt64 for no limit.
func (w Window) retention() int64 {
	if w.RetentionDays <= 0 || w.RetentionDays > math.MaxInt64/day {
		return math.MaxInt64
	}
	return int64(w.RetentionDays) * day
}

// age returns now - t in ms. It requires now >= t and cannot overflow.
func age(now, t int64) float64 {
	return float64(uint64(now) - uint64(t))
}
