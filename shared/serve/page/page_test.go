package page

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/catalog"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/fault"
	"github.com/affinityengine/affinity/shared/rank/feed"
	"github.com/affinityengine/affinity/shared/score/strategy"
	"github.com/affinityengine/affinity/shared/store"
)

// With nothing changed, a walk by pages of any size is one large page.
func TestWalkEqualsOnePage(t *testing.T) {
	for _, q := range []Request{{Order: feed.Suggested, User: "ann"}, {Order: feed.Suggested}, {Order: feed.Latest}} {
		w := newWorld(1).fill(50)
		q.Limit = 100
		whole := w.read(t, 0, q)
		if len(whole.Items) != 50 || whole.Cursor != "" || whole.Total != 50 || whole.AsOf != began.UnixMilli() {
			t.Fatalf("one page: %d items of %d, cursor %q", len(whole.Items), whole.Total, whole.Cursor)
		}
		for _, q.Limit = range []int{1, 7, 49, 50} {
			if diff := cmp.Diff(ids(whole), w.walkAll(t, q)); diff != "" {
				t.Errorf("%s of %q, pages of %d (-page +walk):\n%s", q.Order, q.User, q.Limit, diff)
			}
		}
	}
}

func TestPage(t *testing.T) {
	w := newWorld(1).fill(6)
	p := w.read(t, 0, Request{Order: feed.Suggested, User: "ann", Limit: 3})
	if diff := cmp.Diff([]string{"post-002", "post-005", "post-001"}, ids(p)); diff != "" || p.Fallback != "" {
		t.Errorf("ann likes blue: fallback %q (-want +got):\n%s", p.Fallback, diff)
	}
	if got, want := string(p.Items[0].Text), w.store.posts["post-002"].record("post-002"); got != want {
		t.Errorf("a record is %s, want %s", got, want)
	}
	w.orderer.counts["post-004"] = 7
	p = w.read(t, 0, Request{Order: feed.Suggested, User: "bob", Limit: 1})
	if p.Fallback != "popularity" || p.Items[0].ObjectID != "post-004" {
		t.Errorf("bob is unknown: %v, fallback %q", ids(p), p.Fallback)
	}
	p = w.read(t, 0, Request{Order: feed.Latest, Limit: 2})
	if diff := cmp.Diff([]string{"post-000", "post-001"}, ids(p)); diff != "" || p.Fallback != "" {
		t.Errorf("latest (-want +got):\n%s", diff)
	}
}

// A post that is dated in the future appears by itself, and an old one leaves.
func TestScheduledAndOldPosts(t *testing.T) {
	w := newWorld(1).fill(3)
	w.feed.MaxAgeDays = 1
	w.store.posts["soon"] = post{began.UnixMilli() + hour, "red"}
	w.store.posts["old"] = post{began.UnixMilli() - 24*hour, "red"}
	q := Request{Order: feed.Latest, Limit: 10}
	if diff := cmp.Diff([]string{"post-000", "post-001", "post-002", "old"}, ids(w.read(t, 0, q))); diff != "" {
		t.Errorf("at first (-want +got):\n%s", diff)
	}
	first := w.read(t, 0, Request{Order: feed.Latest, Limit: 3})
	w.clock.pass(time.Hour)
	if diff := cmp.Diff([]string{"soon", "post-000", "post-001", "post-002"}, ids(w.read(t, 0, q))); diff != "" {
		t.Errorf("an hour later (-want +got):\n%s", diff)
	}
	q.Cursor = first.Cursor
	if diff := cmp.Diff([]string{"old"}, ids(w.read(t, 0, q))); diff != "" {
		t.Errorf("the walk that began before (-want +got):\n%s", diff)
	}
}

// Records with other dates than their rows, and those that are gone, are left out, and
// the page is full.
func TestRecordsDecide(t *testing.T) {
	w := newWorld(1).fill(9)
	w.store.rows["post-000"] = began.UnixMilli()
	w.store.posts["post-000"] = post{began.UnixMilli() + hour, "red"} // moved to the future
	w.store.rows["post-001"] = began.UnixMilli() - hour
	w.store.posts["post-001"] = post{began.UnixMilli() - 8*hour, "green"} // its place comes later
	w.read(t, 0, Request{Order: feed.Latest, Limit: 1})
	delete(w.store.posts, "post-002") // its row is still in the list
	w.clock.pass(recordTTL)
	q := Request{Order: feed.Latest, Limit: 3}
	if diff := cmp.Diff([]string{"post-003", "post-004", "post-005"}, ids(w.read(t, 0, q))); diff != "" {
		t.Errorf("latest (-want +got):\n%s", diff)
	}
	q = Request{Order: feed.Suggested, User: "ann", Limit: 4}
	if diff := cmp.Diff([]string{"post-005", "post-008", "post-001", "post-004"}, ids(w.read(t, 0, q))); diff != "" {
		t.Errorf("suggested (-want +got):\n%s", diff)
	}
}

func TestWhere(t *testing.T) {
	w := newWorld(1).fill(9)
	w.feed.Where = [][]string{{"color:red", "color:blue"}, {"color:blue"}}
	q := Request{Order: feed.Latest, Limit: 9}
	blue := []string{"post-002", "post-005", "post-008"}
	if diff := cmp.Diff(blue, ids(w.read(t, 0, q))); diff != "" {
		t.Errorf("where (-want +got):\n%s", diff)
	}
	// After a change of the settings, rows have the filters of the old ones.
	w.settings.s = catalog.Settings{Version: 1, AttributesForFaceting: []string{"color"}}
	if diff := cmp.Diff(blue, ids(w.read(t, 0, q))); diff != "" {
		t.Errorf("under new settings (-want +got):\n%s", diff)
	}
	w.settings.s = catalog.Settings{Version: 2, AttributesForFaceting: []string{"size"}}
	if p := w.read(t, 0, q); len(p.Items) != 0 || p.Cursor != "" || p.Total != 0 {
		t.Errorf("color is no facet, and the feed has %v, cursor %q", ids(p), p.Cursor)
	}
}

// An object whose record is damaged is in no feed, and the others are. Filters that need
// too much memory are not made.
func TestRenew(t *testing.T) {
	w := newWorld(1).fill(3)
	w.settings.s = catalog.Settings{Version: 1, AttributesForFaceting: []string{"color"}}
	w.store.damaged = "post-001"
	if diff := cmp.Diff([]string{"post-000", "post-002"}, ids(w.read(t, 0, Request{Order: feed.Latest, Limit: 9}))); diff != "" {
		t.Errorf("with a damaged record (-want +got):\n%s", diff)
	}
	one := store.ObjectFilters{Filters: []event.Filter{{Facet: "color", Value: "red"}}}.Size()
	for room, want := range map[int]int{0: 0, one: 1, 9 * one: 2} {
		rows := []store.DatedObject{{ID: "post-000"}, {ID: "post-001"}, {ID: "post-002"}}
		whole, err := w.instances[0].renew(t.Context(), "shop", w.feed, w.settings.s, rows, room)
		made := 0
		for _, row := range rows {
			made += len(row.Filters.Filters)
		}
		if err != nil || made != want || whole != (want == 2) {
			t.Errorf("%d bytes: filters of %d, whole %v, error %v; want %d", room, made, whole, err, want)
		}
	}
}

func TestCursorOfAnotherFeed(t *testing.T) {
	w := newWorld(1).fill(9)
	p := w.read(t, 0, Request{Order: feed.Latest, Limit: 2})
	for _, change := range []func(*Request){
		func(q *Request) { q.Feed.Name = "sport" },
		func(q *Request) { q.Feed.Version++ },
		func(q *Request) { q.Order = feed.Suggested },
	} {
		q := Request{Feed: w.feed, Order: feed.Latest, Limit: 2, Cursor: p.Cursor}
		change(&q)
		_, err := w.instances[0].Read(t.Context(), config.App{ID: "shop"}, q)
		var refusal *fault.Error
		if !errors.As(err, &refusal) {
			t.Errorf("%+v: %v, want a refusal", q, err)
		}
	}
}

// TestWalkWhileAllChanges is a walk over several instances during which records come, go
// and move, the user has new events, the strategy changes and the crowd statistics are
// swapped, and the store is away at times. It shows every record that was there at its start, and still is, once.
func TestWalkWhileAllChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 120).Draw(t, "posts")
		random := rand.New(rand.NewPCG(2, rapid.Uint64().Draw(t, "seed")))
		w := newWorld(3).fill(n)
		w.feed.MaxAgeDays = 30
		start := w.clock.now().UnixMilli()
		there := map[string]bool{}
		for id := range w.store.posts {
			there[id] = true
		}
		shown := map[string]bool{}
		q := Request{Feed: w.feed, Order: feed.Suggested, User: "ann"}
		for page := 0; ; page++ {
			if page > 4*n+50 {
				t.Fatal("the walk does not end")
			}
			q.Limit = 1 + random.IntN(20)
			away := random.IntN(5) == 0
			if away {
				w.store.set(func(f *fakeStore) { f.fail = errAway })
			}
			p, err := w.instances[random.IntN(3)].Read(t.Context(), config.App{ID: "shop"}, q)
			w.store.set(func(f *fakeStore) { f.fail = nil })
			if away && err != nil {
				w.clock.pass(2 * time.Second)
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, id := range ids(p) {
				if shown[id] {
					t.Fatalf("page %d shows %s again", page, id)
				}
				shown[id] = true
			}
			if q.Cursor = p.Cursor; q.Cursor == "" {
				break
			}
			w.clock.pass(time.Duration(random.IntN(40)) * time.Second)
			w.store.set(func(*fakeStore) { w.change(random, page, start, there) })
		}
		for id := range there {
			if !shown[id] {
				t.Errorf("%s was there from the start to the end and was not shown", id)
			}
		}
	})
}

// change changes something. there loses the posts that are no longer in the walk.
func (w *world) change(random *rand.Rand, page int, start int64, there map[string]bool) {
	all := slices.Collect(maps.Keys(w.store.posts))
	slices.Sort(all)
	for range random.IntN(4) {
		id := all[random.IntN(len(all))]
		p := w.store.posts[id]
		switch random.IntN(7) {
		case 0: // new, some with a date before the start
			w.store.posts[fmt.Sprintf("new-%d-%d", page, random.IntN(1000))] = post{start + (random.Int64N(20)-10)*hour, "blue"}
		case 1:
			if p.at != 0 {
				delete(w.store.posts, id)
				delete(there, id)
				w.store.posts["left"] = post{0, "red"} // never empty
			}
		case 2: // moves within the feed
			p.at = start - random.Int64N(1000)*int64(time.Minute/time.Millisecond)
			w.store.posts[id] = p
		case 3: // moves behind the start, and is new from then on
			p.at = start + hour
			w.store.posts[id] = p
			delete(there, id)
		case 4:
			w.orderer.users["ann"] = map[string]float64{[]string{"red", "green", "blue"}[random.IntN(3)]: random.Float64()}
		case 5:
			w.orderer.strategy.PersonalizationImpact = random.IntN(101)
			w.orderer.strategy.FacetsScoring = []strategy.FacetScore{{FacetName: "color", Score: random.IntN(100)}}
		case 6:
			w.orderer.counts = map[string]float64{id: random.Float64() * 10, all[0]: 3}
		}
	}
}
