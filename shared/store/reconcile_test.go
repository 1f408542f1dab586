package store_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"

	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/store"
)

// second lets something else happen before each write to the table that is written
// second, once.
type second struct {
	table string
	do    func()
}

func (s *second) unary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if named, ok := req.(interface{ GetTableName() string }); ok && strings.HasSuffix(method, "/MutateRow") && strings.HasSuffix(named.GetTableName(), "/"+s.table) && s.do != nil {
		do := s.do
		s.do = nil
		do()
	}
	return invoke(ctx, method, req, reply, cc, opts...)
}

// Of two deliveries of an event with different filters one may come last to the one
// schema and the other to the other: both hold the same in the end.
func TestTwoWritersReconcile(t *testing.T) {
	ctx := context.Background()
	red, blue := affinity.Count{Facet: "color", Value: "Red", N: 1}, affinity.Count{Facet: "color", Value: "Blue", N: 2}
	for _, read := range schema.Names {
		for name, other := range map[string]struct {
			do   func(l store.Log, e store.LogEvent) error
			want []string
		}{
			"written": {func(l store.Log, e store.LogEvent) error {
				e.Counts = []affinity.Count{blue}
				return l.Append(ctx, []store.LogEvent{e})
			}, []string{"u {1000 id000001000} [{color Blue 2}] [] {\"event\":{}}"}},
			"written without filters": {func(l store.Log, e store.LogEvent) error {
				e.Counts = nil
				return l.Append(ctx, []store.LogEvent{e})
			}, []string{"u {1000 id000001000} [] [] {\"event\":{}}"}},
			"deleted": {func(l store.Log, e store.LogEvent) error { return l.Delete(ctx, []store.LogEvent{e}) }, nil},
		} {
			t.Run(string(read)+" "+name, func(t *testing.T) {
				table := map[schema.Name]string{schema.Wide: store.TableEvents, schema.Narrow: store.TableEventsNarrow}[read.Other()]
				s := &second{table: table}
				st := storetest.New(t, grpc.WithChainUnaryInterceptor(s.unary))
				l := st.Events.Log(app, schema.Layout{Write: schema.Names, Read: read, Encoding: schema.JSON})
				e := click("u", 1000, red)
				s.do = func() {
					if err := other.do(l, e); err != nil {
						t.Error(err)
					}
				}
				if err := l.Append(ctx, []store.LogEvent{e}); err != nil {
					t.Fatal(err)
				}
				for _, n := range schema.Names {
					if got := entries(t, l, n); !slices.Equal(got, other.want) {
						t.Errorf("%s holds %q, want %q", n, got, other.want)
					}
				}
			})
		}
	}
}
