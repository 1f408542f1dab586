package rowstream_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/affinityengine/affinity/shared/local/race"
	"github.com/affinityengine/affinity/shared/store/rowstream"
)

var newest = bigtable.RowFilter(bigtable.LatestNFilter(1))

// points returns a Point that has read one row, so that its next reads pass by the library.
func (c *clients) points(t testing.TB) *rowstream.Point {
	t.Helper()
	p := rowstream.NewPoint(c.conns, c.own.Open("t"), newest)
	cookie := metadata.Pairs("x-goog-cbt-cookie-first", "not for later reads")
	got := c.point(t.Context(), p, "first", 0, attempt{end: again(), trailer: cookie}, attempt{messages: []*message{of(whole("first"))}})
	if keys(got.Rows) != "first" || got.Err != nil || len(got.Requests) != 2 {
		t.Fatalf("the first read: %+v", got)
	}
	return p
}

func (c *clients) point(ctx context.Context, p *rowstream.Point, key string, stop int, attempts ...attempt) outcome {
	return c.outcome(stop, attempts, func(to rowstream.Receiver) error { return p.Read(ctx, key, to) })
}

var same = cmp.Options{protocmp.Transform(), cmp.Comparer(func(a, b error) bool { return status.Code(a) == status.Code(b) })}

// FuzzPointAsLibrary gives the same answers to the library's reader of one row.
func FuzzPointAsLibrary(f *testing.F) {
	c, seeds := start(f), uint64(400)
	p := c.points(f)
	if race.On {
		seeds = 60
	}
	for seed := range seeds {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		g := &generator{Rand: rand.New(rand.NewPCG(seed, 2))}
		attempts := g.pointAttempts()
		own := c.point(t.Context(), p, "k000001", 0, attempts...)
		library := c.outcome(0, attempts, func(to rowstream.Receiver) error {
			return rowstream.Read(t.Context(), c.library.Open("t"), bigtable.SingleRow("k000001"), to, newest, bigtable.LimitRows(1))
		})
		if len(own.Rows) > 0 {
			own.Err, library.Err = nil, nil // the library returns an error after the row
		}
		if diff := cmp.Diff(library, own, same); diff != "" {
			t.Errorf("seed %d (-library +own):\n%s", seed, diff)
		}
		for wait := time.Now(); c.streams.Load() != 0; time.Sleep(time.Millisecond) { // gRPC ends a cancelled one later
			if time.Since(wait) > 20*time.Second {
				t.Fatalf("seed %d: %d streams have not ended", seed, c.streams.Load())
			}
		}
	})
}

// pointAttempts are attempts of which the last may send the row.
func (g *generator) pointAttempts() []attempt {
	var all []attempt
	for range g.IntN(3) {
		a := attempt{end: again()}
		if g.IntN(3) == 0 {
			a.messages = append(a.messages, of())
		}
		if g.IntN(4) == 0 {
			a.messages = append(a.messages, &message{LastScannedRowKey: fmt.Appendf(nil, "k00000%d", g.IntN(3))})
		}
		all = append(all, a)
	}
	var last attempt
	if damaged := false; g.IntN(4) > 0 {
		m := of(g.row()...)
		if g.IntN(6) == 0 {
			g.damage(m)
			damaged = true
		}
		last.messages = append(last.messages, m)
		if !damaged && g.IntN(4) == 0 {
			last.end = again() // after the row
		}
	} else if g.IntN(2) == 0 {
		last.end = status.Error(codes.NotFound, "the end, by the test")
	}
	return append(all, last)
}

// The library takes over from a failed attempt: it follows the cookies of the server,
// sends its own headers, and tries again where it would.
func TestPointHeaders(t *testing.T) {
	c := start(t)
	p := c.points(t)
	read := map[string]func(rowstream.Receiver) error{
		"own": func(to rowstream.Receiver) error { return p.Read(t.Context(), "a", to) },
		"library": func(to rowstream.Receiver) error {
			return rowstream.Read(t.Context(), c.library.Open("t"), bigtable.SingleRow("a"), to, newest, bigtable.LimitRows(1))
		},
	}
	headers := map[string][]metadata.MD{}
	for name, read := range read {
		cookie := metadata.Pairs("x-goog-cbt-cookie-routing", "there")
		got := c.outcome(0, []attempt{{end: again(), trailer: cookie}, {messages: []*message{of(whole("a"))}}}, read)
		if keys(got.Rows) != "a" || got.Err != nil || len(got.Requests) != 2 {
			t.Fatalf("%s: %+v", name, got)
		}
		for _, sent := range c.headers {
			if at := sent["bigtable-client-attempt-epoch-usec"]; len(at) != 1 {
				t.Errorf("%s: attempt at %q", name, at)
			}
			sent = sent.Copy()
			sent["content-type"] = []string{strings.TrimSuffix(sent["content-type"][0], "+proto")}
			delete(sent, "bigtable-client-attempt-epoch-usec")
			headers[name] = append(headers[name], sent)
		}
	}
	if diff := cmp.Diff(headers["library"], headers["own"]); diff != "" {
		t.Errorf("(-library +own):\n%s", diff)
	}
	if cookies := headers["own"][1]["x-goog-cbt-cookie-routing"]; len(cookies) != 1 {
		t.Errorf("cookies %q", cookies)
	}
}

// A row may be split over messages anywhere, be reset, and be read again.
func TestPointSplits(t *testing.T) {
	c := start(t)
	p := c.points(t)
	begin := first("a", "f", "q", "01")
	begin.ValueSize = 4
	rest := committed(&chunk{Value: []byte("23")})
	want := []row{{"a", []cell{{"f", "q", 1000, "0123"}}}}
	for name, attempts := range map[string][]attempt{
		"two messages":  {{messages: []*message{of(begin), of(rest)}}},
		"reset":         {{messages: []*message{of(begin), of(reset()), of(begin), of(rest)}}},
		"broken":        {{messages: []*message{of(begin)}, end: again()}, {messages: []*message{of(begin), of(rest)}}},
		"broken behind": {{messages: []*message{of(begin, rest)}, end: again()}},
	} {
		got := c.point(t.Context(), p, "a", 0, attempts...)
		if diff := cmp.Diff(want, got.Rows); diff != "" || got.Err != nil || len(got.Requests) != len(attempts) {
			t.Errorf("%s: %d requests, %v, rows (-want +got):\n%s", name, len(got.Requests), got.Err, diff)
		}
	}
}

func TestPointFaults(t *testing.T) {
	c := start(t)
	p := c.points(t)
	a := []*message{of(whole("a"))}
	if got := c.point(t.Context(), p, "a", 1, attempt{messages: append(a, of(whole("b")))}); got.Err != errStop || keys(got.Rows) != "a" || len(got.Requests) != 1 {
		t.Errorf("stopped: %+v", got)
	}
	if got := c.point(t.Context(), p, "a", 0, attempt{messages: []*message{of(reset())}}); got.Err == nil || len(got.Requests) != 1 {
		t.Errorf("damaged: %+v", got)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if got := c.point(ended, p, "a", 0, attempt{messages: a}); status.Code(got.Err) != codes.Canceled || len(got.Rows) != 0 {
		t.Errorf("canceled: %+v", got)
	}
	late, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	if got := c.point(late, p, "a", 0, attempt{messages: a}); status.Code(got.Err) != codes.DeadlineExceeded || len(got.Rows) != 0 {
		t.Errorf("late: %+v", got)
	}
	// A connection that the library has closed is none to read from.
	c.conn.Close()
	if got := c.point(t.Context(), p, "a", 0, attempt{messages: a}); status.Code(got.Err) != codes.Canceled || len(got.Requests) != 0 {
		t.Errorf("closed: %+v", got)
	}
}

// A read that is canceled while Bigtable is silent ends, and is not tried again.
func TestPointCanceled(t *testing.T) {
	c := start(t)
	p := c.points(t)
	silent, release := make(chan struct{}), make(chan struct{})
	defer close(release)
	c.before = func(*bigtablepb.ReadRowsRequest) { close(silent); <-release }
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-silent; cancel() }()
	if got := c.point(ctx, p, "a", 0); status.Code(got.Err) != codes.Canceled || len(got.Requests) != 1 {
		t.Errorf("%+v", got)
	}
}
