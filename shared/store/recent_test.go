package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/store"
)

var recentNow = time.Date(2026, 11, 20, 12, 0, 30, 0, time.UTC)

// recentAt is an event of a user that was received some time before recentNow.
func recentAt(user string, before time.Duration) store.RecentEvent {
	at := recentNow.Add(-before).UnixMilli()
	return store.RecentEvent{User: user, ID: fmt.Sprint(before.Milliseconds()), Time: at, Receipt: at, Type: event.View, Name: "Seen", Index: "i", Filters: []string{"a:b"}}
}

func addRecent(t *testing.T, s fixture, app string, events ...store.RecentEvent) {
	t.Helper()
	must.Succeed(t, s.Recent.AddRecent(t.Context(), app, events))
}

// recent returns the users of the sample, and the last time at which one of the events was
// written.
func recent(t *testing.T, s fixture, since time.Time, most int) (users []string, last time.Time) {
	t.Helper()
	events, err := s.Recent.List(t.Context(), app, recentNow, since, most)
	must.Succeed(t, err)
	for _, e := range events {
		users = append(users, e.User)
		if e.Written.After(last) {
			last = e.Written
		}
	}
	return users, last
}

func wantRecent(t *testing.T, s fixture, what string, since time.Time, most int, want ...string) (last time.Time) {
	t.Helper()
	got, last := recent(t, s, since, most)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
	return last
}

// The sample has the events of the last minutes, the newest first.
func testRecent(t *testing.T, s fixture) {
	addRecent(t, s, app, recentAt("b", 2*time.Second), recentAt("d", time.Minute), recentAt("a", time.Second), recentAt("ahead", -45*time.Second),
		recentAt("e", 14*time.Minute), recentAt("old", 15*time.Minute), recentAt("older", time.Hour), recentAt("b", 2*time.Second))
	addRecent(t, s, "other", recentAt("foreign", time.Second))
	last := wantRecent(t, s, "all", time.Time{}, 99, "ahead", "a", "b", "d", "e")
	wantRecent(t, s, "the newest", time.Time{}, 3, "ahead", "a", "b")
	wantRecent(t, s, "none since", last, 99)
	<-time.After(2 * time.Millisecond) // the clock of Bigtable goes on
	addRecent(t, s, app, recentAt("late", 5*time.Minute))
	wantRecent(t, s, "those since", last, 99, "late")
	events, err := s.Recent.List(t.Context(), app, recentNow, time.Time{}, 1)
	must.Succeed(t, err)
	events[0].Written = time.Time{}
	if diff := cmp.Diff(recentAt("ahead", -45*time.Second), events[0]); diff != "" {
		t.Errorf("an event (-want +got):\n%s", diff)
	}
	must.Succeed(t, s.Recent.DropRecent(t.Context(), app, recentNow))
	wantRecent(t, s, "after the drop", time.Time{}, 99, "ahead", "a", "b", "d", "late", "e")
	keys, err := s.Rows.FindRows(t.Context(), store.AppRows{App: app, Table: store.TableRecent}, 99)
	if err != nil || len(keys) != 6 {
		t.Errorf("%d rows (%v), want those of six minutes", len(keys), err)
	}
}

// A purge removes the events of one user that are excluded, in all rows.
func testRecentOfUser(t *testing.T, s fixture) {
	click := recentAt("a+b", 3*time.Second)
	click.Type = event.Click
	addRecent(t, s, app, recentAt("a+b", time.Second), recentAt("a+b", time.Hour), click, recentAt("aab", time.Second), recentAt("a+bc", 2*time.Second))
	addRecent(t, s, "other", recentAt("a+b", time.Second))
	forget := func(excluded func(store.RecentEvent) bool) {
		t.Helper()
		must.Succeed(t, s.Recent.ForgetRecent(t.Context(), app, "a+b", excluded))
	}
	forget(func(e store.RecentEvent) bool { return e.Type == event.Click })
	wantRecent(t, s, "without clicks", time.Time{}, 99, "a+b", "aab", "a+bc")
	forget(func(store.RecentEvent) bool { return true })
	wantRecent(t, s, "without the user", time.Time{}, 99, "aab", "a+bc")
	for of, want := range map[string]int{app: 1, "other": 1} {
		if keys, err := s.Rows.FindRows(t.Context(), store.AppRows{App: of, Table: store.TableRecent}, 99); err != nil || len(keys) != want {
			t.Errorf("%s has rows %q (%v), want %d", of, keys, err, want)
		}
	}
}
