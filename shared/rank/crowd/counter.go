package crowd

// Sink receives what a Counter counts. Objects are numbers that the caller has
// given them.
type Sink interface {
	// Event is called once for each event that counts for an object, with the
	// time (ms) of the event.
	Event(object uint32, time int64)
	// Link counts a link of two objects n times.
	Link(kind Kind, first, second, n uint32)
	// Own counts what an object counts of a set.
	Own(object, n uint32)
}

// Counter counts the events and pairs of one index, user by user. Numbers of
// objects should be small: a Counter takes 5 bytes for each number below the
// highest one. Beyond that its memory is bounded, however many events a user
// has. It is not safe for concurrent use.
type Counter struct {
	sink Sink

	day   int64
	named []uint8  // by object: its events of the day, up to MaxEvents
	dirty []uint32 // objects with an entry in named

	// seen holds, by object, the number of the last walk that has met it.
	seen []uint32
	walk uint32

	// The events whose pairs are not counted yet, and the earlier ones of the
	// same instant. objects holds those of all these events.
	events  []span
	objects []uint32
	next    int // the first event whose pairs are not counted
	// budgets say how many pairs remain of the last two days with events. Events
	// that wait are never of more days: within is shorter than a day.
	budgets [2]budget
	// counted is the number of the user's events that count for an object.
	counted int64

	stepper stepper
}

type span struct {
	time       int64
	start, end int // in objects
}

type budget struct {
	day  int64
	left int
}

// maxWaiting is the number of objects of waiting events above which a Counter
// looks for events whose pairs it can count early. That many objects are never
// of maxSuccessors + 1 different ones or fewer: the events that wait are of at
// most two days, because within is shorter than a day.
const maxWaiting = 2 * MaxEvents * (maxSuccessors + 1)

// NewCounter returns a Counter before its first user.
func NewCounter(sink Sink) *Counter {
	c := &Counter{sink: sink, stepper: stepper{sink: sink}}
	c.reset()
	return c
}

// Add adds the next event of the user, in the order of the log, with the objects
// that it names. It does not keep the list. bought says that the event is a conversion.
func (c *Counter) Add(time int64, bought bool, objects []uint32) {
	c.countBefore(time)
	if d := dayOf(time); d != c.day {
		c.startDay(d)
	}
	start := len(c.objects)
	walk := c.nextWalk()
	for _, o := range objects {
		c.grow(o)
		if c.seen[o] == walk {
			continue // named twice
		}
		c.seen[o] = walk
		if c.named[o] == 0 {
			c.dirty = append(c.dirty, o)
		}
		if c.named[o] < MaxEvents {
			c.named[o]++
			c.objects = append(c.objects, o)
			c.sink.Event(o, time)
		}
	}
	if len(c.objects) == start {
		return
	}
	c.counted++
	c.stepper.add(time, bought, c.objects[start:])
	c.events = append(c.events, span{time, start, len(c.objects)})
	if len(c.objects)-c.events[c.next].start > maxWaiting {
		for c.next < len(c.events) && c.complete() {
			c.countNext()
		}
		c.forget()
	}
}

// End ends the user and returns how many of their events count for an object.
func (c *Counter) End() int64 {
	for c.next < len(c.events) {
		c.countNext()
	}
	c.stepper.end()
	n := c.counted
	c.reset()
	return n
}

const never = -1 << 62

func (c *Counter) reset() {
	c.startDay(never)
	c.events, c.objects, c.next, c.counted = c.events[:0], c.objects[:0], 0, 0
	c.budgets = [2]budget{{day: never}, {day: never}}
}

func (c *Counter) startDay(d int64) {
	for _, o := range c.dirty {
		c.named[o] = 0
	}
	c.day, c.dirty = d, c.dirty[:0]
}

// countBefore counts the pairs of the events that no event at time or later can
// follow.
func (c *Counter) countBefore(time int64) {
	if c.next == len(c.events) || c.events[c.next].time >= time-within.Milliseconds() {
		return
	}
	for c.next < len(c.events) && c.events[c.next].time < time-within.Milliseconds() {
		c.countNext()
	}
	c.forget()
}

// complete reports whether the events so far determine the pairs of the next
// event: either no pair of its day remains, or each of its objects has
// maxSuccessors others behind it.
func (c *Counter) complete() bool {
	if c.budget(c.events[c.next].time).left == 0 {
		return true
	}
	walk, different := c.nextWalk(), 0
	for _, o := range c.objects[c.events[c.instant(c.next)].start:] {
		if c.seen[o] != walk {
			c.seen[o] = walk
			different++
		}
		if different > maxSuccessors {
			return true
		}
	}
	return false
}

// countNext counts the pairs of the next event.
func (c *Counter) countNext() {
	e := c.events[c.next]
	b := c.budget(e.time)
	from := c.events[c.instant(c.next)].start
	to := from
	for i := len(c.events) - 1; b.left > 0 && to == from; i-- {
		if c.events[i].time-e.time <= within.Milliseconds() {
			to = c.events[i].end
		}
	}
	for _, first := range c.objects[e.start:e.end] {
		walk, successors := c.nextWalk(), 0
		c.seen[first] = walk
		for _, second := range c.objects[from:to] {
			if b.left == 0 || successors == maxSuccessors {
				break
			}
			if c.seen[second] == walk {
				continue
			}
			c.seen[second] = walk
			successors++
			b.left--
			c.sink.Link(Follows, first, second, 1)
		}
	}
	c.next++
}

// budget returns the pairs that remain of the day of a time.
func (c *Counter) budget(time int64) *budget {
	d := dayOf(time)
	b := &c.budgets[d&1]
	if b.day != d {
		*b = budget{d, MaxPairs}
	}
	return b
}

// instant returns the first event at the time of event i.
func (c *Counter) instant(i int) int {
	for i > 0 && c.events[i-1].time == c.events[i].time {
		i--
	}
	return i
}

// forget drops the events that no waiting or later event needs. An event of the
// latest instant may follow one that arrives later.
func (c *Counter) forget() {
	i := len(c.events)
	switch {
	case c.next < len(c.events):
		i = c.instant(c.next)
	case i > 0 && c.budget(c.events[i-1].time).left > 0:
		i = c.instant(i - 1)
	}
	if i == 0 || i < len(c.events) && i < len(c.events)/2 {
		return
	}
	dropped := len(c.objects)
	if i < len(c.events) {
		dropped = c.events[i].start
	}
	c.objects = c.objects[:copy(c.objects, c.objects[dropped:])]
	c.events = c.events[:copy(c.events, c.events[i:])]
	c.next -= i
	for j := range c.events {
		c.events[j].start -= dropped
		c.events[j].end -= dropped
	}
}

// nextWalk returns a number that no entry of seen has.
func (c *Counter) nextWalk() uint32 {
	if c.walk++; c.walk == 0 { // the numbers have wrapped
		clear(c.seen)
		c.walk = 1
	}
	return c.walk
}

// grow makes room for an object.
func (c *Counter) grow(o uint32) {
	if n := int(o) + 1 - len(c.named); n > 0 {
		c.named = append(c.named, make([]uint8, n)...)
		c.seen = append(c.seen, make([]uint32, n)...)
	}
}
