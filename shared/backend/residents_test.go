package backend_test

import (
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/usage"
	"github.com/affinityengine/affinity/shared/backend"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/profile/location"
	"github.com/affinityengine/affinity/shared/store"
)

// residents are the tables of two regions, and an app whose users live in either. The names of users begin with that of
// their region.
type residents struct {
	*testing.T
	store   *store.Store
	tables  map[string]*bigtable.Client
	written backend.Buffered
}

var regions = []string{"eu", "us"}

func newResidents(t *testing.T) residents {
	t.Helper()
	r := residents{T: t, tables: map[string]*bigtable.Client{}}
	stores := map[string]*store.Store{}
	for _, region := range regions {
		stores[region], r.tables[region] = storetest.NewWithClient(t)
	}
	var err error
	r.store, err = store.Regional("eu", "eu", stores, func(string) (store.Place, error) {
		return store.Place{Read: "eu", Write: []string{"eu"}, Users: regions}, nil
	})
	must.Succeed(t, err)
	apps := config.NewMemory()
	must.Succeed(t, apps.CreateApp(t.Context(), config.App{ID: "shop", Region: "eu"}))
	for _, mode := range []config.ResidencyMode{config.ResidencyPrepare, config.ResidencyOn} {
		_, err := apps.SetResidency(t.Context(), "shop", config.Residency{Mode: mode, Regions: regions}, 0)
		must.Succeed(t, err)
	}
	app, err := apps.App(t.Context(), "shop")
	must.Succeed(t, err)
	for _, user := range []string{"eu-ann", "eu-bob", "us-cyd", "us-dan"} {
		_, err := location.New(r.store.In, "eu", time.Now).Region(t.Context(), app, user, user[:2])
		must.Succeed(t, err)
	}
	r.written = backend.New(slog.New(slog.DiscardHandler), time.Now, r.store, apps, 0).Buffered()
	return r
}

// wantNames checks whom a table of each region names.
func (r residents) wantNames(table string, want map[string][]string) {
	r.Helper()
	for _, region := range regions {
		var text strings.Builder
		err := r.tables[region].Open(table).ReadRows(r.Context(), bigtable.InfiniteRange(""), func(row bigtable.Row) bool {
			text.WriteString(row.Key())
			for _, cells := range row {
				for _, cell := range cells {
					text.WriteString(" " + cell.Column + " " + string(cell.Value))
				}
			}
			return true
		})
		must.Succeed(r, err)
		var named []string
		for _, user := range []string{"eu-ann", "eu-bob", "us-cyd", "us-dan"} {
			if strings.Contains(text.String(), user) {
				named = append(named, user)
			}
		}
		if !slices.Equal(named, want[region]) {
			r.Errorf("%s of %s names %v, want %v", table, region, named, want[region])
		}
	}
}

// Hot users are listed where they live, and those of all regions are read together.
func TestHotUsersOfResidents(t *testing.T) {
	r, today := newResidents(t), usage.DayOf(time.Now())
	put := func(users ...usage.User) {
		t.Helper()
		must.Succeed(t, r.written.PutHotUsers(t.Context(), "shop", today, 0, "p", users))
	}
	all := []usage.User{{Token: "us-cyd", Events: 9}, {Token: "eu-ann", Events: 5}, {Token: "us-dan", Events: 2}}
	put(all...)
	r.wantNames(store.TableUsage, map[string][]string{"eu": {"eu-ann"}, "us": {"us-cyd", "us-dan"}})
	got, err := r.store.Usage.HotUsers(t.Context(), "shop", today, today)
	must.Succeed(t, err)
	if diff := cmp.Diff(all, got); diff != "" {
		t.Error(diff)
	}
	must.Succeed(t, r.store.Usage.ForgetHotUser(t.Context(), "shop", "us", "us-cyd", time.Now(), time.Now()))
	deleted, err := r.written.Deleted(t.Context(), "shop", all)
	if must.Succeed(t, err); !slices.Equal(slices.Collect(maps.Keys(deleted)), []string{"us-cyd"}) {
		t.Errorf("deleted: %v", deleted)
	}
	r.wantNames(store.TableUsage, map[string][]string{"eu": {"eu-ann"}, "us": {"us-dan"}})
	put(all[1])
	r.wantNames(store.TableUsage, map[string][]string{"eu": {"eu-ann"}}) // the list of us is empty now
}

// Refused events are kept where their users live. One that may name users of two regions is counted alone.
func TestRefusalsOfResidents(t *testing.T) {
	r, now := newResidents(t), time.Now()
	of := func(events ...string) store.Refusals {
		all := store.Refusals{Counts: map[string]int64{"bad": int64(len(events)), "worse": 3}}
		for i, e := range events {
			all.Events = append(all.Events, store.Refused{At: now.Add(time.Duration(i) * time.Second), Reason: "bad",
				Event: json.RawMessage(e), Sequence: int64(i)})
		}
		return all
	}
	cut, err := json.Marshal(`{"userToken":"us-cyd","authenticatedUserToken":"eu-`)
	must.Succeed(t, err)
	must.Succeed(t, r.written.RecordRefused(t.Context(), "shop", now, of(`{"userToken":"us-cyd"}`, `{"usertoken":"eu-ann","eventName":7}`,
		`{"eventName":"nobody's"}`, `{"userToken":"us-dan","authenticatedUserToken":"eu-bob"}`, string(cut),
		`{"type":"track","context":{"anonymousId":"us-dan"}}`)))
	r.wantNames(store.TableRefused, map[string][]string{"eu": {"eu-ann"}, "us": {"us-cyd", "us-dan"}})
	list, counts, err := r.store.Refused.ReadRefused(t.Context(), "shop", now)
	must.Succeed(t, err)
	var read []string
	for _, e := range list {
		read = append(read, string(e.Event))
	}
	want := []string{`{"type":"track","context":{"anonymousId":"us-dan"}}`, "", "", `{"eventName":"nobody's"}`,
		`{"usertoken":"eu-ann","eventName":7}`, `{"userToken":"us-cyd"}`}
	if diff := cmp.Diff(want, read); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]int64{"bad": 6, "worse": 3}, counts); diff != "" {
		t.Error(diff)
	}
	if n, err := r.store.Refused.ForgetRefused(t.Context(), "shop", "us-cyd"); err != nil || n != 1 {
		t.Errorf("%d forgotten, %v", n, err)
	}
	r.wantNames(store.TableRefused, map[string][]string{"eu": {"eu-ann"}, "us": {"us-dan"}})
}

// So are refused links.
func TestRefusedLinksOfResidents(t *testing.T) {
	r, now := newResidents(t), time.Now()
	all := store.Refusals{Counts: map[string]int64{"late": 2}}
	for i, tokens := range [][2]string{{"us-cyd", "us-dan"}, {"us-dan", "eu-bob"}} {
		l := store.RefusedLink{User: tokens[0], Known: tokens[1], Event: "e", Reason: "late", At: now, Sequence: int64(i + 1)}
		all.Events = append(all.Events, l.Refusal())
	}
	must.Succeed(t, r.written.RecordRefusedLinks(t.Context(), "shop", now, all))
	r.wantNames(store.TableRefused, map[string][]string{"us": {"us-cyd", "us-dan"}})
	list, days, err := r.store.Refused.ReadRefusedLinks(t.Context(), "shop", now)
	if must.Succeed(t, err); len(list) != 1 || list[0].User != "us-cyd" || list[0].Known != "us-dan" || len(days) != 1 {
		t.Errorf("%+v, %v", list, days)
	}
}

// The sample of recent events lies where users live, and is read in the order of the events.
func TestRecentEventsOfResidents(t *testing.T) {
	r, now := newResidents(t), time.Now()
	var events []store.RecentEvent
	for i, user := range []string{"eu-ann", "us-cyd", "eu-ann", "us-dan", "eu-bob"} {
		events = append(events, store.RecentEvent{User: user, ID: "e", Type: event.View, Receipt: now.Add(time.Duration(i) * time.Second).UnixMilli()})
	}
	must.Succeed(t, r.written.AddRecent(t.Context(), "shop", events))
	r.wantNames(store.TableRecent, map[string][]string{"eu": {"eu-ann", "eu-bob"}, "us": {"us-cyd", "us-dan"}})
	list := func(most int) (users []string) {
		t.Helper()
		all, err := r.store.Recent.List(t.Context(), "shop", now, time.Time{}, most)
		must.Succeed(t, err)
		for _, e := range all {
			users = append(users, e.User)
		}
		return users
	}
	if got := list(4); !slices.Equal(got, []string{"eu-bob", "us-dan", "eu-ann", "us-cyd"}) {
		t.Errorf("recent: %v", got)
	}
	must.Succeed(t, r.store.Recent.ForgetRecent(t.Context(), "shop", "us-cyd", func(store.RecentEvent) bool { return true }))
	r.wantNames(store.TableRecent, map[string][]string{"eu": {"eu-ann", "eu-bob"}, "us": {"us-dan"}})
	must.Succeed(t, r.written.DropRecent(t.Context(), "shop", now.Add(time.Hour)))
	r.wantNames(store.TableRecent, nil)
}
