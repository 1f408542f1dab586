package stack_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sync/errgroup"

	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/store"
)

// BenchmarkStoredRead compares the read of a stored profile through the public
// route with the read of its row that it contains, with a read of this row by the client
// library of Bigtable, and with a request to a server that only sends the same answer.
// They run in turn, so that all run under the same conditions.
func BenchmarkStoredRead(b *testing.B) {
	s := start(b, stack.Options{RetentionDays: 90})
	call(b, s, "POST", "/1/strategies/personalization", seenStrategy)
	var events []string
	for i := range 100 {
		events = append(events, fmt.Sprintf(`{"eventType":"view","eventName":"Seen","index":"i","userToken":"u","filters":["color:c%d"]}`, i))
	}
	call(b, s, "POST", "/1/events", `{"events":[`+strings.Join(events, ",")+`]}`)
	idle(b, s)
	request, err := http.NewRequest("GET", s.URL+"/1/profiles/u", nil)
	must.Succeed(b, err)
	request.Header.Set("X-Algolia-Application-Id", "demo")
	request.Header.Set("X-Algolia-API-Key", "demokey")
	answer := fetch(b, request)
	same := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(answer) }))
	defer same.Close()
	bare, err := http.NewRequest("GET", same.URL, nil)
	must.Succeed(b, err)
	times := map[string]*hdrhistogram.Histogram{}
	calls := []struct {
		name string
		do   func()
	}{
		{"library", libraryRead(b, s)},
		{"row", func() {
			if _, err := s.Backends.Store.Users.ReadUser(b.Context(), "demo", "u"); err != nil {
				b.Fatal(err)
			}
		}},
		{"route", func() { fetch(b, request) }},
		{"http", func() { fetch(b, bare) }},
	}
	for _, c := range calls {
		times[c.name] = hdrhistogram.New(1, 1e9, 3)
		c.do()
	}
	b.ResetTimer()
	for range b.N {
		for _, c := range calls {
			began := time.Now()
			c.do()
			_ = times[c.name].RecordValue(time.Since(began).Nanoseconds())
		}
	}
	for name, h := range times {
		b.ReportMetric(float64(h.ValueAtQuantile(50))/1e6, name+"-p50-ms")
		b.ReportMetric(float64(h.ValueAtQuantile(99))/1e6, name+"-p99-ms")
	}
}

// libraryRead returns a read of the row of BenchmarkStoredRead by the client library.
func libraryRead(b *testing.B, s *stack.Stack) func() {
	client, err := s.OpenLibrary(b.Context())
	must.Succeed(b, err)
	b.Cleanup(func() { client.Close() })
	users := client.Open(store.TableUsers)
	stored := bigtable.RowFilter(bigtable.ChainFilters(
		bigtable.InterleaveFilters(bigtable.ColumnRangeFilter("u", "", ""), bigtable.ColumnRangeFilter("p", "p", "p\x00")),
		bigtable.LatestNFilter(1)))
	return func() {
		if row, err := users.ReadRow(b.Context(), "demo,u,", stored); err != nil || len(row["p"]) != 1 {
			b.Fatal(row, err)
		}
	}
}

// fetch returns the body of an answer.
func fetch(b *testing.B, request *http.Request) []byte {
	response, err := http.DefaultClient.Do(request)
	must.Succeed(b, err)
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		b.Fatal(response.Status, err)
	}
	must.Succeed(b, response.Body.Close())
	return body
}

// BenchmarkEvent sends single events of users with some events each, as most users of a
// shop are, and waits until they count: one after the other, at two rates, and one after
// the other of one user who sends all of them. What it allocates is that of the whole
// process: all functions, the stand-ins of Google Cloud, and the client.
func BenchmarkEvent(b *testing.B) {
	b.Run("users=200", func(b *testing.B) { benchmarkEvent(b, 200, 0) })
	b.Run("users=200,rate=500", func(b *testing.B) { benchmarkEvent(b, 200, 500) })
	b.Run("users=200,rate=1300", func(b *testing.B) { benchmarkEvent(b, 200, 1300) })
	b.Run("users=1", func(b *testing.B) { benchmarkEvent(b, 1, 0) })
}

// benchmarkEvent sends a number of events per second, or else each when the one before
// it counts.
func benchmarkEvent(b *testing.B, users, rate int) {
	const before = 3 // events of each user
	applied := make(appliedEvents, 1000)
	s := start(b, stack.Options{RetentionDays: 90, Log: slog.New(applied)})
	call(b, s, "POST", "/1/strategies/personalization", seenStrategy)
	send := func(i int) {
		call(b, s, "POST", "/1/events", fmt.Sprintf(
			`{"events":[{"eventType":"view","eventName":"Seen","index":"i","userToken":"u%d","filters":["color:c%d"]}]}`, i%users, i%50))
	}
	for i := range before * users {
		send(i)
		<-applied
	}
	messages := 0
	b.ReportAllocs()
	b.ResetTimer()
	if rate == 0 {
		for i := range b.N {
			send(i)
			<-applied
			messages++
		}
	} else {
		due := time.NewTicker(time.Second / time.Duration(rate))
		defer due.Stop()
		for i := range b.N {
			<-due.C
			go send(i)
		}
		for counted := int64(0); counted < int64(b.N); messages++ {
			counted += <-applied
		}
	}
	b.ReportMetric(float64(messages)/float64(b.N), "messages/op")
}

// appliedEvents is a log that receives the number of events of each message that counts.
type appliedEvents chan int64

func (c appliedEvents) Enabled(context.Context, slog.Level) bool { return true }

func (c appliedEvents) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "events applied" {
		r.Attrs(func(a slog.Attr) bool {
			if a.Key == "events" {
				c <- a.Value.Int64()
			}
			return true
		})
	}
	return nil
}

func (c appliedEvents) WithAttrs([]slog.Attr) slog.Handler { return c }
func (c appliedEvents) WithGroup(string) slog.Handler      { return c }

// BenchmarkSessionLag sends 500 events per second, every 25th by a user whom the
// engine does not know yet, and measures the time from when such an event is due
// until the user's session lists it. All requests and reads share this machine.
func BenchmarkSessionLag(b *testing.B) {
	const perSecond, users, sampled = 500, 1000, 25
	web := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}}
	s := start(b, stack.Options{RetentionDays: 90})
	call(b, s, "POST", "/1/strategies/personalization", seenStrategy)
	app, err := s.Backends.Config.App(b.Context(), "demo")
	must.Succeed(b, err)
	sessionOf := func(user string) (affinity.Session, error) {
		r, err := s.Backends.Profiles.ReadRanking(b.Context(), app, user)
		return r.Session, err
	}
	var mu sync.Mutex
	lag := hdrhistogram.New(1, 60e6, 3) // microseconds
	send := func(n int, due time.Time) error {
		user := fmt.Sprint("user", n%users)
		if n%sampled == 0 {
			user = fmt.Sprint("new", n)
			if known, err := sessionOf(user); err != nil || len(known.Events) > 0 {
				return fmt.Errorf("session of an unknown user: %+v, %w", known, err)
			}
		}
		event := fmt.Sprintf(`{"events":[{"eventType":"view","eventName":"Seen","index":"i","userToken":%q,"filters":["color:c%d"]}]}`, user, n%20)
		request, err := http.NewRequest("POST", s.URL+"/1/events", strings.NewReader(event))
		if err != nil {
			return err
		}
		request.Header.Set("X-Algolia-Application-Id", "demo")
		request.Header.Set("X-Algolia-API-Key", "demokey")
		response, err := web.Do(request)
		if err != nil {
			return err
		}
		if _, err := io.Copy(io.Discard, response.Body); err != nil || response.StatusCode != http.StatusOK {
			return fmt.Errorf("%s, %w", response.Status, err)
		}
		if err := response.Body.Close(); err != nil {
			return err
		}
		for n%sampled == 0 {
			if session, err := sessionOf(user); err != nil {
				return err
			} else if len(session.Events) == 1 {
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
		mu.Lock()
		defer mu.Unlock()
		if n%sampled == 0 {
			_ = lag.RecordValue(time.Since(due).Microseconds())
		}
		return nil
	}
	b.ResetTimer()
	began := time.Now()
	var g errgroup.Group
	for n := range b.N {
		due := began.Add(time.Duration(n) * time.Second / perSecond)
		time.Sleep(time.Until(due))
		g.Go(func() error { return send(n, due) })
	}
	must.Succeed(b, g.Wait())
	b.ReportMetric(float64(lag.ValueAtQuantile(50))/1e3, "lag-p50-ms")
	b.ReportMetric(float64(lag.ValueAtQuantile(99))/1e3, "lag-p99-ms")
	b.ReportMetric(float64(lag.Max())/1e3, "lag-max-ms")
}
