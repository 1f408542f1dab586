package profile_test

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/affinityengine/affinity/shared/app/limit"
	"github.com/affinityengine/affinity/shared/job/tasks/refresh"
	"github.com/affinityengine/affinity/shared/local/race"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/queue"
	"github.com/affinityengine/affinity/shared/store"
)

// tableRequests counts what goes to Bigtable, by method and table.
type tableRequests struct {
	mu   sync.Mutex
	made map[string]int
}

func (r *tableRequests) add(method string, request any) {
	name := method[strings.LastIndexByte(method, '/')+1:]
	if name == "PingAndWarm" || name == "GetClientConfiguration" {
		return // the client's own
	}
	table := "users" // the reader of single rows sends bytes
	if m, is := request.(interface{ GetTableName() string }); is {
		table = m.GetTableName()[strings.LastIndexByte(m.GetTableName(), '/')+1:]
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.made[name+" "+table]++
}

func (r *tableRequests) take() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	made := r.made
	r.made = map[string]int{}
	return made
}

func (r *tableRequests) options() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			r.add(method, req)
			return invoke(ctx, method, req, reply, cc, opts...)
		}),
		grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			s, err := open(ctx, desc, cc, method, opts...)
			return kindStream{s, method, r}, err
		}),
	}
}

type kindStream struct {
	grpc.ClientStream
	method   string
	requests *tableRequests
}

func (s kindStream) SendMsg(m any) error {
	s.requests.add(s.method, m)
	return s.ClientStream.SendMsg(m)
}

// dueTasks is a queue that takes a name once, as Cloud Tasks does.
type dueTasks struct {
	clock   func() int64
	names   map[string]bool
	due     map[string]int64 // by user, when their next task runs
	created int              // requests
}

func (q *dueTasks) Create(_ context.Context, k queue.Task) error {
	q.created++
	if q.names[k.Name] {
		return nil
	}
	q.names[k.Name] = true
	r, err := refresh.Kind.Decode(k.Body)
	q.due[r.User] = q.clock() + k.Delay.Milliseconds()
	return err
}

// stream is events of users, each in a message of its own.
type stream struct {
	name  string
	users int
	span  time.Duration // from the first event to the last, each user's events spread over it
}

var windowEvents = flag.Int("window-events", 250, "how many events TestRequestsOfWindows sends, by 50")

// What events cost with and without a write window, through three processes. A
// window of w costs at most ceil(span/w)+1 writes of a profile for the events of a user
// within a span, because each user's windows follow a grid. For the table of 1,000 events: -v
// -window-events 1000.
func TestRequestsOfWindows(t *testing.T) {
	race.Skip(t, "it counts requests that come one at a time")
	const processes = 3
	few := *windowEvents / 50
	for _, st := range []stream{
		{"50 events each within 1 s", few, time.Second},
		{"50 events each within 8 s", few, 8 * time.Second},
		{"50 events each within 9 s", few, 9 * time.Second},
		{"50 events each within 60 s", few, time.Minute},
		{"one event each", 50 * few, 10 * time.Second},
	} {
		for _, window := range []time.Duration{0, 2 * time.Second, 10 * time.Second} {
			t.Run(fmt.Sprint(st.users, " users, ", st.name, ", window ", window), func(t *testing.T) {
				made, delays := runStream(t, st, 50*few, window, processes)
				kinds := make([]string, 0, len(made))
				for _, kind := range slices.Sorted(maps.Keys(made)) {
					kinds = append(kinds, fmt.Sprintf("%s %d", kind, made[kind]))
				}
				t.Logf("%s; stored after p50 %d ms, at most %d ms", strings.Join(kinds, ", "), delays[len(delays)/2], delays[len(delays)-1])
				want := 50 * few
				if window > 0 {
					want = min(want, st.users*(int((st.span+window-1)/window)+1))
				}
				if got := made["write profile"]; got > want || got < st.users {
					t.Errorf("%d profile writes, want %d to %d", got, st.users, want)
				}
				if got := delays[len(delays)-1]; got > window.Milliseconds() {
					t.Errorf("an event was stored in a profile after %d ms, want at most %s", got, window)
				}
			})
		}
	}
}

// runStream applies a stream, and returns the requests by kind and after how many ms each
// event was in the stored profile, sorted. A refresh takes no time.
func runStream(t *testing.T, st stream, events int, window time.Duration, processes int) (map[string]int, []int64) {
	r := &tableRequests{made: map[string]int{}}
	b := newFixture(t, 90, plain)
	b.store = storetest.New(t, r.options()...)
	if err := b.apps.SetLimits(ctx, appID, limit.Numbers{WriteWindowMs: int(window.Milliseconds())}); err != nil {
		t.Fatal(err)
	}
	tasks := &dueTasks{clock: func() int64 { return b.clock }, names: map[string]bool{}, due: map[string]int64{}}
	engines := make([]*profile.Engine, processes)
	for i := range engines {
		engines[i] = b.engine()
		engines[i].SetLater(refresh.New(tasks, func() time.Time { return time.UnixMilli(b.clock) }, slog.New(slog.DiscardHandler)).Enqueue)
	}
	var delays []int64
	waiting := map[string][]int64{} // by user, when their events were applied
	end := func() {
		for _, user := range slices.Sorted(maps.Keys(tasks.due)) {
			if tasks.due[user] > b.clock {
				continue
			}
			if _, err := engines[0].RefreshMarked(ctx, b.app(), user); err != nil {
				t.Fatal(err)
			}
			for _, at := range waiting[user] {
				delays = append(delays, tasks.due[user]-at)
			}
			delete(tasks.due, user)
			delete(waiting, user)
		}
	}
	begin, per := b.clock, events/st.users
	for i := range events {
		if per > 1 {
			b.clock = begin + int64(i/st.users)*st.span.Milliseconds()/int64(per-1)
		} else {
			b.clock = begin + int64(i)*st.span.Milliseconds()/int64(events)
		}
		end()
		user := fmt.Sprint("u", i%st.users)
		if _, err := engines[i%processes].Apply(ctx, b.app(), []store.LogEvent{bought(user, b.clock)}); err != nil {
			t.Fatal(err)
		}
		if window == 0 {
			delays = append(delays, 0)
		} else {
			waiting[user] = append(waiting[user], b.clock)
		}
	}
	for range 10 { // until no task is left
		b.clock += window.Milliseconds()
		end()
	}
	slices.Sort(delays)
	if len(delays) != events {
		t.Fatalf("%d events are in stored profiles, want %d", len(delays), events)
	}
	return byKind(r.take(), tasks.created), delays
}

// byKind names the requests of a stream by what they are for.
func byKind(made map[string]int, created int) map[string]int {
	kinds := map[string]int{"create task": created}
	for request, n := range made {
		method, table, _ := strings.Cut(request, " ")
		kind := "other"
		switch {
		case method == "ReadModifyWriteRow":
			kind = "ticket"
		case strings.HasPrefix(method, "MutateRow") && strings.HasPrefix(table, "events"):
			kind = "write log"
		case strings.HasPrefix(method, "MutateRow") && table == "users":
			kind = "write profile"
		case method == "ReadRows":
			kind = cmp.Or(map[string]string{"users": "read user"}[table], "read log and blocks")
		}
		kinds[kind] += n
	}
	return kinds
}
