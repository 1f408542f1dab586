package outbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/intake/warehouse"
	"github.com/affinityengine/affinity/shared/intake/warehouse/outbox"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/consent"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/store"
)

// topics record what they take, or fail.
type topics struct {
	parts     [][]string // the IDs of the events of each call
	regions   []string   // of the calls
	deletions []string
	err       error
}

func (r *topics) PublishEvents(_ context.Context, _, region string, rows [][]byte) error {
	var ids []string
	for _, text := range rows {
		var row warehouse.Event
		if err := json.Unmarshal(text, &row); err != nil {
			return err
		}
		ids = append(ids, row.ID)
	}
	r.parts, r.regions = append(r.parts, ids), append(r.regions, region)
	return r.err
}

func (r *topics) PublishDeletion(_ context.Context, _, region string, row []byte) error {
	r.regions = append(r.regions, region)
	r.deletions = append(r.deletions, string(row))
	return r.err
}

func (r *topics) PublishEverywhere(_ context.Context, row []byte) error {
	r.deletions = append(r.deletions, "everywhere "+string(row))
	return r.err
}

var app = config.App{ID: "shop"}

func row(user, id string, at int64, padding int) store.LogEvent {
	sent := fmt.Sprintf(`{"eventType":"view","eventName":"Seen","index":"i","userToken":%q,"objectIDs":["1"],"more":%q}`, user,
		strings.Repeat("x", padding))
	original := schema.Original{ReceivedAt: at + 10, Index: "i", Event: []byte(sent)}
	return store.LogEvent{User: user, ID: id, Time: at, Type: event.View, Receipt: at + 10, Original: original.Append(nil)}
}

// users are known by their states and regions.
type users struct {
	states  map[string]store.User
	regions map[string]string
	asked   *int
}

func (u users) StatesOf(context.Context, string, []string) (map[string]store.User, error) {
	*u.asked++
	return u.states, nil
}

func (u users) RegionOf(_ context.Context, _, user string) (string, error) {
	return u.regions[user], nil
}

func newOutbox(r *topics, states map[string]store.User, asked *int) *outbox.Outbox {
	return outboxOf(r, users{states: states, asked: asked})
}

func outboxOf(r *topics, u users) *outbox.Outbox {
	return outbox.Over(r, u, func() time.Time { return time.UnixMilli(5_000) }, slog.New(slog.DiscardHandler))
}

// What names a user goes to the region in which they live.
func TestRowsGoWhereUsersLive(t *testing.T) {
	r, asked := &topics{}, 0
	o := outboxOf(r, users{map[string]store.User{"bob": {DeletedUntil: 1, ReceivedUntil: 2}},
		map[string]string{"ann": "eu", "bob": "us"}, &asked})
	must.Succeed(t, o.Events(t.Context(), app, []store.LogEvent{row("ann", "1", 1, 0), row("bob", "2", 1, 0), row("ann", "3", 1, 0)}, false))
	at := map[string][]string{}
	for i, region := range r.regions {
		at[region] = append(at[region], r.parts[i]...)
	}
	if len(r.parts) != 2 || !slices.Equal(at["eu"], []string{"1", "3"}) || !slices.Equal(at["us"], []string{"2"}) {
		t.Errorf("published %v", at)
	}
	must.Succeed(t, o.Deletion(t.Context(), app.ID, "bob"))
	if last := r.regions[len(r.regions)-1]; last != "us" {
		t.Errorf("the deletion of bob goes to %q", last)
	}
}

// Events of users who are deleted or have opted out are left out, and the states are read only if there may be some.
func TestEventsOfExcludedUsers(t *testing.T) {
	asked := 0
	r := &topics{}
	o := newOutbox(r, map[string]store.User{
		"gone": {OptedOut: event.AllTypes}, "deleted": {DeletedUntil: 100, ReceivedUntil: 105},
	}, &asked)
	rows := []store.LogEvent{row("ann", "1", 90, 0), row("gone", "2", 900, 0), row("deleted", "3", 100, 0), row("deleted", "4", 101, 0),
		{User: "ann", ID: "damaged"}, row("new", "5", 1, 0)}
	for _, excluded := range []bool{true, false} {
		must.Succeed(t, o.Events(t.Context(), app, rows, excluded))
	}
	if want := [][]string{{"1", "4", "5"}, {"1", "2", "3", "4", "5"}}; asked != 1 || !slices.EqualFunc(r.parts, want, slices.Equal) {
		t.Errorf("%d readings, published %v, want %v", asked, r.parts, want)
	}
}

// Rows are published in parts of bounded size, and an error ends them.
func TestEventsInParts(t *testing.T) {
	asked := 0
	r := &topics{}
	o := newOutbox(r, nil, &asked)
	var rows []store.LogEvent
	for i := range 10 {
		rows = append(rows, row("ann", fmt.Sprint(i), 1, 100_000))
	}
	rows = append(rows, row("ann", "large", 1, 1_000_000), row("ann", "last", 1, 0))
	must.Succeed(t, o.Events(t.Context(), app, rows, false))
	var all []string
	for _, part := range r.parts {
		if len(part) > 2 {
			t.Errorf("a part has %v", part)
		}
		all = append(all, part...)
	}
	if len(all) != len(rows) || all[len(all)-1] != "last" {
		t.Errorf("published %v", all)
	}
	r.err, r.parts = errors.New("away"), nil
	if err := o.Events(t.Context(), app, rows, false); !errors.Is(err, r.err) || len(r.parts) != 1 {
		t.Errorf("%v after %d parts", err, len(r.parts))
	}
	must.Succeed(t, (*outbox.Outbox)(nil).Events(t.Context(), app, rows, true))
	if outbox.Over((*topics)(nil), nil, nil, nil) != nil {
		t.Error("there is an outbox without topics")
	}
}

// A deletion says what the user's state says, and that of an app names nobody.
func TestDeletions(t *testing.T) {
	asked := 0
	r := &topics{}
	o := newOutbox(r, map[string]store.User{"ann": {DeletedUntil: 1_000, ReceivedUntil: 2_000}}, &asked)
	must.Succeed(t, o.Deletion(t.Context(), "shop", "ann"))
	must.Succeed(t, o.Deletion(t.Context(), "shop", "unknown"))
	must.Succeed(t, o.AppDeletion(t.Context(), "shop"))
	want := []string{
		`{"app":"shop","user_token":"ann","deleted_until":"1970-01-01T00:00:01Z","received_until":"1970-01-01T00:00:02Z","written_at":"1970-01-01T00:00:05Z"}`,
		`everywhere {"app":"shop","user_token":"","deleted_until":"1970-01-01T00:00:05Z","received_until":"1970-01-01T00:00:05Z","written_at":"1970-01-01T00:00:05Z"}`,
	}
	if !slices.Equal(r.deletions, want) {
		t.Errorf("published\n%s\nwant\n%s", strings.Join(r.deletions, "\n"), strings.Join(want, "\n"))
	}
}

// Rows have what counts for a purpose of the surface export, whether the log has more or not.
func TestEventsForExport(t *testing.T) {
	r, asked := &topics{}, 0
	setting, err := consent.Setting{}.With([]consent.Purpose{
		{Name: "ads", Types: []event.Type{event.View}, Surfaces: []consent.Surface{consent.Export}},
		{Name: "personal", Default: true, Surfaces: []consent.Surface{consent.Rank}},
	})
	must.Succeed(t, err)
	granted, _, err := setting.Ask(nil, map[string]bool{"ads": true}, affinity.Tombstone{DeletedUntil: 100, ReceivedUntil: 120}, 100)
	must.Succeed(t, err)
	of := app
	of.Purposes = setting
	o := newOutbox(r, map[string]store.User{"ann": {Consents: granted.Append(nil)}, "damaged": {Consents: []byte{7}}}, &asked)
	rows := []store.LogEvent{row("ann", "before", 100, 0), row("ann", "band", 105, 0), row("ann", "after", 200, 0), row("bob", "never", 200, 0), row("damaged", "x", 200, 0)}
	must.Succeed(t, o.Events(t.Context(), of, rows, false))
	if want := [][]string{{"after"}}; !slices.EqualFunc(r.parts, want, slices.Equal) {
		t.Errorf("published %v, want %v", r.parts, want)
	}
	must.Succeed(t, o.Withdrawal(t.Context(), app.ID, "ann", affinity.Tombstone{}))
	if len(r.regions) != 1 {
		t.Errorf("a withdrawal of nothing is published")
	}
	must.Succeed(t, o.Withdrawal(t.Context(), app.ID, "ann", affinity.Tombstone{DeletedUntil: 300, ReceivedUntil: 301}))
	if len(r.regions) != 2 {
		t.Errorf("a withdrawal is not published")
	}
}
