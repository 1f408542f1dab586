package ranker

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/rank/ranking"
	"github.com/affinityengine/affinity/shared/store"
)

// A table that does not answer delays one request, and is left alone for some
// seconds.
func TestSlowPairsAreNotWaitedFor(t *testing.T) {
	var calls atomic.Int32
	s := storetest.New(t, grpc.WithStreamInterceptor(func(ctx context.Context, _ *grpc.StreamDesc, _ *grpc.ClientConn, _ string,
		_ grpc.Streamer, _ ...grpc.CallOption) (grpc.ClientStream, error) {
		calls.Add(1)
		<-t.Context().Done()
		return nil, t.Context().Err()
	}))
	var log bytes.Buffer
	now := time.Unix(0, 0)
	x := newStatistics(s, slog.New(slog.NewTextHandler(&log, nil)), func() time.Time { return now })
	x.pairsWait = time.Millisecond
	of := indexStatistics{ref: store.CrowdRef{App: "app", Index: "i", Generation: "g1"}}
	ask := func() {
		t.Helper()
		if got, err := x.neighbours(t.Context(), of, []ranking.Past{{ObjectID: "a", Last: true}}); err != nil || len(got) != 0 {
			t.Errorf("%v, %v, want nothing", got, err)
		}
	}
	ask()
	x.pairsWait = time.Hour // a further wait would not end
	for range 10 {
		ask()
	}
	now = now.Add(pairsRetry)
	x.pairsWait = time.Millisecond
	ask()
	if lines := strings.Count(log.String(), "\n"); lines != 2 || calls.Load() > 2 {
		t.Errorf("%d log lines and %d reads, want 2 and at most 2:\n%s", lines, calls.Load(), log.String())
	}
}
