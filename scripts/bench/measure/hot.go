package measure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/limit"
	"github.com/affinityengine/affinity/shared/local/stack"
)

// Hot measures users with many events in a short time: how long each event takes until
// its user's profile shows it, and what refreshes ask of Bigtable. The engine, its
// Bigtable and the senders are in this process.
type Hot struct {
	Users          int
	Rate           float64 // events of each user per second
	Warm, Duration time.Duration
	Sample         int // each of so many events is timed
	Common
}

// HotReport is the outcome. --json prints it as it is.
type HotReport struct {
	Machine Machine `json:"machine"`
	Users   int     `json:"users"`
	Rate    float64 `json:"rate"`   // events of each user per second
	Events  int64   `json:"events"` // sent while measured
	// Visible is the time from when an event was due until its user's profile shows it.
	Visible Lag `json:"visible"`
	// ReadBytes and Requests are what the Bigtable server sent and was asked, for each
	// event, without the reads that time events.
	ReadBytes float64 `json:"readBytesPerEvent"`
	Requests  float64 `json:"requestsPerEvent"`
	// CPU is that of the whole process, in milliseconds for each event.
	CPU float64 `json:"cpuMsPerEvent"`
	// Added refreshes added their events to a base. TailHits used the rows that the
	// refresh before had read, TailMisses read all unfolded events.
	Added      int64 `json:"added"`
	TailHits   int64 `json:"tailHits"`
	TailMisses int64 `json:"tailMisses"`
	// Groups are writes of the log for several messages, Grouped these messages.
	Groups  int64 `json:"groups"`
	Grouped int64 `json:"grouped"`
	Folds   int64 `json:"folds"`
}

const (
	hotApp = "hot"
	// probeMark marks requests to Bigtable that time events.
	probeMark = "affinity-probe"
)

// Check returns a FlagError for a value out of range.
func (o Hot) Check() error {
	switch {
	case o.Users < 1 || o.Rate <= 0 || o.Sample < 1:
		return flagf("--users, --rate and --sample must be more than 0")
	case o.Duration <= 0 || o.Warm < 0:
		return flagf("--for must be more than 0, such as 30s, and --warm not less")
	}
	return nil
}

// served counts what a Bigtable server sends and is asked.
type served struct{ requests, bytes atomic.Int64 }

type uncounted struct{}

// TagRPC finds out which requests count.
func (s *served) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context {
	md, _ := metadata.FromIncomingContext(ctx)
	return context.WithValue(ctx, uncounted{}, len(md.Get(probeMark)) > 0)
}

// HandleRPC counts.
func (s *served) HandleRPC(ctx context.Context, rpc stats.RPCStats) {
	if ctx.Value(uncounted{}) == true {
		return
	}
	switch rpc := rpc.(type) {
	case *stats.Begin:
		s.requests.Add(1)
	case *stats.OutPayload:
		s.bytes.Add(int64(rpc.Length))
	}
}

// TagConn does nothing.
func (s *served) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn does nothing.
func (s *served) HandleConn(context.Context, stats.ConnStats) {}

// Run measures.
func (o Hot) Run(ctx context.Context, _ Starter) (report HotReport, err error) {
	if err := o.Check(); err != nil {
		return HotReport{}, err
	}
	n := &served{}
	s, err := stack.Start(ctx, stack.Options{
		Apps: []stack.App{{ID: hotApp, Key: hotApp}}, RetentionDays: 90, Bigtable: []grpc.ServerOption{grpc.StatsHandler(n)},
	})
	if err != nil {
		return HotReport{}, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	send := &noise{s: s, web: &http.Client{Timeout: probeTimeout,
		Transport: &http.Transport{MaxIdleConnsPerHost: 2 * noisyAtOnce}}}
	defer send.web.CloseIdleConnections()
	if status, err := send.call(ctx, hotApp, "POST", "/1/strategies/personalization", noisyStrategy); err != nil ||
		status != http.StatusOK {
		return HotReport{}, fmt.Errorf("set the strategy: %d, %w", status, err)
	}
	// Beyond its limit an app's events wait in the slow lane.
	if err := s.Backends.CachedConfig.SetLimits(ctx, hotApp,
		limit.Numbers{EventsPerSecond: int(10 * o.Rate * float64(o.Users))}); err != nil {
		return HotReport{}, err
	}
	app, err := s.Backends.Config.App(ctx, hotApp)
	if err != nil {
		return HotReport{}, err
	}
	o.progress("warming up for %s", o.Warm)
	if _, _, err := o.send(ctx, send, app, o.Warm); err != nil {
		return HotReport{}, err
	}
	c := s.Backends.Profiles.Counters()
	counters := []*atomic.Int64{&n.requests, &n.bytes, &c.Added, &c.TailHits, &c.TailMisses, &c.LogGroups,
		&c.Grouped, &c.Folds}
	before := make([]int64, len(counters))
	for i := range counters {
		before[i] = counters[i].Load()
	}
	cpu, err := cpuTime()
	if err != nil {
		return HotReport{}, err
	}
	o.progress("%d users with %.1f events a second each, for %s", o.Users, o.Rate, o.Duration)
	report = HotReport{Machine: machine(), Users: o.Users, Rate: o.Rate}
	if report.Visible, report.Events, err = o.send(ctx, send, app, o.Duration); err != nil {
		return report, err
	}
	used, err := cpuTime()
	for i := range counters {
		before[i] = counters[i].Load() - before[i]
	}
	events := float64(report.Events)
	report.Requests, report.ReadBytes, report.CPU = float64(before[0])/events, float64(before[1])/events,
		1000*(used-cpu).Seconds()/events
	report.Added, report.TailHits, report.TailMisses = before[2], before[3], before[4]
	report.Groups, report.Grouped, report.Folds = before[5], before[6], before[7]
	return report, err
}

// send sends the events of all users at their rate, each in a request of its own, and
// waits until the timed ones are seen. It returns their times and the number of events.
func (o Hot) send(ctx context.Context, n *noise, app config.App, lasts time.Duration) (Lag, int64, error) {
	var mu sync.Mutex
	lag, unseen, sent := newStopwatch(), int64(0), int64(0)
	began := time.Now()
	group, ctx := errgroup.WithContext(ctx)
	slots := make(chan struct{}, noisyAtOnce)
	all := o.Rate * float64(o.Users)
	for i := range int(all * lasts.Seconds()) {
		due := began.Add(time.Duration(float64(i) / all * float64(time.Second)))
		time.Sleep(time.Until(due))
		if ctx.Err() != nil {
			break
		}
		sent++
		slots <- struct{}{}
		group.Go(func() error {
			defer func() { <-slots }()
			at, user := time.Now().UnixMilli(), fmt.Sprint("u", i%o.Users)
			status, err := n.call(ctx, hotApp, "POST", "/1/events", fmt.Sprintf(
				`{"events":[{"eventType":"view","eventName":"Seen","index":"i","userToken":%q,"filters":["color:c%d"],"timestamp":%d}]}`, user, i/o.Users%100, at))
			if err != nil || status != http.StatusOK {
				return fmt.Errorf("an event was answered %d: %w", status, err)
			}
			if i%o.Sample != 0 {
				return nil
			}
			seen, err := n.sees(ctx, app, user, at, due)
			mu.Lock()
			defer mu.Unlock()
			if !seen || err != nil {
				unseen++
				return err
			}
			return lag.RecordValue(max(1, time.Since(due).Microseconds()))
		})
	}
	err := group.Wait()
	return Lag{Samples: lag.TotalCount(), NeverSeen: unseen, Percentiles: lag.percentiles()}, sent, err
}

// sees waits until the profile of a user counts an event of a time (ms), or a later one.
func (n *noise) sees(ctx context.Context, app config.App, user string, at int64, due time.Time) (bool, error) {
	ctx = metadata.AppendToOutgoingContext(ctx, probeMark, "1")
	for time.Since(due) < probeTimeout {
		p, err := n.s.Backends.Profiles.Read(ctx, app, user, 1)
		if err != nil {
			return false, err
		}
		if p.LastEventAt >= at {
			return true, nil
		}
		time.Sleep(probePause)
	}
	return false, nil
}

// Print prints the report.
func (r HotReport) Print(out io.Writer) error {
	r.Machine.print(out, true)
	verdict := "above the bars of 100 ms and 3,000 bytes"
	if r.Visible.P99 < 100 && r.ReadBytes < 3000 && r.Visible.NeverSeen == 0 {
		verdict = "below the bars of 100 ms and 3,000 bytes"
	}
	_, err := fmt.Fprint(out, strings.Join([]string{
		fmt.Sprintf("%d users with %.1f events a second each, one a request: %d events", r.Users, r.Rate, r.Events),
		fmt.Sprintf("event to visible: p50 %.1f ms  p99 %.1f ms  (%d events, %d never seen)", r.Visible.P50,
			r.Visible.P99, r.Visible.Samples, r.Visible.NeverSeen),
		fmt.Sprintf("for each event: %.0f bytes read, %.2f requests to Bigtable, %.2f ms of the process's CPU",
			r.ReadBytes, r.Requests, r.CPU),
		"that is " + verdict,
		fmt.Sprintf("refreshes: %d additions, %d with rows of the one before, %d that read all unfolded events; %d folds", r.Added, r.TailHits, r.TailMisses, r.Folds),
		fmt.Sprintf("writes of the log for several messages: %d, of %d messages", r.Groups, r.Grouped),
	}, "\n")+"\n")
	return err
}
