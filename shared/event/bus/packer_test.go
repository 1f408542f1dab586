package bus

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/event"
)

// window is that of the tests.
const window = DefaultWindow

// published are the messages that a Packer publishes, as process decodes them. Each
// waits for a value of gate, if there is one.
type published struct {
	mu       sync.Mutex
	messages []Message
	gate     chan error
}

func (p *published) publish(ctx context.Context, m Message) error {
	data, err := m.Encode()
	if err != nil {
		return err
	}
	if m, err = DecodeMessage(data); err != nil {
		return err
	}
	p.mu.Lock()
	p.messages = append(p.messages, m)
	p.mu.Unlock()
	if p.gate == nil {
		return nil
	}
	select {
	case err := <-p.gate:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// users returns the users of the events of each message.
func (p *published) users(t *testing.T) [][]string {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	var all [][]string
	for _, m := range p.messages {
		var users []string
		for _, e := range decoded(t, m) {
			users = append(users, e.UserToken)
		}
		all = append(all, users)
	}
	return all
}

func decoded(t *testing.T, m Message) []event.Event {
	t.Helper()
	events, err := m.Events()
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// accepted is a request of an app with events of some users.
func accepted(app string, users ...string) Message {
	m := Message{App: app, ReceivedAt: time.Now().UnixMilli(), Ahead: event.MaxAhead.Milliseconds(), Request: 7, Resolved: true, Objects: Objects{}}
	var events []string
	for _, user := range users {
		events = append(events, fmt.Sprintf(`{"eventType":"click","eventName":"Clicked","index":"shop","userToken":%q,"objectIDs":["of %s"]}`, user, user))
		m.Objects.Put("shop", "of "+user, []Filter{{"color", user}})
	}
	m.Body = []byte(`{"events":[` + strings.Join(events, ",") + `]}`)
	return m
}

// send publishes a request in a goroutine of its own, and waits until it is published or
// waits for something.
func send(ctx context.Context, t *testing.T, p *Packer, m Message) <-chan error {
	answer, events := make(chan error, 1), decoded(t, m)
	go func() { answer <- p.Publish(ctx, m, events) }()
	synctest.Wait()
	return answer
}

// isAnswered reports whether a request is answered, and with what.
func isAnswered(answer <-chan error) (error, bool) {
	synctest.Wait()
	select {
	case err := <-answer:
		return err, true
	default:
		return nil, false
	}
}

// Requests that arrive while the message of the first one is on its way share the next
// message, and each is answered when its message is published.
func TestRequestsShareAMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &published{gate: make(chan error)}
		p := NewPacker(out.publish, time.Now, window)
		ann := send(t.Context(), t, p, accepted("demo", "ann"))
		bob := send(t.Context(), t, p, accepted("demo", "bob", "bea"))
		time.Sleep(window / 2)
		received := time.Now().UnixMilli()
		cid := send(t.Context(), t, p, accepted("demo", "cid"))
		if got := out.users(t); !cmp.Equal(got, [][]string{{"ann"}}) {
			t.Fatalf("published %q at once, want the first request alone", got)
		}
		time.Sleep(window)
		if got := out.users(t); !cmp.Equal(got, [][]string{{"ann"}, {"bob", "bea", "cid"}}) {
			t.Fatalf("published %q", got)
		}
		for name, answer := range map[string]<-chan error{"ann": ann, "bob": bob, "cid": cid} {
			if _, ok := isAnswered(answer); ok {
				t.Errorf("%s is answered before the publish", name)
			}
		}
		both := out.messages[1]
		if both.ReceivedAt < received || both.ReceivedAt > time.Now().UnixMilli() {
			t.Errorf("received at %d, want a time after the last request and before its answer", both.ReceivedAt)
		}
		want := Objects{"shop": {"of bob": {{"color", "bob"}}, "of bea": {{"color", "bea"}}, "of cid": {{"color", "cid"}}}}
		if diff := cmp.Diff(want, both.Objects); diff != "" {
			t.Errorf("objects (-want +published):\n%s", diff)
		}
		out.gate <- nil
		out.gate <- nil
		for name, answer := range map[string]<-chan error{"ann": ann, "bob": bob, "cid": cid} {
			if err, ok := isAnswered(answer); err != nil || !ok {
				t.Errorf("%s: answered %v, %v", name, ok, err)
			}
		}
	})
}

// A request that comes when none was published within window does not wait.
func TestQuietRequestIsPublishedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &published{}
		p := NewPacker(out.publish, time.Now, window)
		for i := range 3 {
			began := time.Now()
			m := accepted("demo", "ann")
			if err := p.Publish(t.Context(), m, decoded(t, m)); err != nil || time.Since(began) != 0 {
				t.Errorf("request %d waited %s: %v", i, time.Since(began), err)
			}
			if diff := cmp.Diff(m, out.messages[i]); diff != "" {
				t.Errorf("(-sent +published):\n%s", diff)
			}
			time.Sleep(2 * window)
			synctest.Wait()
		}
		if len(p.open) > 0 {
			t.Errorf("keeps %d keys", len(p.open))
		}
	})
}

// Without a window no request waits, and none shares a message.
func TestNoWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &published{}
		p := NewPacker(out.publish, time.Now, 0)
		for _, user := range []string{"ann", "bob", "cid"} {
			if err, ok := isAnswered(send(t.Context(), t, p, accepted("demo", user))); err != nil || !ok {
				t.Errorf("%s is answered: %v, %v", user, ok, err)
			}
		}
		if got := out.users(t); !cmp.Equal(got, [][]string{{"ann"}, {"bob"}, {"cid"}}) {
			t.Errorf("published %q", got)
		}
	})
}

// Neither apps nor lanes share a message, and unresolved or large requests share none.
func TestRequestsThatShareNoMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &published{}
		p := NewPacker(out.publish, time.Now, window)
		slow, unresolved, large := accepted("demo", "slow"), accepted("demo", "unresolved"), accepted("demo", "large")
		slow.Lane, unresolved.Resolved = SlowLane, false
		large.Objects.Put("shop", "of large", []Filter{{"color", strings.Repeat("x", packBytes)}})
		many := accepted("demo", slices.Repeat([]string{"many"}, packEvents)...)
		for _, m := range []Message{accepted("demo", "ann"), accepted("other", "ann"), slow, unresolved, large, many} {
			if err, ok := isAnswered(send(t.Context(), t, p, m)); err != nil || !ok {
				t.Errorf("%s is answered: %v, %v", m.Body[:min(len(m.Body), 100)], ok, err)
			}
		}
		bob, cid := send(t.Context(), t, p, accepted("demo", "bob")), send(t.Context(), t, p, accepted("other", "cid"))
		time.Sleep(window)
		for _, answer := range []<-chan error{bob, cid} {
			if err, ok := isAnswered(answer); err != nil || !ok {
				t.Errorf("answered: %v, %v", ok, err)
			}
		}
		for i, users := range out.users(t) {
			if users = slices.Compact(users); len(users) != 1 {
				t.Errorf("message %d has events of %q", i, users)
			}
		}
	})
}

// A message takes no more than its bounds. The next one follows at once.
func TestBoundsOfASharedMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &published{}
		p := NewPacker(out.publish, time.Now, window)
		for i := range 1 + packEvents + 1 {
			send(t.Context(), t, p, accepted("demo", fmt.Sprint("u", i)))
		}
		if got := out.users(t); len(got) != 2 || len(got[1]) != packEvents {
			t.Errorf("%d messages before the wait is over, the second with %d events", len(got), len(got[len(got)-1]))
		}
		time.Sleep(window)
		synctest.Wait()
		var all []string
		for _, users := range out.users(t) {
			all = append(all, users...)
		}
		if slices.Sort(all); len(slices.Compact(all)) != packEvents+2 {
			t.Errorf("published %d users, want %d", len(all), packEvents+2)
		}
	})
}

// If a message is not published, all of its requests fail, and no other.
func TestFailureOfASharedMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &published{gate: make(chan error)}
		p := NewPacker(out.publish, time.Now, window)
		ctx, gone := context.WithCancel(t.Context())
		answers := map[string]<-chan error{"ann": send(t.Context(), t, p, accepted("demo", "ann"))}
		out.gate <- nil
		left := send(ctx, t, p, accepted("demo", "left")) // the first of its message
		for _, user := range []string{"bob", "cid"} {
			answers[user] = send(t.Context(), t, p, accepted("demo", user))
		}
		gone()
		if err, ok := isAnswered(left); !ok || !errors.Is(err, context.Canceled) {
			t.Errorf("a request whose client has gone is answered: %v, %v", ok, err)
		}
		time.Sleep(window)
		failure := errors.New("no")
		out.gate <- failure
		time.Sleep(window)
		answers["dan"] = send(t.Context(), t, p, accepted("demo", "dan"))
		out.gate <- nil
		want := map[string]error{"ann": nil, "bob": failure, "cid": failure, "dan": nil}
		for _, user := range slices.Sorted(maps.Keys(want)) {
			if err, ok := isAnswered(answers[user]); !ok || !errors.Is(err, want[user]) {
				t.Errorf("%s is answered: %v, %v; want %v", user, ok, err, want[user])
			}
		}
	})
}

// Equal events without a time of their own, of requests in one message, have ids of
// their own.
func TestSharedMessageKeepsEqualEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &published{}
		p := NewPacker(out.publish, time.Now, window)
		for range 3 {
			send(t.Context(), t, p, accepted("demo", "ann"))
		}
		time.Sleep(window)
		synctest.Wait()
		seen := map[string]bool{}
		for _, e := range decoded(t, out.messages[1]) {
			seen[e.ID()] = true
		}
		if len(seen) != 2 {
			t.Errorf("two equal events have %d ids", len(seen))
		}
	})
}

// A panic while a shared message is published fails its requests and nobody else.
func TestPanicFailsTheRequestsOfItsMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		p := NewPacker(func(context.Context, Message) error {
			if calls.Add(1) == 2 {
				panic("no room")
			}
			return nil
		}, time.Now, window)
		first := send(t.Context(), t, p, accepted("demo", "ann"))
		bob, cid := send(t.Context(), t, p, accepted("demo", "bob")), send(t.Context(), t, p, accepted("demo", "cid"))
		time.Sleep(window)
		if err, ok := isAnswered(first); err != nil || !ok {
			t.Errorf("the first request: answered %v, %v", ok, err)
		}
		for name, answer := range map[string]<-chan error{"bob": bob, "cid": cid} {
			if err, ok := isAnswered(answer); !ok || err == nil || !strings.Contains(err.Error(), "no room") {
				t.Errorf("%s: answered %v, %v", name, ok, err)
			}
		}
	})
}

// Of the versions of numeric bands that requests have for an index, the lowest is that of
// their message. A request without objects of the index says nothing about it.
func TestBandsOfASharedMessage(t *testing.T) {
	with := func(index string, version int64) Resolution {
		r := Resolution{Objects: Objects{index: {"1": nil}}}
		if version > 0 {
			r.Bands = Bands{index: version}
		}
		return r
	}
	for _, tt := range []struct {
		requests []Resolution
		want     Bands
	}{
		{[]Resolution{with("shop", 3), with("shop", 3)}, Bands{"shop": 3}},
		{[]Resolution{with("shop", 3), with("shop", 2)}, Bands{"shop": 2}},
		{[]Resolution{with("shop", 2), with("shop", 3)}, Bands{"shop": 2}},
		{[]Resolution{with("shop", 0), with("shop", 3)}, nil},
		{[]Resolution{with("shop", 3), with("shop", 0)}, nil},
		{[]Resolution{with("shop", 3), with("posts", 1)}, Bands{"shop": 3, "posts": 1}},
		{[]Resolution{with("shop", 3), {}}, Bands{"shop": 3}},
	} {
		var m Message
		for _, r := range tt.requests {
			m.joinBands(r)
			for index := range r.Objects {
				if m.Objects == nil {
					m.Objects = Objects{}
				}
				m.Objects.Put(index, "1", nil)
			}
		}
		if !maps.Equal(m.Bands, tt.want) {
			t.Errorf("%v: %v, want %v", tt.requests, m.Bands, tt.want)
		}
	}
}
