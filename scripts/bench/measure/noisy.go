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

	"github.com/affinityengine/affinity/shared/app/limit"
	"github.com/affinityengine/affinity/shared/local/stack"
)

// Noisy measures what one app that sends too much takes from another. Both are on
// one local engine in this process, which also sends.
type Noisy struct {
	EventsPerSecond int // limit of the app that sends too much; 0: the engine's default
	Rate            float64
	Batch           int // events of its requests
	Duration, Idle  time.Duration
	Probes          float64 // events of the other app per second
	Common
}

// The apps of the measurement.
const (
	noisyApp = "evil"
	quietApp = "quiet"
)

const (
	// probeTimeout is when a probe counts as never seen.
	probeTimeout = 30 * time.Second
	probePause   = 2 * time.Millisecond
	// noisyUsers is how many users the noisy app's events are of.
	noisyUsers = 5_000
	// noisyAtOnce bounds its requests in flight. A page sends beacons without
	// waiting for answers.
	noisyAtOnce = 256
)

// NoisyReport is the outcome. --json prints it as it is.
type NoisyReport struct {
	Machine Machine `json:"machine"`
	Limit   int     `json:"limit"` // of the noisy app, events per second
	Rate    float64 `json:"rate"`  // that it sends
	// Idle and Noise are the time from when an event of the other app was due until
	// its profile shows it, before and while the noisy app sends.
	Idle  Lag `json:"idle"`
	Noise Lag `json:"noise"`
	// BarMs is the highest p99 that is permitted while the other app sends: twice
	// the idle one, or 250 ms.
	BarMs float64 `json:"barMs"`
	// Accepted and Refused count the noisy app's events; Refused were answered 429.
	// Failed were answered otherwise, or not at all.
	Accepted int64 `json:"accepted"`
	Refused  int64 `json:"refused"`
	Failed   int64 `json:"failed"`
	// DrainSeconds is how long the engine took afterwards to apply all accepted
	// events. Lost counts those that are in no profile then.
	DrainSeconds float64 `json:"drainSeconds"`
	Lost         int64   `json:"lost"`
}

// Lag is a time from an event to its profile.
type Lag struct {
	Samples   int64 `json:"samples"`
	NeverSeen int64 `json:"neverSeen"`
	Percentiles
}

// Check returns a FlagError for a value out of range.
func (o Noisy) Check() error {
	switch {
	case o.EventsPerSecond < 0:
		return flagf("--events-per-second %d: must be 0 (the default) or more", o.EventsPerSecond)
	case o.Rate <= 0 || o.Probes <= 0:
		return flagf("--rate and --probes must be more than 0")
	case o.Batch < 1 || o.Batch > 1000:
		return flagf("--batch %d: must be 1 to 1000", o.Batch)
	case o.Duration <= 0 || o.Idle <= 0:
		return flagf("--for and --idle must be more than 0, such as 10s")
	}
	return nil
}

// noise is one run.
type noise struct {
	o       Noisy
	s       *stack.Stack
	web     *http.Client
	counted struct{ accepted, refused, failed atomic.Int64 }
}

// Run measures.
func (o Noisy) Run(ctx context.Context, _ Starter) (report NoisyReport, err error) {
	if err := o.Check(); err != nil {
		return NoisyReport{}, err
	}
	s, err := stack.Start(ctx, stack.Options{Apps: []stack.App{{ID: noisyApp, Key: noisyApp},
		{ID: quietApp, Key: quietApp}}, RetentionDays: 90})
	if err != nil {
		return NoisyReport{}, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	n := &noise{o: o, s: s, web: &http.Client{Timeout: probeTimeout,
		Transport: &http.Transport{MaxIdleConnsPerHost: 2 * noisyAtOnce}}}
	defer n.web.CloseIdleConnections()
	own := limit.Numbers{EventsPerSecond: o.EventsPerSecond}
	if err := s.Backends.CachedConfig.SetLimits(ctx, noisyApp, own); err != nil {
		return NoisyReport{}, err
	}
	for _, app := range []string{noisyApp, quietApp} {
		if status, err := n.call(ctx, app, "POST", "/1/strategies/personalization", noisyStrategy); err != nil ||
			status != http.StatusOK {
			return NoisyReport{}, fmt.Errorf("set the strategy of %s: %d, %w", app, status, err)
		}
	}
	report = NoisyReport{Machine: machine(), Limit: s.Backends.Limits.Numbers(own).EventsPerSecond, Rate: o.Rate}
	o.progress("warming up")
	if _, err := n.probe(ctx, 2*time.Second); err != nil {
		return report, err
	}
	o.progress("%s without noise", o.Idle)
	if report.Idle, err = n.probe(ctx, o.Idle); err != nil {
		return report, err
	}
	o.progress("%s with %.0f events per second of the other app, limit %d", o.Duration, o.Rate, report.Limit)
	sending, stop := context.WithCancel(ctx)
	var senders sync.WaitGroup
	senders.Go(func() { n.send(sending) })
	report.Noise, err = n.probe(ctx, o.Duration)
	stop()
	senders.Wait()
	if err != nil {
		return report, err
	}
	report.BarMs = max(2*report.Idle.P99, 250)
	report.Accepted, report.Refused, report.Failed = n.counted.accepted.Load(), n.counted.refused.Load(),
		n.counted.failed.Load()
	o.progress("waiting for %d accepted events", report.Accepted)
	began := time.Now()
	if err := s.Idle(ctx); err != nil {
		return report, err
	}
	report.DrainSeconds = time.Since(began).Seconds()
	report.Lost, err = n.lost(ctx, report.Accepted)
	return report, err
}

const noisyStrategy = `{"eventsScoring":[{"eventName":"Seen","eventType":"view","score":1}],"facetsScoring":[{"facetName":"color","score":1}],"personalizationImpact":50}`

// send sends the noisy app's events at its rate until ctx ends, whether they are
// answered or not, and waits for the answers.
func (n *noise) send(ctx context.Context) {
	began, slots := time.Now(), make(chan struct{}, noisyAtOnce)
	var running sync.WaitGroup
	defer running.Wait()
	for sent := 0; ctx.Err() == nil; sent += n.o.Batch {
		due := began.Add(time.Duration(float64(sent) / n.o.Rate * float64(time.Second)))
		if wait := time.Until(due); wait > 0 {
			select {
			case <-time.After(wait):
			case <-ctx.Done():
				return
			}
		}
		slots <- struct{}{}
		first := sent
		running.Go(func() {
			defer func() { <-slots }()
			status, err := n.call(context.WithoutCancel(ctx), noisyApp, "POST", "/1/events", noisyEvents(first, n.o.Batch))
			switch {
			case err == nil && status == http.StatusOK:
				n.counted.accepted.Add(int64(n.o.Batch))
			case err == nil && status == http.StatusTooManyRequests:
				n.counted.refused.Add(int64(n.o.Batch))
			default:
				n.counted.failed.Add(int64(n.o.Batch))
			}
		})
	}
}

// noisyEvents is a request of the noisy app. Each of its events adds 1 to a score.
func noisyEvents(first, n int) string {
	var body strings.Builder
	for i := range n {
		fmt.Fprintf(&body, `%s{"eventType":"view","eventName":"Seen","index":"i","userToken":"u%d","filters":["color:c%d"]}`,
			strings.Repeat(",", min(i, 1)), (first+i)%noisyUsers, (first+i)%20)
	}
	return `{"events":[` + body.String() + `]}`
}

// probe sends an event of a new user at each tick, and measures how long it takes
// until the user's profile shows it.
func (n *noise) probe(ctx context.Context, lasts time.Duration) (Lag, error) {
	var mu sync.Mutex
	lag, unseen := newStopwatch(), int64(0)
	began, group := time.Now(), errgroup.Group{}
	for i := range int(n.o.Probes * lasts.Seconds()) {
		due := began.Add(time.Duration(float64(i) / n.o.Probes * float64(time.Second)))
		time.Sleep(time.Until(due))
		group.Go(func() error {
			user := fmt.Sprintf("p%d-%d", began.UnixNano(), i)
			status, err := n.call(ctx, quietApp, "POST", "/1/events", fmt.Sprintf(
				`{"events":[{"eventType":"view","eventName":"Seen","index":"i","userToken":%q,"filters":["color:Red"]}]}`, user))
			if err != nil || status != http.StatusOK {
				return fmt.Errorf("a probe was answered %d: %w", status, err)
			}
			seen := false
			for !seen && time.Since(due) < probeTimeout {
				if status, err = n.call(ctx, quietApp, "GET", "/1/profiles/"+user, ""); err != nil {
					return err
				}
				if seen = status == http.StatusOK; !seen {
					time.Sleep(probePause)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			if !seen {
				unseen++
				return nil
			}
			return lag.RecordValue(max(1, time.Since(due).Microseconds()))
		})
	}
	err := group.Wait()
	return Lag{Samples: lag.TotalCount(), NeverSeen: unseen, Percentiles: lag.percentiles()}, err
}

// lost returns how many accepted events are in no profile.
func (n *noise) lost(ctx context.Context, accepted int64) (int64, error) {
	app, err := n.s.Backends.Config.App(ctx, noisyApp)
	if err != nil {
		return 0, err
	}
	for i := range noisyUsers {
		p, err := n.s.Backends.Profiles.Read(ctx, app, fmt.Sprint("u", i), 0)
		if err != nil {
			return 0, err
		}
		for _, a := range p.Affinities {
			accepted -= int64(a.Scores[0] + 0.5)
		}
	}
	return accepted, nil
}

func (n *noise) call(ctx context.Context, app, method, path, body string) (int, error) {
	r, err := http.NewRequestWithContext(ctx, method, n.s.URL+path, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	r.Header.Set("X-Algolia-Application-Id", app)
	r.Header.Set("X-Algolia-API-Key", app)
	answer, err := n.web.Do(r)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode, errors.Join(err, answer.Body.Close())
}

// Print prints the report.
func (r NoisyReport) Print(out io.Writer) error {
	verdict := "above the bar"
	if r.Noise.P99 < r.BarMs && r.Noise.NeverSeen == 0 {
		verdict = "below the bar"
	}
	r.Machine.print(out, true)
	_, err := fmt.Fprintf(out, "event to visible, idle:        p50 %7.1f ms  p99 %7.1f ms  (%d events)\n"+
		"event to visible, with noise:  p50 %7.1f ms  p99 %7.1f ms  (%d events, %d never seen): %s of %.1f ms\n"+
		"the other app, limit %d, sent %.0f events per second: %d accepted, %d refused with 429, %d failed\n"+
		"applied %.1f s after the last one; %d accepted events are in no profile\n",
		r.Idle.P50, r.Idle.P99, r.Idle.Samples,
		r.Noise.P50, r.Noise.P99, r.Noise.Samples, r.Noise.NeverSeen, verdict, r.BarMs,
		r.Limit, r.Rate, r.Accepted, r.Refused, r.Failed, r.DrainSeconds, r.Lost)
	return err
}
