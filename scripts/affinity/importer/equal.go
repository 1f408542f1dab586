package importer

import (
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/intake/enrich"
)

// maxRemembered bounds the events or objects that an import remembers: some 600 MB of
// memory. Later ones are equal to none.
const maxRemembered = 10_000_000

// equalLines finds lines of a file whose events are one event in the log: they have equal
// content and equal timestamps. The engine cannot tell them from a line that was sent
// twice.
type equalLines struct {
	seen  map[[16]byte]struct{}
	index string // of events that name none
	now   time.Time
}

// has reports whether a line of an event, as a client sends it, is equal to an earlier
// one, and returns the user of the event. Lines that the engine will refuse have no user and are
// equal to none, and neither are events without a timestamp.
func (e *equalLines) has(text []byte) (user string, equal bool) {
	parsed, err := event.Decode(text, event.Rules{Now: e.now, Ahead: event.MaxAhead, History: true, Index: e.index})
	if err != nil {
		return "", false
	}
	if parsed.Received || parsed.Type == event.InstantSearch {
		return strings.Clone(parsed.UserToken), false
	}
	return strings.Clone(parsed.UserToken), !remember(e.seen, keyOf(enrich.Place{User: parsed.UserToken, Time: parsed.Time, ID: parsed.ID()}))
}

// remember reports whether a key is new, and keeps it.
func remember(seen map[[16]byte]struct{}, key [16]byte) bool {
	if _, found := seen[key]; found {
		return false
	}
	if len(seen) < maxRemembered {
		seen[key] = struct{}{}
	}
	return true
}
