package store_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/store"
)

const hour = int64(time.Hour / time.Millisecond)

// dated returns an object whose attributes a and "b,c" hold instants, or something else.
func dated(id string, a, bc any) store.Object {
	value := func(v any) string {
		switch v := v.(type) {
		case int:
			return time.UnixMilli(int64(v)).UTC().Format(time.RFC3339Nano)
		case int64:
			return time.UnixMilli(v).UTC().Format("2006-01-02T15:04:05.000Z")
		}
		return fmt.Sprint(v)
	}
	return store.Object{ID: id, Record: []byte(`{"objectID":"x","a":"` + value(a) + `","b,c":"` + value(bc) + `"}`),
		Filters: store.ObjectFilters{SettingsVersion: 3, Filters: []event.Filter{{Facet: "id", Value: id}}}}
}

func idsOf(list []store.DatedObject) []string {
	var ids []string
	for _, o := range list {
		ids = append(ids, o.ID)
	}
	return ids
}

func testListDated(t *testing.T, s fixture) {
	ctx := t.Context()
	const now = int64(1_790_000_000_000)
	objects := []store.Object{
		dated("now", now, now), dated("now, too", now, "none"), dated("future", now+1, 0), dated("hour", now-hour+1, 0),
		dated("later", now-hour, 0), dated("old", now-1000*hour, 0), dated("older", now-1001*hour, 0),
		dated("before 1970", -5*hour, 0), dated("undated", "some day", "null"),
	}
	for _, index := range []string{"posts", "posts,a"} {
		must.Succeed(t, s.Catalog.PutObjects(ctx, app, index, objects, "a", "b,c"))
	}
	list := func(q store.DatedQuery, want ...string) {
		t.Helper()
		q.Index = "posts"
		got, truncated, err := s.Catalog.ListDated(ctx, app, q)
		if err != nil || truncated {
			t.Errorf("%+v: truncated %v, error %v", q, truncated, err)
		}
		if diff := cmp.Diff(want, idsOf(got)); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", q, diff)
		}
	}
	q := store.DatedQuery{Attribute: "a", Newest: now, Oldest: now - 1000*hour}
	list(q, "now", "now, too", "hour", "later", "old")
	q.Oldest = -1
	list(q, "now", "now, too", "hour", "later", "old", "older")
	q.Oldest = -5 * hour
	list(q, "now", "now, too", "hour", "later", "old", "older", "before 1970")
	q.Limit = 3
	list(q, "now", "now, too", "hour")
	q.Keep = func(o store.DatedObject) bool { return o.Filters.Filters[0].Value == o.ID && o.At < now }
	list(q, "hour", "later", "old")
	list(store.DatedQuery{Attribute: "a", Newest: now - 1, Oldest: now - hour}, "hour", "later")
	list(store.DatedQuery{Attribute: "b,c", Newest: now, Oldest: -1}, "now", "before 1970", "future", "hour", "later", "old", "older")
	list(store.DatedQuery{Attribute: "b", Newest: now})
	list(store.DatedQuery{Attribute: "a", Newest: 5, Oldest: 6})

	got, _, err := s.Catalog.ListDated(ctx, app, store.DatedQuery{Index: "posts,a", Attribute: "a", Newest: now, Oldest: now, Limit: 1})
	want := []store.DatedObject{{ID: "now", At: now, Filters: objects[0].Filters}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}
	indexes, err := s.Catalog.DatedIndexes(ctx, app)
	slices.Sort(indexes)
	if diff := cmp.Diff([]string{"posts", "posts,a"}, indexes); err != nil || diff != "" {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}
}

// A date row says whether the record holds a post, as the writer and the repair insert it.
func testDatedPosts(t *testing.T, s fixture) {
	ctx := t.Context()
	post := store.Object{ID: "post", Record: []byte(`{"objectID":"post","a":"2026-01-01","wordpress":"{\"id\":1}"}`)}
	other := store.Object{ID: "other", Record: []byte(`{"objectID":"other","a":"2026-01-01","wordpress":"no object"}`)}
	want := func(what string) {
		t.Helper()
		list, _, err := s.Catalog.ListDated(ctx, app, store.DatedQuery{Index: "blog", Attribute: "a", Newest: math.MaxInt64})
		must.Succeed(t, err)
		got := map[string]bool{}
		for _, o := range list {
			got[o.ID] = o.Post
		}
		if diff := cmp.Diff(map[string]bool{"post": true, "other": false}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	must.Succeed(t, s.Catalog.PutObjects(ctx, app, "blog", []store.Object{post, other})) // no feed names the date yet
	_, err := s.Catalog.InsertDated(ctx, app, store.DatedPart{Index: "blog", Attributes: []string{"a"}, Before: time.Now().Add(time.Hour), Limit: 10},
		func(o store.Object) (store.ObjectFilters, error) { return o.Filters, nil })
	must.Succeed(t, err)
	want("repaired")
	post, other = store.Object{ID: "other", Record: post.Record}, store.Object{ID: "post", Record: other.Record}
	must.Succeed(t, s.Catalog.PutObjects(ctx, app, "blog", []store.Object{post, other}, "a"))
	must.Succeed(t, s.Catalog.PutObjects(ctx, app, "blog", []store.Object{{ID: "post", Record: post.Record}, {ID: "other", Record: other.Record}}, "a"))
	want("written")
}

// An object whose date changes is listed once, where its record says, at once. Its
// old date row goes when a writer comes that cannot take away a later one's.
func testDatesOfObjects(t *testing.T, s fixture) {
	ctx, clock := t.Context(), time.Now()
	s.SetClock(func() time.Time { return clock })
	put := func(attributes []string, objects ...store.Object) {
		t.Helper()
		must.Succeed(t, s.Catalog.PutObjects(ctx, app, "posts", objects, attributes...))
	}
	rows := func(n int, want ...string) {
		t.Helper()
		if got := storedDated(t, s, app); len(got) != n {
			t.Errorf("%d rows, want %d: %q", len(got), n, got)
		}
		got, _, err := s.Catalog.ListDated(ctx, app, store.DatedQuery{Index: "posts", Attribute: "a", Newest: 10 * hour})
		if diff := cmp.Diff(want, idsOf(got)); err != nil || diff != "" {
			t.Errorf("error %v (-want +got):\n%s", err, diff)
		}
	}
	a := []string{"a"}
	put(nil, dated("1", hour, 0)) // before a feed names the attribute
	put(a, dated("2", 2*hour, 0), dated("3", 3*hour, 0))
	rows(2, "3", "2")
	clock = clock.Add(time.Minute)
	put(a, dated("1", 4*hour, 0), dated("2", 5*hour, 0), dated("3", 3*hour, 0))
	rows(3, "2", "1", "3")
	clock = clock.Add(time.Minute)
	put([]string{"a", "b,c"}, dated("3", "no longer", 7*hour))
	got, err := s.ReadDates(ctx, app, "posts", []string{"1", "3", "none"}, []string{"a", "b,c"})
	want := map[string]map[string]int64{"1": {"a": 4 * hour, "b,c": 0}, "3": {"b,c": 7 * hour}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}
	clock = clock.Add(time.Minute)
	put(a, dated("4", hour, 0))
	must.Succeed(t, s.Catalog.DeleteObjects(ctx, app, "posts", []string{"1", "none", "3"}, "a", "b,c"))
	rows(2, "2", "4")
	clock = clock.Add(time.Minute)
	must.Succeed(t, s.Catalog.ClearIndex(ctx, app, "posts", a...))
	rows(0)
}

// storedDated returns the filters of all date rows of an app, by key.
func storedDated(t testing.TB, s fixture, app string) map[string]string {
	t.Helper()
	rows := map[string]string{}
	scanTable(t, s, store.TableDated, app, func(key, _ string, value []byte) {
		rows[key] = string(value)
	})
	return rows
}

// A listing reads few rows when few are wanted, and never more than it may.
func TestListDatedIsNotAScan(t *testing.T) {
	var rows atomic.Int64
	s := storetest.New(t, grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		stream, err := open(ctx, desc, cc, method, opts...)
		return countedRows{stream, &rows}, err
	}))
	var objects []store.Object
	for i := range int64(300) {
		objects = append(objects, dated(fmt.Sprint(i), (1000-i)*hour, 0))
	}
	must.Succeed(t, s.Catalog.PutObjects(t.Context(), app, "posts", objects, "a"))
	for _, test := range []struct {
		limit, max      int
		listed, atMost  int64
		truncated, same bool
	}{
		{limit: 3, max: 5000, listed: 3, atMost: 7},
		{limit: 20, max: 5000, listed: 20, atMost: 63},
		{max: 5000, listed: 300, atMost: 300},
		{max: 300, listed: 300, atMost: 300},
		{max: 299, listed: 299, atMost: 300, truncated: true},
		{max: 100, listed: 100, atMost: 101, truncated: true},
		{limit: 100, max: 100, listed: 100, atMost: 101},
	} {
		rows.Store(0)
		list, truncated, err := s.ListDatedOf(t.Context(), app, store.DatedQuery{Index: "posts", Attribute: "a", Newest: 1000 * hour, Limit: test.limit}, test.max)
		if err != nil || int64(len(list)) != test.listed || truncated != test.truncated || rows.Load() > test.atMost {
			t.Errorf("%+v: %d listed, truncated %v, %d rows read, error %v", test, len(list), truncated, rows.Load(), err)
		}
	}
}

// A listing holds no more than it may, and damaged filters end none.
func TestListDatedIsBounded(t *testing.T) {
	opened, client := storetest.NewWithClient(t)
	s, ctx := fixture{Store: opened, client: client}, t.Context()
	objects := []store.Object{dated("1", 3*hour, 0), dated("2", 2*hour, 0), dated("3", hour, 0)}
	must.Succeed(t, s.Catalog.PutObjects(ctx, app, "posts", objects, "a"))
	q := store.DatedQuery{Index: "posts", Attribute: "a", Newest: 9 * hour}
	for most, want := range map[int]int{0: 3, 1: 0, 100 + objects[0].Filters.Size(): 1, 1000: 3} {
		q.MaxBytes = most
		if list, truncated, err := s.Catalog.ListDated(ctx, app, q); err != nil || len(list) != want || truncated != (want < 3) {
			t.Errorf("%d bytes: %v, truncated %v, error %v; want %d objects", most, idsOf(list), truncated, err, want)
		}
	}
	for key := range storedDated(t, s, app) {
		m := bigtable.NewMutation()
		m.Set("o", "f", bigtable.Now(), []byte("damaged"))
		must.Succeed(t, s.client.Open(store.TableDated).Apply(ctx, key, m))
	}
	q.MaxBytes = 0
	list, _, err := s.Catalog.ListDated(ctx, app, q)
	if err != nil || len(list) != 3 || list[0].Filters.SettingsVersion != -1 || list[0].Filters.Filters != nil {
		t.Errorf("damaged filters: %+v, error %v", list, err)
	}
}

// countedRows counts the rows of answers.
type countedRows struct {
	grpc.ClientStream
	rows *atomic.Int64
}

func (c countedRows) RecvMsg(msg any) error {
	err := c.ClientStream.RecvMsg(msg)
	if r, ok := msg.(*btpb.ReadRowsResponse); ok && err == nil {
		for _, chunk := range r.Chunks {
			if chunk.GetCommitRow() {
				c.rows.Add(1)
			}
		}
	}
	return err
}
