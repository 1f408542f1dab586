package store_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/catalog"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/store"
)

// scanTable passes the newest cell of each column of an app's rows to fn.
func scanTable(t testing.TB, s fixture, table, app string, fn func(key, column string, value []byte)) {
	t.Helper()
	err := s.client.Open(table).ReadRows(t.Context(), bigtable.PrefixRange(app+","), func(r bigtable.Row) bool {
		for _, items := range r {
			for _, item := range items {
				fn(r.Key(), item.Column, item.Value)
			}
		}
		return true
	}, bigtable.RowFilter(bigtable.LatestNFilter(1)))
	must.Succeed(t, err)
}

// stepper holds up a writer at each request to the store, until the model lets it
// go on, or crashes it.
type stepper struct {
	waits   chan bool // true: at a request; false: the writer has ended
	goes    chan bool // false: crash
	crashed bool
	began   time.Time
	ended   bool
}

type stepperKey struct{}

func (w *stepper) request() error {
	if !w.crashed {
		w.waits <- true
		w.crashed = !<-w.goes
	}
	if w.crashed {
		return status.Error(codes.PermissionDenied, "crashed by the test")
	}
	return nil
}

func stepped() []grpc.DialOption {
	step := func(ctx context.Context) error {
		if w, ok := ctx.Value(stepperKey{}).(*stepper); ok {
			return w.request()
		}
		return nil
	}
	return []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			if err := step(ctx); err != nil {
				return err
			}
			return invoke(ctx, method, req, reply, cc, opts...)
		}),
		grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			if err := step(ctx); err != nil {
				return nil, err
			}
			return open(ctx, desc, cc, method, opts...)
		}),
	}
}

// datedModel runs writers that interleave at each request.
type datedModel struct {
	fixture
	app   string
	clock *atomic.Int64
	// unsure says that a writer crashed that took so long that others may have
	// overtaken it: only the repair puts its date rows right.
	unsure bool
}

var modelAttributes = []string{"a", "b,c"}

// write draws a write of one or two objects, a deletion or a clear.
func (m *datedModel) write(t *rapid.T) func(context.Context) error {
	attributes := modelAttributes[:rapid.SampledFrom([]int{1, 2, 2}).Draw(t, "attributes")]
	ids := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"1", "2,3"}), 1, 2, rapid.ID).Draw(t, "ids")
	switch rapid.IntRange(0, 9).Draw(t, "kind") {
	case 0:
		return func(ctx context.Context) error { return m.Catalog.ClearIndex(ctx, m.app, "posts", attributes...) }
	case 1, 2:
		return func(ctx context.Context) error {
			return m.Catalog.DeleteObjects(ctx, m.app, "posts", ids, attributes...)
		}
	}
	instant := rapid.SampledFrom([]any{hour, hour, 2 * hour, "none"})
	var objects []store.Object
	for _, id := range ids {
		o := dated(id, instant.Draw(t, "a"), instant.Draw(t, "b,c"))
		o.Filters.Filters = []event.Filter{{Facet: "f", Value: fmt.Sprint(rapid.IntRange(0, 2).Draw(t, "filter"))}}
		objects = append(objects, o)
	}
	return func(ctx context.Context) error {
		return m.Catalog.PutObjects(ctx, m.app, "posts", objects, attributes...)
	}
}

// start runs a write up to its first request.
func (m *datedModel) start(write func(context.Context) error) *stepper {
	w := &stepper{waits: make(chan bool), goes: make(chan bool), began: m.now()}
	go func() {
		_ = write(context.WithValue(context.Background(), stepperKey{}, w)) // an error is a crash
		w.waits <- false
	}()
	w.ended = !<-w.waits
	return w
}

func (m *datedModel) now() time.Time { return time.UnixMilli(m.clock.Load()) }

// step lets a writer make one request, or crashes it.
func (m *datedModel) step(w *stepper, crash bool) {
	if crash && m.now().Sub(w.began) >= store.Overtake/2 {
		m.unsure = true
	}
	w.goes <- !crash
	w.ended = !<-w.waits
}

// round runs some writers. Each begins at any time.
func (m *datedModel) round(t *rapid.T) {
	var open []*stepper
	for left := rapid.IntRange(1, 3).Draw(t, "writers"); left > 0 || len(open) > 0; {
		if left > 0 && (len(open) == 0 || rapid.IntRange(0, 2).Draw(t, "start") == 0) {
			left--
			open = append(open, m.start(m.write(t)))
		} else {
			m.step(open[rapid.IntRange(0, len(open)-1).Draw(t, "writer")], rapid.IntRange(0, 19).Draw(t, "crash") == 0)
		}
		m.clock.Add(rapid.SampledFrom([]int64{0, 1, 1, 4_000, 11_000}).Draw(t, "ms"))
		open = slices.DeleteFunc(open, func(w *stepper) bool { return w.ended })
	}
}

// wantedRows returns the date rows that the stored objects want, and the objects that
// ListDated should list, by key and by attribute.
func (m *datedModel) wantedRows(t testing.TB) (rows map[string]string, listed map[string][]string) {
	records, filters := map[string][]byte{}, map[string]string{}
	scanTable(t, m.fixture, store.TableObjects, m.app, func(key, column string, value []byte) {
		switch id := strings.TrimPrefix(key, m.app+",posts,"); column {
		case "o:record":
			records[id] = value
		case "o:filters":
			filters[id] = string(value)
		}
	})
	rows, listed = map[string]string{}, map[string][]string{}
	for _, attribute := range modelAttributes {
		type at struct {
			id string
			ms int64
		}
		var all []at
		for id, record := range records {
			if ms, ok := catalog.Date(record, attribute); ok {
				all = append(all, at{id, ms})
				rows[store.DatedKey(m.app, "posts", attribute, ms, id)] = filters[id]
			}
		}
		slices.SortFunc(all, func(a, b at) int {
			if a.ms != b.ms {
				return int(b.ms - a.ms)
			}
			return strings.Compare(a.id, b.id)
		})
		for _, o := range all {
			listed[attribute] = append(listed[attribute], o.id)
		}
	}
	return rows, listed
}

// repair inserts and sweeps in parts of two rows.
func (m *datedModel) repair(t testing.TB) {
	part := store.DatedPart{Index: "posts", Attributes: modelAttributes, Before: m.now().Add(-10 * time.Minute), Limit: 2}
	keep := func(o store.Object) (store.ObjectFilters, error) { return o.Filters, nil }
	for _, do := range []func() (store.DatedRepair, error){
		func() (store.DatedRepair, error) { return m.Catalog.InsertDated(t.Context(), m.app, part, keep) },
		func() (store.DatedRepair, error) { return m.Catalog.SweepDated(t.Context(), m.app, part) },
	} {
		for part.After = ""; ; {
			done, err := do()
			must.Succeed(t, err)
			if part.After = done.Last; done.Done {
				break
			}
		}
	}
}

// Whatever writers do, one after the other or at once, and wherever they die: no
// object lacks its date rows, and after the repair there are no others. A writer that
// dies after others have overtaken it may leave an object to the repair.
func TestDatedModel(t *testing.T) {
	var clock atomic.Int64
	s, client := storetest.NewDeployed(t, stepped()...)
	clock.Store(time.Now().UnixMilli())
	s.SetClock(func() time.Time { return time.UnixMilli(clock.Load()) })
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		m := &datedModel{fixture: fixture{Store: s, client: client}, app: fmt.Sprint("model", run), clock: &clock}
		for range rapid.IntRange(1, 6).Draw(rt, "rounds") {
			m.round(rt)
			m.check(rt, t)
		}
		clock.Add(int64(11 * time.Minute / time.Millisecond))
		m.repair(t)
		rows, listed := m.wantedRows(t)
		if diff := cmp.Diff(rows, storedDated(t, m.fixture, m.app)); diff != "" {
			rt.Fatalf("rows after the repair (-want +got):\n%s", diff)
		}
		m.lists(rt, t, listed, modelAttributes...)
	})
}

// check checks that no date row is missing, and what is listed, by the attribute that
// every writer knows.
func (m *datedModel) check(rt *rapid.T, t testing.TB) {
	if m.unsure {
		return
	}
	rows, listed := m.wantedRows(t)
	stored := storedDated(t, m.fixture, m.app)
	for key := range rows {
		if !strings.HasPrefix(key, m.app+",posts,a,") {
			continue
		}
		if _, ok := stored[key]; !ok {
			rt.Fatalf("%q is missing, there are %q", key, slices.Sorted(maps.Keys(stored)))
		}
	}
	m.lists(rt, t, listed, modelAttributes[0])
}

// lists checks that every object is listed, and once; what has been deleted since is
// for the caller to leave out.
func (m *datedModel) lists(rt *rapid.T, t testing.TB, want map[string][]string, attributes ...string) {
	for _, attribute := range attributes {
		list, _, err := m.Catalog.ListDated(t.Context(), m.app, store.DatedQuery{Index: "posts", Attribute: attribute, Newest: 10 * hour})
		if err != nil {
			rt.Fatal(err)
		}
		got := slices.DeleteFunc(idsOf(list), func(id string) bool { return !slices.Contains(want[attribute], id) })
		if diff := cmp.Diff(want[attribute], got, cmpopts.EquateEmpty()); diff != "" {
			rt.Fatalf("listed by %s (-want +got):\n%s", attribute, diff)
		}
	}
}
