package store_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/affinityengine/affinity/shared/app/usage"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/store"
)

// twoRegions returns the stores of two regions, and the one over both, for an app of the
// place that it points to. before is called before each write in us.
func twoRegions(t *testing.T, place *store.Place, before func()) (eu, us, both *store.Store) {
	t.Helper()
	hook := grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		if strings.HasSuffix(method, "/MutateRows") {
			before()
		}
		return open(ctx, desc, cc, method, opts...)
	})
	one := grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if strings.HasSuffix(method, "/MutateRow") {
			before()
		}
		return invoke(ctx, method, req, reply, cc, opts...)
	})
	eu, us = storetest.New(t), storetest.New(t, hook, one)
	both, err := store.Regional("eu", "eu", map[string]*store.Store{"eu": eu, "us": us}, func(app string) (store.Place, error) {
		if app == "unknown" {
			return store.Place{}, errors.New("no such app")
		}
		return *place, nil
	})
	must.Succeed(t, err)
	return eu, us, both
}

func object(id, color string) store.Object {
	return store.Object{ID: id, Record: []byte(`{"color":"` + color + `"}`), Filters: store.ObjectFilters{SettingsVersion: 1, Filters: []event.Filter{{Facet: "color", Value: color}}}}
}

// colors returns the colors of the objects of an index by their ids.
func colors(t *testing.T, s *store.Store) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := s.Catalog.ScanObjectFilters(t.Context(), "shop", "products", func(id string, f store.ObjectFilters) error {
		found[id] = f.Filters[0].Value
		return nil
	})
	must.Succeed(t, err)
	return found
}

func nothing(int, string) error { return nil }

func catalogOf(table string) store.AppRows { return store.AppRows{App: "shop", Table: table} }

// Rows lie in the region of their app, what clients change in all regions of its place,
// and nothing is written if the place is unknown.
func TestRegional(t *testing.T) {
	place := store.Place{Read: "us", Write: []string{"us"}}
	eu, us, both := twoRegions(t, &place, func() {})
	ctx := t.Context()
	must.Succeed(t, both.Catalog.PutObjects(ctx, "shop", "products", []store.Object{object("1", "red")}))
	if len(colors(t, eu)) > 0 || colors(t, us)["1"] != "red" || colors(t, both)["1"] != "red" {
		t.Errorf("in eu %v, in us %v, both %v", colors(t, eu), colors(t, us), colors(t, both))
	}
	place = store.Place{Read: "us", Write: []string{"us", "eu"}}
	blue := []store.Object{object("2", "blue"), object("3", "blue")}
	must.Succeed(t, both.Catalog.PutObjects(ctx, "shop", "products", blue))
	must.Succeed(t, both.Catalog.DeleteObjects(ctx, "shop", "products", []string{"3"}))
	if e, u := colors(t, eu), colors(t, us); len(e) != 1 || e["2"] != "blue" || len(u) != 2 {
		t.Errorf("in eu %v, in us %v", e, u)
	}
	must.Succeed(t, both.Catalog.ClearIndex(ctx, "shop", "products"))
	if len(colors(t, eu))+len(colors(t, us)) > 0 {
		t.Error("the index is not clear")
	}
	err := both.Usage.AddUsage(ctx, usage.Batch{App: "unknown", Process: "p"})
	if status.Code(errors.Unwrap(err)) != codes.Unavailable && status.Code(err) != codes.Unavailable {
		t.Errorf("an app without a place: %v", err)
	}
	if err := both.Catalog.PutObjects(ctx, "unknown", "products", []store.Object{object("1", "red")}); err == nil || !strings.Contains(err.Error(), "region") {
		t.Errorf("an app without a place: %v", err)
	}
	must.Succeed(t, both.Users.BeginDelivery(ctx, "message", "2")) // of no app: in the region of the process
	if d, err := eu.Users.Deliveries(ctx, "message"); err != nil || len(d.Open) != 1 {
		t.Errorf("deliveries %+v, %v", d, err)
	}
}

// A copy of the catalog loses to what a client writes before it, between its read and its
// write, or after it.
func TestCopyOfTheCatalogStandsBehind(t *testing.T) {
	place := store.Place{Read: "eu", Write: []string{"eu", "us"}}
	during := func() {}
	eu, us, both := twoRegions(t, &place, func() { during() })
	ctx := t.Context()
	for _, id := range []string{"1", "2", "3", "4", "5"} {
		must.Succeed(t, eu.Catalog.PutObjects(ctx, "shop", "products", []store.Object{object(id, "old")}))
	}
	put := func(id string) {
		must.Succeed(t, both.Catalog.PutObjects(ctx, "shop", "products", []store.Object{object(id, "new")}))
	}
	put("1")
	during = func() { // the copier has read its rows
		during = func() {}
		put("2")
		put("6")
		must.Succeed(t, both.Catalog.DeleteObjects(ctx, "shop", "products", []string{"4"}))
	}
	must.Succeed(t, us.Rows.CopyRows(ctx, eu, "eu", catalogOf(store.TableObjects), nothing))
	put("3")
	if got := colors(t, us)["4"]; got != "old" {
		t.Errorf("the object that was deleted during the copy is %q there: the test shows nothing", got)
	}
	must.Succeed(t, us.Rows.DropStaleCopies(ctx, eu, catalogOf(store.TableObjects), nothing))
	there, here := colors(t, eu), colors(t, us)
	for id, want := range map[string]string{"1": "new", "2": "new", "3": "new", "4": "", "5": "old", "6": "new"} {
		if there[id] != want || here[id] != want {
			t.Errorf("object %s is %q in eu and %q in us, want %q", id, there[id], here[id], want)
		}
	}
	if keys, _, err := us.Rows.MissingRows(ctx, eu, catalogOf(store.TableObjects)); err != nil || len(keys) > 0 {
		t.Errorf("%q are missing, %v", keys, err)
	}
	must.Succeed(t, us.Catalog.DeleteObjects(ctx, "shop", "products", []string{"5"}))
	missing, _, err := us.Rows.MissingRows(ctx, eu, catalogOf(store.TableObjects))
	if err != nil || len(missing) != 1 {
		t.Errorf("%q are missing, %v, want one row", missing, err)
	}
	still := func(want int) {
		t.Helper()
		if n, err := us.Rows.StillMissing(ctx, eu, "shop", store.TableObjects, missing); err != nil || n != want {
			t.Errorf("%d rows are still missing, %v, want %d", n, err, want)
		}
	}
	still(1)
	must.Succeed(t, eu.Catalog.DeleteObjects(ctx, "shop", "products", []string{"5"}))
	still(0)
}

// Counters of both regions add up, however often they are copied, and however far they
// have come.
func TestCopiedCountersAddUp(t *testing.T) {
	place := store.Place{Read: "eu", Write: []string{"eu"}}
	eu, us, _ := twoRegions(t, &place, func() {})
	ctx, day := t.Context(), usage.DayOf(time.Now())
	number := int64(0)
	add := func(s *store.Store, n int64) {
		number++
		b := usage.Batch{App: "shop", Day: day, Process: "p", Number: number, Counts: usage.Counts{Events: n}}
		must.Succeed(t, s.Usage.AddUsage(ctx, b))
		must.Succeed(t, s.Refused.RecordRefused(ctx, "shop", time.Now(), store.Refusals{Counts: map[string]int64{"late": n}}))
	}
	copyTo := func(to, from *store.Store, region string) {
		for _, table := range []string{store.TableUsage, store.TableRefused} {
			must.Succeed(t, to.Rows.CopyRows(ctx, from, region, catalogOf(table), nothing))
		}
	}
	want := func(s *store.Store, n int64) {
		t.Helper()
		days, err := s.Usage.Usage(ctx, "shop", day, day)
		must.Succeed(t, err)
		_, refused, err := s.Refused.ReadRefused(ctx, "shop", time.Now())
		must.Succeed(t, err)
		if days[day].Events != n || refused["late"] != n {
			t.Errorf("%d events and %d refusals, want %d", days[day].Events, refused["late"], n)
		}
	}
	add(eu, 1)
	copyTo(us, eu, "eu")
	add(eu, 2)
	add(us, 4)
	copyTo(us, eu, "eu")
	copyTo(us, eu, "eu")
	want(us, 7)
	for _, table := range []string{store.TableUsage, store.TableRefused} {
		must.Succeed(t, eu.Rows.DeleteRows(ctx, catalogOf(table), nothing))
	}
	add(eu, 8)
	copyTo(eu, us, "us") // back again
	want(eu, 15)
}

// A process starts while the instance of a region does not answer, and uses it as soon as it
// does.
func TestUnreachableRegion(t *testing.T) {
	addr, instance := storetest.Start(t), "late"
	_, client := storetest.OpenInstance(t, addr, instance) // makes the tables
	must.Succeed(t, client.Close())
	var up atomic.Bool
	open := func(opts ...option.ClientOption) (*store.Store, error) {
		opts = append(opts, option.WithEndpoint("passthrough:///"+addr), option.WithoutAuthentication(), option.WithGRPCConnectionPool(1),
			option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())),
			option.WithGRPCDialOption(grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
				if !up.Load() {
					return nil, errors.New("no route")
				}
				return new(net.Dialer).DialContext(ctx, "tcp", addr)
			})))
		return store.Open(t.Context(), store.Config{Project: "test", Instance: instance}, opts...)
	}
	if s, err := open(); err == nil {
		t.Error("Open succeeds anyhow: the test shows nothing")
		must.Succeed(t, s.Close())
	}
	s, err := open(store.Unreachable(slog.New(slog.DiscardHandler), instance))
	must.Succeed(t, err)
	defer func() { must.Succeed(t, s.Close()) }()
	soon, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := s.Usage.AddUsage(soon, usage.Batch{App: "shop", Process: "p"}); err == nil {
		t.Error("a request succeeds")
	}
	up.Store(true)
	for begun := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		err := s.Usage.AddUsage(t.Context(), usage.Batch{App: "shop", Process: "p"})
		if err == nil {
			return
		}
		if status.Code(errors.Unwrap(err)) != codes.Unavailable || time.Since(begun) > 20*time.Second {
			t.Fatal(err) // which would not be answered 503
		}
	}
}
