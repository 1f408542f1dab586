package profile_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/store"
)

// requests records what goes to Bigtable.
type requests struct {
	mu   sync.Mutex
	made []string
}

func (r *requests) add(method string) {
	name := method[strings.LastIndexByte(method, '/')+1:]
	if name == "PingAndWarm" || name == "GetClientConfiguration" {
		return // the client's own
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.made = append(r.made, name)
}

// take returns what was requested since the last call, sorted.
func (r *requests) take() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.Sort(r.made)
	made := strings.Join(r.made, " ")
	r.made = nil
	return made
}

// TestRequests holds what a refresh, a read and a fold ask of Bigtable: a
// refresh writes the log, draws a ticket, reads blocks and log at once, and
// writes the profile; a fold adds two, a late event two.
func TestRequests(t *testing.T) {
	var r requests
	b := newFixture(t, 90, plain)
	b.store = storetest.New(t,
		grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			r.add(method)
			return invoke(ctx, method, req, reply, cc, opts...)
		}),
		grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			r.add(method)
			return open(ctx, desc, cc, method, opts...)
		}))
	b.eng = b.engine()
	b.eng.SetLimits(4, 100, 100, 100, time.Minute)
	b.eng.SetMaxAdditions(0)
	expect := func(what, want string) {
		t.Helper()
		if got := r.take(); got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
	old := func(i int64) store.LogEvent { return bought("u", b.clock-day+i*hour) }

	b.apply(old(1), old(2))
	expect("a refresh without blocks", "MutateRow MutateRows ReadModifyWriteRow ReadRows")
	b.read("u")
	expect("a stored read", "ReadRows")
	b.apply(old(3), old(4))
	expect("a refresh that folds and looks for a dictionary", "CheckAndMutateRow MutateRow MutateRow MutateRows ReadModifyWriteRow ReadRows ReadRows")
	b.apply(bought("u", b.clock-3))
	expect("a refresh with blocks that the process knows", "MutateRow MutateRow ReadModifyWriteRow ReadRows")
	b.eng = b.engine()
	b.eng.SetLimits(4, 100, 100, 100, time.Minute)
	b.eng.SetMaxAdditions(0)
	b.apply(bought("u", b.clock))
	expect("a refresh with blocks", "MutateRow MutateRow ReadModifyWriteRow ReadRows ReadRows")
	b.eng.SetMaxAdditions(3)
	b.apply(bought("u", b.clock-1))
	expect("an addition to what the process has written", "MutateRow MutateRow ReadModifyWriteRow")
	adder := b.engine()
	adder.SetLimits(2, 100, 100, 100, 0)
	apply := func(e store.LogEvent) {
		if _, err := adder.Apply(ctx, b.app(), []store.LogEvent{e}); err != nil {
			t.Fatal(err)
		}
	}
	apply(bought("u", b.clock-2))
	expect("an addition to what is stored, that folds and looks for a dictionary", "CheckAndMutateRow MutateRow MutateRow MutateRow ReadModifyWriteRow ReadRows ReadRows ReadRows ReadRows")
	b.eng.SetMaxAdditions(0)
	b.setStrategy(decaying)
	b.read("u")
	expect("a computed read and its repair", "MutateRow ReadRows ReadRows ReadRows")
	b.read("u")
	expect("the read after it", "ReadRows")
	b.eng.SetLimits(100, 100, 100, 100, time.Minute)
	b.apply(bought("u", b.clock-day+hour+1))
	expect("a late event", "CheckAndMutateRow MutateRow MutateRow ReadModifyWriteRow ReadModifyWriteRow ReadRows")
	if _, err := b.eng.Fold(ctx, b.app(), "u"); err != nil {
		t.Fatal(err)
	}
	// The announcement is one request more than the minimum. Without it the next event
	// of a busy user would make the fold lose.
	expect("a fold by itself, that looks for a dictionary", "CheckAndMutateRow CheckAndMutateRow MutateRow ReadModifyWriteRow ReadRows ReadRows")
	if err := b.recompute(profile.RecomputeOptions{}); err != nil {
		t.Fatal(err)
	}
	expect("a bulk computation: rows, what is outside, blocks, profiles", "MutateRow ReadRows ReadRows ReadRows")
}
