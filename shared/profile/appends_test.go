package profile_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/deadline"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/store"
)

// writes holds the first write of one row of the log until the test lets it go on, and
// records the rows of each request that writes several.
type writes struct {
	begun, goOn chan struct{}
	held        atomic.Bool
	mu          sync.Mutex
	rows        []int
	fail        func(key string) error // of a request with a row; nil: none fails
}

func newWrites() *writes { return &writes{begun: make(chan struct{}), goOn: make(chan struct{})} }

func (w *writes) unary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if m, ok := req.(*btpb.MutateRowRequest); ok && strings.HasSuffix(m.TableName, "/"+store.TableEvents) && w.held.CompareAndSwap(false, true) {
		close(w.begun)
		<-w.goOn
	}
	return invoke(ctx, method, req, reply, cc, opts...)
}

func (w *writes) stream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	s, err := open(ctx, desc, cc, method, opts...)
	return writing{s, w}, err
}

type writing struct {
	grpc.ClientStream
	w *writes
}

func (s writing) SendMsg(msg any) error {
	if m, ok := msg.(*btpb.MutateRowsRequest); ok && strings.HasSuffix(m.TableName, "/"+store.TableEvents) {
		s.w.mu.Lock()
		s.w.rows = append(s.w.rows, len(m.Entries))
		s.w.mu.Unlock()
		for _, e := range m.Entries {
			if s.w.fail != nil && s.w.fail(string(e.RowKey)) != nil {
				return s.w.fail(string(e.RowKey))
			}
		}
	}
	return s.ClientStream.SendMsg(msg)
}

// group holds one message's write and applies others beside it. They wait, and the
// test then lets all go on. It returns the errors of the others.
func (w *writes) group(b *fixture, each func(), messages ...[]store.LogEvent) []error {
	b.t.Helper()
	var all sync.WaitGroup
	app := b.app()
	all.Go(func() {
		if _, err := b.eng.Apply(ctx, app, []store.LogEvent{bought("first", b.clock)}); err != nil {
			b.t.Error(err)
		}
	})
	<-w.begun
	errs := make([]error, len(messages))
	for i, m := range messages {
		all.Go(func() { _, errs[i] = b.eng.Apply(ctx, app, m) })
	}
	b.eng.AwaitAppends(appID, len(messages))
	if each != nil {
		each()
	}
	close(w.goOn)
	all.Wait()
	return errs
}

func (w *writes) fixture(t *testing.T, dial ...grpc.DialOption) *fixture {
	return newFixtureOn(t, storetest.NewWithClient, 90, plain, append([]grpc.DialOption{grpc.WithChainUnaryInterceptor(w.unary), grpc.WithChainStreamInterceptor(w.stream)}, dial...)...)
}

// of is a message of some users, one event of each.
func (b *fixture) of(users ...string) []store.LogEvent {
	var events []store.LogEvent
	for _, u := range users {
		events = append(events, bought(u, b.clock-hour))
	}
	return events
}

func TestMessagesWriteTogether(t *testing.T) {
	w := newWrites()
	b := w.fixture(t)
	errs := w.group(b, nil, b.of("u0"), b.of("u1", "u2"), b.of("u0"))
	must.Succeed(t, errors.Join(errs...))
	if fmt.Sprint(w.rows) != "[4]" {
		t.Errorf("requests of %v rows, want one of 4", w.rows)
	}
	for _, u := range []string{"first", "u0", "u1", "u2"} {
		if r := b.read(u); red(r) != 30 || !r.Stored {
			t.Errorf("%s: %v (stored: %v), want 30", u, red(r), r.Stored)
		}
	}
	if c := b.eng.Counters(); c.LogGroups.Load() != 1 || c.Grouped.Load() != 3 {
		t.Errorf("%d groups of %d messages, want 1 of 3", c.LogGroups.Load(), c.Grouped.Load())
	}
	b.apply(b.of("u3")...) // nobody waits for it
	if c := b.eng.Counters(); c.LogGroups.Load() != 1 {
		t.Errorf("%d groups, want 1", c.LogGroups.Load())
	}
}

// A row that Bigtable refuses fails its message alone, also if another message has other
// rows of the same user.
func TestRefusedRowFailsItsMessageAlone(t *testing.T) {
	w := newWrites()
	b := w.fixture(t, storetest.Refuse(func(table, key string) bool { return strings.HasSuffix(key, ",refused") })...)
	bad := bought("u0", b.clock)
	bad.ID = "refused"
	errs := w.group(b, nil, b.of("u0"), []store.LogEvent{bad}, b.of("u1"))
	if errs[0] != nil || errs[2] != nil || errs[1] == nil {
		t.Errorf("%v, want an error of the second message alone", errs)
	}
	if r := b.read("u0"); red(r) != 30 {
		t.Errorf("%v, want the event of the first message", red(r))
	}
}

// A fault of one request concerns the messages whose rows cannot be written.
func TestGroupFailsOneByOne(t *testing.T) {
	w := newWrites()
	w.fail = func(key string) error {
		if strings.Contains(key, ",bad,") {
			return status.Error(codes.PermissionDenied, "no such row for this test")
		}
		return nil
	}
	b := w.fixture(t)
	errs := w.group(b, nil, b.of("u0"), b.of("bad", "worse"), b.of("u1"))
	if errs[0] != nil || errs[2] != nil || status.Code(errors.Unwrap(errs[1])) == codes.OK {
		t.Errorf("%v, want an error of the second message alone", errs)
	}
}

// A group panics: its messages fail, and the process goes on. A request recovers only
// panics of its own goroutine.
func TestPanicFailsItsGroup(t *testing.T) {
	w := newWrites()
	var panics atomic.Bool
	panics.Store(true)
	w.fail = func(key string) error {
		if strings.Contains(key, ",bad,") && panics.Load() {
			panic("out of words")
		}
		return nil
	}
	b := w.fixture(t)
	var logged strings.Builder // its handler has a lock
	b.eng = profile.New(b.store, b.apps, config.NewCached(b.apps, 0), b.now,
		slog.New(slog.NewTextHandler(&logged, nil)))
	for i, err := range w.group(b, nil, b.of("u0"), b.of("bad"), b.of("u1")) {
		if err == nil || !strings.Contains(err.Error(), "out of words") {
			t.Errorf("message %d: %v, want the panic", i, err)
		}
	}
	if log := logged.String(); !strings.Contains(log, "out of words") || !strings.Contains(log, "appends.go") {
		t.Errorf("the log is %q, want the panic and its stack", log)
	}
	panics.Store(false)
	for _, u := range []string{"u0", "bad", "u1"} { // Pub/Sub delivers them again
		b.apply(b.of(u)...)
		if r := b.read(u); red(r) != 30 {
			t.Errorf("%s: %v, want 30", u, red(r))
		}
	}
}

// The messages of a group that Bigtable does not take write apart, a few at a time. Each
// is acknowledged after its own write.
func TestFailedGroupWritesAFewAtATime(t *testing.T) {
	w := newWrites()
	w.fail = func(string) error { return status.Error(codes.PermissionDenied, "no groups for this test") }
	var mu sync.Mutex
	var at, most int
	written, goOn := map[string]bool{}, make(chan struct{})
	b := w.fixture(t, grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		m, ok := req.(*btpb.MutateRowRequest)
		if !ok || !strings.HasSuffix(m.TableName, "/"+store.TableEvents) || strings.Contains(string(m.RowKey), ",first,") {
			return invoke(ctx, method, req, reply, cc, opts...)
		}
		mu.Lock()
		at++
		if most = max(most, at); at == profile.MaxApart && len(written) == 0 {
			close(goOn)
		}
		mu.Unlock()
		<-goOn
		err := invoke(ctx, method, req, reply, cc, opts...)
		mu.Lock()
		defer mu.Unlock()
		at, written[string(m.RowKey)] = at-1, err == nil
		return err
	}))
	messages := make([][]store.LogEvent, 3*profile.MaxApart)
	for i := range messages {
		messages[i] = b.of(fmt.Sprint("u", i))
	}
	must.Succeed(t, errors.Join(w.group(b, nil, messages...)...))
	if most != profile.MaxApart || len(written) != len(messages) {
		t.Errorf("%d messages wrote at a time, %d in all; want %d and %d", most, len(written), profile.MaxApart, len(messages))
	}
	if r := b.read("u0"); red(r) != 30 {
		t.Errorf("%v, want the event", red(r))
	}
}

// A message that gives up before its group is written leaves nothing in the log.
func TestWaitingMessageIsCancelled(t *testing.T) {
	w := newWrites()
	b := w.fixture(t)
	giving, cancel := context.WithCancel(ctx)
	app, given := b.app(), make(chan error)
	errs := w.group(b, func() {
		go func() {
			_, err := b.eng.Apply(giving, app, b.of("gone"))
			given <- err
		}()
		b.eng.AwaitAppends(appID, 2)
		cancel()
		if err := <-given; !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want that the message was cancelled", err)
		}
	}, b.of("u0"))
	if errs[0] != nil {
		t.Error(errs[0])
	}
	if events, err := readLive(b.store, b.app(), "gone", store.User{}); len(events) != 0 || err != nil {
		t.Errorf("%d events of the cancelled message, %v", len(events), err)
	}
	if r := b.read("u0"); red(r) != 30 {
		t.Errorf("%v, want the event of the other message", red(r))
	}
}

// The schemas of the log change while a message waits.
func TestGroupFollowsSchemaChange(t *testing.T) {
	w := newWrites()
	b := w.fixture(t)
	errs := w.group(b, func() {
		_, err := b.apps.UpdateLog(ctx, appID, func(a *config.App) error { a.Log.Write = schema.Names; return nil })
		if err != nil {
			t.Error(err)
		}
	}, b.of("u0"), b.of("u1"))
	must.Succeed(t, errors.Join(errs...))
	app := b.app()
	app.Log.Read = schema.Narrow
	for _, u := range []string{"u0", "u1"} {
		if events, err := readLive(b.store, app, u, store.User{}); len(events) != 1 || err != nil {
			t.Errorf("%s has %d events in the new schema, %v", u, len(events), err)
		}
	}
}

// No request holds more rows than permitted, and a large message does not wait.
func TestGroupsAreBounded(t *testing.T) {
	w := newWrites()
	b := w.fixture(t)
	var messages [][]store.LogEvent
	for i := range 12 {
		var m []store.LogEvent
		for j := range int64(profile.AloneRows - 1) {
			m = append(m, bought(fmt.Sprint("u", i), b.clock-hour-j))
		}
		messages = append(messages, m)
	}
	errs := w.group(b, func() {
		alone := make([]store.LogEvent, profile.AloneRows)
		for i := range alone {
			alone[i] = bought("alone", b.clock-int64(i))
		}
		b.apply(alone...)
	}, messages...)
	must.Succeed(t, errors.Join(errs...))
	if want := fmt.Sprint([]int{profile.AloneRows, 990, 198}); fmt.Sprint(w.rows) != want {
		t.Errorf("requests of %v rows, want %v", w.rows, want)
	}
}

// ends records until when requests of a kind may run.
type ends struct {
	mu  sync.Mutex
	all []time.Time
}

func (e *ends) note(ctx context.Context) {
	end, ok := ctx.Deadline()
	if by, begun := deadline.End(ctx); !ok || begun && by.Before(end) {
		end = time.Time{}.AddDate(9998, 0, 0) // a request under way goes on
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, end)
}

func (e *ends) check(t *testing.T, what string, by time.Time) {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, end := range e.all {
		if end.After(by.Add(time.Millisecond)) {
			t.Errorf("%s may run until %v, want %v", what, end, by)
		}
	}
	if len(e.all) == 0 {
		t.Errorf("no %s", what)
	}
}

// What a message shares with others, or leaves behind, ends with the message: the write of a
// group with the first of its messages that ends.
func TestSharedWorkEndsInTime(t *testing.T) {
	w, groups, tickets := newWrites(), &ends{}, &ends{}
	b := w.fixture(t, grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		if strings.HasSuffix(method, "/MutateRows") {
			groups.note(ctx)
		}
		return open(ctx, desc, cc, method, opts...)
	}), grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if strings.HasSuffix(method, "/ReadModifyWriteRow") {
			tickets.note(ctx)
		}
		return invoke(ctx, method, req, reply, cc, opts...)
	}))
	long, cancel := deadline.Begin(ctx, 2*time.Minute)
	defer cancel()
	short, cancel := deadline.Begin(ctx, 4*time.Second)
	defer cancel()
	longEnd, _ := deadline.End(long)
	shortEnd, _ := deadline.End(short)
	var all sync.WaitGroup
	apply := func(ctx context.Context, user string) {
		all.Go(func() {
			if _, err := b.eng.Apply(ctx, b.app(), b.of(user)); err != nil {
				t.Error(err)
			}
		})
	}
	apply(long, "first")
	<-w.begun
	apply(long, "u0")
	b.eng.AwaitAppends(appID, 1)
	apply(short, "u1")
	b.eng.AwaitAppends(appID, 2)
	close(w.goOn)
	all.Wait()
	groups.check(t, "the write of a group", shortEnd)
	tickets.check(t, "a refresh", longEnd)
}
