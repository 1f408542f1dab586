package ranker

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/must"
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
	must.Succeed(t, s.Catalog.PutObjects(t.Context(), "app", "i", objects))
	now := time.Unix(0, 0)
	o := newObjects(s, config.NewCached(config.NewMemory(), time.Hour), slog.New(slog.DiscardHandler), func() time.Time { return now })
	reads.Store(0)
	for _, step := range []struct {
		after time.Duration
		want  int64 // reads up to then
	}{{0, 1}, {0, 1}, {objectTTL*4/5 - 1, 1}, {objectTTL, 2}, {0, 2}} {
		now = now.Add(step.after)
		asked := []ranking.Candidate{{ObjectID: "2"}, {ObjectID: "0"}, {ObjectID: "1"}}
		must.Succeed(t, o.fill(t.Context(), "app", "i", "at", asked))
		for _, c := range asked {
			if want := int64(c.ObjectID[0]-'0'+1) * 1e12; !c.Dated || c.Published != want || c.Object == nil {
				t.Errorf("%s has the date %d, want %d", c.ObjectID, c.Published, want)
			}
		}
		if got := reads.Load(); got != step.want {
			t.Errorf("%d reads, want %d", got, step.want)
		}
	}
	must.Succeed(t, s.Catalog.DeleteObjects(t.Context(), "app", "i", []string{"0"}))
	now = now.Add(objectTTL)
	asked := []ranking.Candidate{{ObjectID: "0"}, {ObjectID: "1"}}
	if err := o.fill(t.Context(), "app", "i", "at", asked); err != nil || asked[0].Object != nil || asked[0].Dated || asked[1].Object == nil {
		t.Errorf("after the deletion of 0: %+v, %v", asked, err)
	}
}

// A cold instance that gets many requests at once reads each object once. While the store is
// away, it ranks by what it has.
func TestColdInstanceAndOutage(t *testing.T) {
	const objects, candidates = 200, 50
	var asked sync.Map // objectID -> *atomic.Int64
	var away atomic.Bool
	s := storetest.New(t, grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string,
		open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		stream, err := open(ctx, desc, cc, method, opts...)
		if err != nil || !strings.HasSuffix(method, "/ReadRows") {
			return stream, err
		}
		if away.Load() {
			return nil, status.Error(codes.PermissionDenied, "away") // the client does not retry it
		}
		return &countingStream{stream, &asked}, nil
	}))
	var all []store.Object
	for i := range objects {
		all = append(all, store.Object{ID: fmt.Sprintf("object-%03d", i), Record: []byte("{}")})
	}
	must.Succeed(t, s.Catalog.PutObjects(t.Context(), "app", "i", all))
	var now atomic.Int64
	var log bytes.Buffer
	o := newObjects(s, config.NewCached(config.NewMemory(), time.Hour), slog.New(slog.NewTextHandler(&log, nil)),
		func() time.Time { return time.Unix(0, now.Load()) })
	fill := func(seed int) error {
		r := rand.New(rand.NewPCG(uint64(seed), 1))
		some := make([]ranking.Candidate, candidates)
		for i, n := range r.Perm(objects)[:candidates] {
			some[i].ObjectID = all[n].ID
		}
		err := o.fill(t.Context(), "app", "i", "", some)
		for _, c := range some {
			if err == nil && c.Object == nil {
				return fmt.Errorf("%s is missing", c.ObjectID)
			}
		}
		return err
	}
	var group errgroup.Group
	for seed := range 500 {
		group.Go(func() error { return fill(seed) })
	}
	must.Succeed(t, group.Wait())
	read := 0
	asked.Range(func(row, n any) bool {
		if read++; n.(*atomic.Int64).Load() != 1 {
			t.Errorf("%s was read %d times", row, n.(*atomic.Int64).Load())
		}
		return true
	})
	if read != objects {
		t.Errorf("500 requests read %d rows, want %d", read, objects)
	}
	away.Store(true)
	for range 100 {
		now.Add(int64(objectStale) / 101)
		if err := fill(int(now.Load())); err != nil {
			t.Fatalf("while the store is away: %v", err)
		}
	}
	now.Add(int64(objectStale))
	if err := fill(1); err == nil {
		t.Error("objects that are too old serve")
	}
	if lines := strings.Count(log.String(), "\n"); lines != 1 {
		t.Errorf("%d log lines of one outage:\n%s", lines, log.String())
	}
}

// countingStream counts the rows that a read asks for.
type countingStream struct {
	grpc.ClientStream
	rows *sync.Map
}

func (s *countingStream) SendMsg(m any) error {
	if r, ok := m.(*bigtablepb.ReadRowsRequest); ok {
		for _, key := range r.Rows.GetRowKeys() {
			n, _ := s.rows.LoadOrStore(string(key), new(atomic.Int64))
			n.(*atomic.Int64).Add(1)
		}
	}
	return s.ClientStream.SendMsg(m)
}
