package archive

import (
	"fmt"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/event/bus"
	"github.com/affinityengine/affinity/shared/intake/enrich"
	"github.com/affinityengine/affinity/shared/intake/export"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/store"
)

// Line is an event of a message.
type Line struct {
	Place enrich.Place
	Rank  Rank
	Event *api.ExportedEvent
}

// Lines returns the events of a message as it wrote them to the log. They are without
// filters if the message is unresolved: an import reads those from the catalog. A message of sign-ins
// has no events.
func Lines(m bus.Message) ([]Line, error) {
	if m.Kind == bus.SignedIn {
		return nil, nil
	}
	unknown := map[enrich.Place]int{}
	var rows []store.LogEvent
	if m.Kind == bus.Reenriched {
		logged, err := m.Logged()
		if err != nil {
			return nil, err
		}
		rows = enrich.Relogged(logged, m.Resolution())
		for i := range logged {
			unknown[enrich.PlaceOf(&rows[i])] = enrich.UnknownObjects(&logged[i].Event, m.Objects)
		}
	} else {
		events, err := m.Events()
		if err != nil {
			return nil, err
		}
		for i := range events {
			if m.Calls {
				events[i].Call = events[i].CallID()
			}
		}
		rows, unknown = enrich.LogEvents(events, m.Resolution(), m.Receipt()), enrich.Incomplete(events, m.Objects)
	}
	lines := make([]Line, len(rows))
	for i := range rows {
		row := &rows[i]
		l, err := export.NewEvent(affinity.Event{Time: row.Time, Counts: row.Counts}, []byte(row.ID), row.Original)
		if err != nil {
			return nil, fmt.Errorf("event %d of a message: %w", i+1, err)
		}
		if !m.Resolved && len(row.ObjectIDs) > 0 {
			l.Event.Unresolved, l.Event.UnknownObjects = true, 0
		}
		l.Event.Call = row.Call != ""
		export.Short(l.Event)
		at := enrich.PlaceOf(row)
		lines[i] = Line{at, Rank{unknown[at], m.ReceivedAt}, l.Event}
	}
	return lines, nil
}
