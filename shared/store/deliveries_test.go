package store_test

import (
	"context"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/store"
)

func TestDeliveries(t *testing.T) {
	// Each write is executed twice: its first answer is lost.
	var left atomic.Int64
	lost := grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		err := invoke(ctx, method, req, reply, cc, opts...)
		if strings.HasSuffix(method, "Row") && err == nil && left.Add(-1) >= 0 {
			return status.Error(codes.DeadlineExceeded, "answer lost by the test")
		}
		return err
	})
	for name, open := range map[string]func(testing.TB, ...grpc.DialOption) *store.Store{
		"InProcess": storetest.New,
		"AsDeployed": func(tb testing.TB, o ...grpc.DialOption) *store.Store {
			s, _ := storetest.NewDeployed(tb, o...)
			return s
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, ctx := open(t, lost), t.Context()
			want := func(what string, want store.Deliveries) {
				t.Helper()
				if got, err := s.Users.Deliveries(ctx, "7"); !reflect.DeepEqual(got, want) || err != nil {
					t.Errorf("%s: %+v, %v; want %+v", what, got, err, want)
				}
			}
			do := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
				left.Store(1)
			}
			left.Store(1)
			want("no delivery", store.Deliveries{})
			do(s.Users.BeginDelivery(ctx, "7", "a"))
			want("began", store.Deliveries{Open: []string{"a"}})
			do(s.Users.BeginDelivery(ctx, "7", "b"))
			do(s.Users.BeginDelivery(ctx, "8", "c"))
			want("a second began", store.Deliveries{Open: []string{"a", "b"}})
			do(s.Users.EndDelivery(ctx, "7", "a", store.DeliveryFailed))
			want("the first failed", store.Deliveries{Open: []string{"b"}, Failed: 1})
			do(s.Users.EndDelivery(ctx, "7", "b", store.DeliveryEnded))
			want("the second ended", store.Deliveries{Failed: 1})
			do(s.Users.EndDelivery(ctx, "7", "late", store.DeliveryFailed))
			do(s.Users.BeginDelivery(ctx, "7", "late"))
			want("a third whose beginning arrives late", store.Deliveries{Failed: 2})
			do(s.Users.EndDelivery(ctx, "7", "c", store.DeliveryWaited))
			want("a fourth that did not begin", store.Deliveries{Failed: 2, Waited: 1})
			do(s.Users.ForgetDeliveries(ctx, "7"))
			want("forgotten", store.Deliveries{})
		})
	}
}
