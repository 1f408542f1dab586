package profile_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"

	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/store"
)

// blockRows counts the rows of the table of histories that a client receives.
type blockRows struct{ atomic.Int64 }

func (c *blockRows) intercept(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	stream, err := open(ctx, desc, cc, method, opts...)
	return &countedStream{ClientStream: stream, rows: c}, err
}

type countedStream struct {
	grpc.ClientStream
	rows *blockRows
	on   bool // it reads histories
}

func (s *countedStream) SendMsg(m any) error {
	r, ok := m.(*bigtablepb.ReadRowsRequest)
	s.on = ok && strings.HasSuffix(r.TableName, "/"+store.TableHistories)
	return s.ClientStream.SendMsg(m)
}

func (s *countedStream) RecvMsg(m any) error {
	if err := s.ClientStream.RecvMsg(m); err != nil {
		return err
	}
	if s.on { // the in-process Bigtable sends each row in a message of its own
		s.rows.Add(1)
	}
	return nil
}

// A recompute reads blocks as one stream for each group of users. The stream
// ends with the group: one that ran to the end of the shard would read the
// blocks of all later groups, and the shard would cost the square of its users.
func TestGroupReadsItsOwnBlocks(t *testing.T) {
	var rows blockRows
	b := newFixtureOn(t, storetest.NewDeployed, 90, plain, grpc.WithChainStreamInterceptor(rows.intercept))
	const users = 3 * 256 // three groups
	events := make([]store.LogEvent, users)
	for i := range events {
		events[i] = bought(fmt.Sprintf("u%04d", i), b.clock-hour)
	}
	b.eng.SetInlineEvents(0)
	b.importEvents(events...)
	blocks := []string{"u0003", "u0255", "u0256", "u0300", "u0767"}
	for _, user := range blocks {
		if done, err := b.eng.Fold(ctx, b.app(), user); !done || err != nil {
			t.Fatalf("fold %s: %v, %v", user, done, err)
		}
	}
	for _, c := range []struct {
		name string
		o    profile.RecomputeOptions
		want int
	}{
		{"recompute", profile.RecomputeOptions{}, len(blocks)},
		// A nightly round also lists the keys.
		{"nightly round", profile.RecomputeOptions{Maintain: true}, 2 * len(blocks)},
	} {
		b.eng.NeverFold()
		rows.Store(0)
		if err := b.recompute(c.o); err != nil {
			t.Fatal(err)
		}
		if got := rows.Load(); got != int64(c.want) {
			t.Errorf("%s: %d rows of blocks were read, want %d", c.name, got, c.want)
		}
	}
}
