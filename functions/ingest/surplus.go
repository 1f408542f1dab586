package ingest

import (
	"slices"
	"time"

	"github.com/affinityengine/affinity/shared/app/limit"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/event/bus"
	"github.com/affinityengine/affinity/shared/store"
)

// tooMany is the reason for which events of a user are not applied.
const tooMany = "UserToken has sent as many events today as the app's limit permits"

// dropSurplus removes the events of users who have had as many today as they may,
// and counts them as refused. The client learns nothing of it: its other events are
// accepted, and it can do nothing about these today.
func (h handler) dropSurplus(limits limit.Numbers, m bus.Message, events []event.Event) (bus.Message, []event.Event) {
	surplus := h.Limits.Surplus(m.App, limits, len(events), func(i int) string { return events[i].UserToken })
	if len(surplus) == 0 {
		return m, events
	}
	at := time.UnixMilli(m.ReceivedAt).UTC()
	for _, position := range surplus {
		h.Refused.Record(m.App, store.Refused{At: at, Reason: tooMany, Event: recorded(events[position].Raw)})
	}
	var kept []event.Event
	for i := range events {
		if _, dropped := slices.BinarySearch(surplus, i); !dropped {
			kept = append(kept, events[i])
		}
	}
	return m.Part(kept, 0), kept
}
