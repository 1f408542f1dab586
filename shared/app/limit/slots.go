package limit

import "time"

// Slot is a kind of request of which an app may have few under way in a process,
// because each can take seconds of a core.
type Slot string

// The kinds of such requests.
const (
	Explain Slot = "explanations and profiles as of an instant"
	Preview Slot = "previews"
	Audit   Slot = "audits"
	Export  Slot = "exports"
)

// concurrency is how many an app may have under way in one process.
var concurrency = map[Slot]int{Explain: 2, Preview: 1, Audit: 1, Export: 1}

// AtOnce returns how many requests of a kind an app may have under way in one
// process.
func AtOnce(s Slot) int { return concurrency[s] }

// slotWait is the time after which a refused request may find a slot.
const slotWait = 2 * time.Second

// Enter begins a request of that kind; leave ends it. The error is a *Refused if
// the app has as many under way as it may.
func (l *Limiter) Enter(id string, s Slot) (leave func(), err error) {
	a := l.app(id)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.slots[s] >= concurrency[s] {
		return nil, refuse(State{}, slotWait, "The app has %d %s under way, and may have no more at a time: send "+
			"this request again later", a.slots[s], s)
	}
	if a.slots == nil {
		a.slots = map[Slot]int{}
	}
	a.slots[s]++
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.slots[s]--
	}, nil
}
