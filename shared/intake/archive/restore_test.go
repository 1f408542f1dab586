package archive_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/intake/archive"
	"github.com/affinityengine/affinity/shared/local/functiontest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/store"
)

// looked notes the users in whose log it is asked to look.
type looked struct {
	archive.Profiles
	at chan string
}

func (l looked) StoreOf(ctx context.Context, app config.App, user string) (*store.Store, error) {
	l.at <- user
	return l.Profiles.StoreOf(ctx, app, user)
}

// A restore looks for events in the logs of the users who have a row, and in no others.
func TestLogsOfNewUsersAreNotRead(t *testing.T) {
	b := functiontest.Start(t).Backends
	app, err := b.Config.App(t.Context(), functiontest.App)
	must.Succeed(t, err)
	l := looked{b.Profiles, make(chan string, 10)}
	r := archive.Restorer{Catalog: b.ForImports().Enricher, Store: b.Store, Profiles: l,
		Written: func(context.Context, config.App, []store.LogEvent, profile.Outcome) error { return nil }}
	event := func(user string, unknown int) archive.Event {
		e, err := archive.Decode(&api.ExportedEvent{Time: received, ID: "AAAAAAAAAAA", ReceivedAt: api.AtMillis(received), UnknownObjects: unknown, Filters: []api.ExportedFilter{},
			Event: fmt.Appendf(nil, `{"eventType":"view","eventName":"Seen","index":"i","userToken":%q,"objectIDs":["1"]}`, user)}, time.UnixMilli(received+1))
		must.Succeed(t, err)
		return e
	}
	for i, c := range []struct {
		events          []archive.Event
		present, looked int
	}{
		{[]archive.Event{event("ann", 1), event("bob", 0)}, 0, 0},
		{[]archive.Event{event("ann", 1), event("joe", 0)}, 1, 1},
		{[]archive.Event{event("ann", 0), event("bob", 1), event("sue", 0)}, 1, 2}, // the line knows more of ann's
		{[]archive.Event{event("ann", 1), event("ann", 1)}, 2, 1},
	} {
		done, err := r.Restore(t.Context(), app, c.events)
		if n := len(l.at); err != nil || done.Present != c.present || n != c.looked {
			t.Errorf("restore %d: %d present, looked at %d logs, %v; want %d, %d", i, done.Present, n, err, c.present, c.looked)
		}
		for len(l.at) > 0 {
			if user := <-l.at; user != "ann" && user != "bob" {
				t.Errorf("restore %d looked at the log of %s", i, user)
			}
		}
	}
}
