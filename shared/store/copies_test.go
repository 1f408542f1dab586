package store_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/store"
)

// entries are all rows of an app in the schema that is read, as text.
func entries(t *testing.T, l store.Log, n schema.Name) []string {
	t.Helper()
	var all []string
	err := l.Scan(context.Background(), n, store.Range{}, 0, func(e store.Entry) error {
		ev, err := e.Event()
		slices.SortFunc(ev.Counts, func(a, b affinity.Count) int { return strings.Compare(a.Facet+a.Value, b.Facet+b.Value) })
		all = append(all, fmt.Sprint(e.User, " ", e.Pos, " ", ev.Counts, ev.ObjectIDs, " ", string(e.Original)))
		return err
	})
	must.Succeed(t, err)
	return all
}

// A copy never hides an appended row or adds to it, before or after, and is
// there where nothing was.
func testCopiesStayBelow(t *testing.T, s fixture) {
	ctx, n := context.Background(), s.layout.Read
	old := click("u", 1000, affinity.Count{Facet: "color", Value: "Red", N: 1}, affinity.Count{Facet: "size", Value: "L", N: 1})
	old.Original, old.ObjectIDs = []byte("old"), []string{"a"}
	for name, is := range map[string]store.LogEvent{
		"fewer facets": click("u", 1000, affinity.Count{Facet: "color", Value: "Blue", N: 2}),
		"others":       click("u", 1000, affinity.Count{Facet: "a,b", Value: "x", N: 1}),
		"none":         click("u", 1000),
	} {
		is.Original, is.ObjectIDs = []byte("new"), []string{"a"}
		write := map[string]func() error{
			"append":  func() error { return s.log().Append(ctx, []store.LogEvent{is}) },
			"copy":    func() error { return s.log().Copy(ctx, n, []store.LogEvent{old}) },
			"replace": func() error { return s.log().Replace(ctx, n, []store.LogEvent{is}) },
			"delete":  func() error { return s.log().Delete(ctx, []store.LogEvent{is}) },
		}
		for order, want := range map[string]string{
			"copy": "old", "copy copy": "old", "append": "new", "append copy": "new", "copy append": "new", "copy append copy": "new",
			"append copy append": "new", "copy replace": "new", "replace copy": "new", "copy append replace copy": "new",
			"append copy delete": "", "append delete copy": "old",
		} {
			must.Succeed(t, s.log().Delete(ctx, []store.LogEvent{is}))
			for step := range strings.FieldsSeq(order) {
				must.Succeed(t, write[step]())
			}
			var expect []string
			switch want {
			case "old":
				expect = []string{"u {1000 id000001000} [{color Red 1} {size L 1}] [a] old"}
			case "new":
				expect = []string{fmt.Sprint("u {1000 id000001000} ", is.Counts, " [a] new")}
			}
			if diff := cmp.Diff(expect, entries(t, s.log(), n)); diff != "" {
				t.Errorf("%s, %s (-want +got):\n%s", name, order, diff)
			}
			p := score(t, s, clicks, "u", 5000)
			if p.Known != (want != "") || want == "old" && (len(p.Affinities) != 1 || p.Affinities[0].Value != "Red") {
				t.Errorf("%s, %s: profile %+v", name, order, p)
			}
		}
	}
}

// order takes down which tables rows are written to.
type order struct{ tables []string }

func (o *order) stream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	stream, err := open(ctx, desc, cc, method, opts...)
	return &ordered{stream, o}, err
}

func (o *order) unary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	o.note(req)
	return invoke(ctx, method, req, reply, cc, opts...)
}

func (o *order) note(req any) {
	table := ""
	switch r := req.(type) {
	case *bigtablepb.MutateRowsRequest:
		table = r.TableName
	case *bigtablepb.MutateRowRequest:
		table = r.TableName
	case proto.Message:
		return
	}
	o.tables = append(o.tables, table[strings.LastIndexByte(table, '/')+1:])
}

type ordered struct {
	grpc.ClientStream
	o *order
}

func (s *ordered) SendMsg(m any) error {
	s.o.note(m)
	return s.ClientStream.SendMsg(m)
}

// Every row lies in the schema that is read before it lies in another: who
// finds it in another alone knows that it is not on its way.
func TestReadSchemaIsWrittenFirst(t *testing.T) {
	for read, want := range map[schema.Name][]string{
		schema.Wide:   {store.TableEvents, store.TableEvents, store.TableEventsNarrow, store.TableEventsNarrow},
		schema.Narrow: {store.TableEventsNarrow, store.TableEventsNarrow, store.TableEvents, store.TableEvents},
	} {
		o := &order{}
		s := storetest.New(t, grpc.WithChainUnaryInterceptor(o.unary), grpc.WithChainStreamInterceptor(o.stream))
		events := make([]store.LogEvent, 1500) // two requests a table
		for i := range events {
			events[i] = click("u", int64(i))
		}
		l := s.Events.Log(app, schema.Layout{Write: schema.Names, Read: read, Encoding: schema.JSON})
		must.Succeed(t, l.Append(context.Background(), events))
		if !slices.Equal(o.tables, want) {
			t.Errorf("read %s: written %q, want %q", read, o.tables, want)
		}
	}
}

// Ranges begin and end between users and within one, in either schema.
func testRanges(t *testing.T, s fixture) {
	ctx := context.Background()
	var events []store.LogEvent
	for _, user := range []string{"u", "u+", "u0", "v"} {
		for _, ms := range []int64{1000, 2000, 3000} {
			events = append(events, click(user, ms))
		}
	}
	other := s.Events.Log(app+"2", s.layout)
	must.Succeed(t, s.log().Append(ctx, events))
	must.Succeed(t, other.Append(ctx, events[:1]))
	scan := func(part store.Range, since int64) (got []string, places []string) {
		err := s.log().Scan(ctx, s.layout.Read, part, since, func(e store.Entry) error {
			got, places = append(got, fmt.Sprint(e.User, e.Time)), append(places, e.After())
			return nil
		})
		must.Succeed(t, err)
		return got, places
	}
	all, places := scan(store.Range{}, 0)
	if len(all) != len(events) {
		t.Fatalf("%q", all)
	}
	for i, place := range places {
		if got, _ := scan(store.Range{From: place}, 0); !slices.Equal(got, all[i+1:]) {
			t.Errorf("after %q: %q, want %q", place, got, all[i+1:])
		}
		if got, _ := scan(store.Range{To: place}, 0); !slices.Equal(got, all[:i+1]) {
			t.Errorf("before %q: %q, want %q", place, got, all[:i+1])
		}
	}
	// In the order of keys, in which + comes before the comma.
	if got, want := first(scan(store.Range{From: "u", To: "v"}, 0)), []string{"u1000", "u2000", "u3000", "u01000", "u02000", "u03000"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := first(scan(store.Range{From: "v"}, 2000)), []string{"v2000", "v3000"}; !slices.Equal(got, want) {
		t.Errorf("since: %q, want %q", got, want)
	}
	if got, _ := scan(store.Range{From: "v", To: "u"}, 0); len(got) != 0 {
		t.Errorf("an empty stretch holds %q", got)
	}
	rows, err := s.log().Drop(ctx, s.layout.Read, store.Range{From: "u0"}, func() error { return nil }, func(string, int64) error { return nil })
	if got, _ := scan(store.Range{}, 0); rows != 6 || err != nil || !slices.Equal(got, all[:6]) {
		t.Errorf("dropped %d, %v, left %q", rows, err, got)
	}
	if got := entries(t, other, s.layout.Read); len(got) != 1 {
		t.Errorf("another app has %q left", got)
	}
}

func first(a, _ []string) []string { return a }
