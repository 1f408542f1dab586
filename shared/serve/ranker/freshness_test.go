package ranker

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/rank/ranking"
	"github.com/affinityengine/affinity/shared/store"
)

// The dates of candidates stay in memory with their filters: within the TTL a
// request with freshness reads no record.
func TestDatesStayInMemory(t *testing.T) {
	var reads atomic.Int64
	s := storetest.New(t, grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string,
		open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		if strings.HasSuffix(method, "/ReadRows") {
			reads.Add(1)
		}
		return open(ctx, desc, cc, method, opts...)
	}))
	var objects []store.Object
	for i := range 3 {
		id := fmt.Sprint(i)
		objects = append(objects, store.Object{ID: id, Record: fmt.Appendf(nil, `{"at":%d}`, int64(i+1)*1e12)})
	}
	if err := s.PutObjects(t.Context(), "app", "i", objects); err != nil {
		t.Fatal(err)
	}
	now := time.Unix(0, 0)
	o := newObjects(s, config.NewCached(config.NewMemory(), time.Hour), func() time.Time { return now })
	reads.Store(0)
	for _, step := range []struct {
		after time.Duration
		want  int64 // reads up to then
	}{{0, 1}, {0, 1}, {o.cache.due - 1, 1}, {objectTTL, 2}, {0, 2}} {
		now = now.Add(step.after)
		asked := []ranking.Candidate{{ObjectID: "2"}, {ObjectID: "0"}, {ObjectID: "1"}}
		if err := o.fill(t.Context(), "app", "i", "at", asked); err != nil {
			t.Fatal(err)
		}
		for _, c := range asked {
			if want := int64(c.ObjectID[0]-'0'+1) * 1e12; !c.Dated || c.Published != want || c.Object == nil {
				t.Errorf("%s has the date %d, want %d", c.ObjectID, c.Published, want)
			}
		}
		if got := reads.Load(); got != step.want {
			t.Errorf("%d reads, want %d", got, step.want)
		}
	}
	if err := s.DeleteObjects(t.Context(), "app", "i", []string{"0"}); err != nil {
		t.Fatal(err)
	}
	now = now.Add(objectTTL)
	asked := []ranking.Candidate{{ObjectID: "0"}, {ObjectID: "1"}}
	if err := o.fill(t.Context(), "app", "i", "at", asked); err != nil || asked[0].Object != nil || asked[0].Dated || asked[1].Object == nil {
		t.Errorf("after the deletion of 0: %+v, %v", asked, err)
	}
}
