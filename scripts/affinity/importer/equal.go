package importer

import (
	"time"

	"github.com/affinityengine/affinity/shared/enrich"
	"github.com/affinityengine/affinity/shared/event"
)

// maxRemembered bounds the events that equalLines remembers: some 600 MB of memory. It
// finds no line that is equal to a later one.
const maxRemembered = 10_000_000

// equalLines finds lines of a file whose events are one event in the log: they have equal
// content and equal timestamps. The engine cannot tell them from a line that was sent
// twice.
type equalLines struct {
	seen  map[[16]byte]struct{}
	index string // of events that name none
	now   time.Time
	count int
}

// add looks at a line of an event as a client sends it. It leaves out lines that the
// engine will refuse, and events without a timestamp, which are never equal.
func (e *equalLines) add(text []byte) {
	parsed, err := event.Decode(text, event.Rules{Now: e.now, Ahead: event.MaxAhead, History: true, Index: e.index})
	if err != nil || parsed.Received || parsed.Type == event.InstantSearch {
		return
	}
	key := keyOf(enrich.Place{User: parsed.UserToken, Time: parsed.Time, ID: parsed.ID()})
	if _, found := e.seen[key]; found {
		e.count++
	} else if len(e.seen) < maxRemembered {
		e.seen[key] = struct{}{}
	}
}
