package local

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/googleapis/gax-go/v2"
	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/operator"
)

// demoRegions are the regions of `affinity demo move`.
var demoRegions = []string{"eu", "us"}

const moveStrategy = `{"eventsScoring":[{"eventName":"Seen","eventType":"view","score":1}],
		"facetsScoring":[{"facetName":"color","score":1}],"personalizationImpact":50}`

type demoMoveOptions struct {
	moves, rate, users int
	rest, limit        time.Duration
}

func demoMoveCommand(t *command.Tool, start Starter) *cobra.Command {
	o := demoMoveOptions{}
	cmd := &cobra.Command{
		Use:   "move",
		Short: "Start the engine with two regions, and move an app between them under load",
		Long: "Start the engine with the regions eu and us, send events and read profiles at a steady rate, and move the app to us and\n" +
			"back while that goes on. The command fails if a request fails, if a profile shows less than an earlier read of it, or if\n" +
			"at the end a user has more or fewer events than were sent. Its data lies in a temporary folder, which the " +
			"command removes.",
		Example: "  affinity demo move\n  affinity demo move --moves 20 --rate 100",
		Args:    cli.Subcommand,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if o.moves < 1 || o.rate < 1 || o.rate > 1000 || o.users < 1 || o.users > 100_000 || o.limit < time.Second {
				return cli.Usagef("--moves must be at least 1, --rate 1 to 1000, --users 1 to 100000, and --request-limit " +
					"at least 1s")
			}
			// On disk: the log grows with each move, and a collection of a heap that held all of it would show in the reads.
			data, err := os.MkdirTemp("", "affinity-move-")
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, os.RemoveAll(data)) }()
			up := Options{
				Addr: "127.0.0.1:0", Data: data, Apps: []App{{ID: "demo", Key: demoKey}}, RetentionDays: 90,
				Regions: demoRegions, RequestLimit: o.limit,
				Operator: operator.NewToken(), Log: slog.New(slog.NewTextHandler(t.Err,
					&slog.HandlerOptions{Level: slog.LevelWarn})),
			}
			return serve(cmd.Context(), t, start, up, func(ctx context.Context, s RunningStack) error {
				return showMoves(ctx, t, s.URL(), up.Operator, o)
			}, true)
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&o.moves, "moves", 2, "how many moves, each to the other region")
	flags.IntVar(&o.rate, "rate", 100, "events a second, and as many reads")
	flags.IntVar(&o.users, "users", 1000, "how many users have the events")
	flags.DurationVar(&o.rest, "rest", 10*time.Second, "how long it measures before the first move")
	flags.DurationVar(&o.limit, "request-limit", 2*time.Second,
		"how long a request or a task may run: each phase of a move waits as long")
	return cmd
}

// showMoves moves the app, and prints what clients noticed.
func showMoves(ctx context.Context, t *command.Tool, url, token string, o demoMoveOptions) error {
	c, err := client.New(client.Config{URL: url, App: "demo", Key: demoKey, Retry: client.NoRetry})
	if err != nil {
		return err
	}
	if err := c.Strategies().SetJSON(ctx, []byte(moveStrategy), client.SetOptions{}); err != nil {
		return err
	}
	moves, err := operator.NewClient(url, token)
	if err != nil {
		return err
	}
	v := newVisitors(c, o.users)
	visits, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	all.Go(func() { v.send(visits, o.rate) })
	all.Go(func() { v.read(visits, o.rate) })
	defer func() { stop(); all.Wait() }()

	v.timed.Store(newTimes())
	if err := gax.Sleep(ctx, o.rest); err != nil {
		return err
	}
	rest := v.timed.Swap(newTimes())
	fmt.Fprintf(t.Out, "at rest      %s\n", rest)
	for n := range o.moves {
		to := demoRegions[(n+1)%len(demoRegions)]
		took, err := moveApp(ctx, t, moves, to, maxWaits*(o.limit+2*config.TTL))
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(t.Out, "to %-9s %s, in %s\n", to, v.timed.Swap(newTimes()),
			took.Round(time.Second)); err != nil {
			return err
		}
	}
	stop()
	all.Wait()
	if err := v.check(ctx); err != nil {
		return err
	}
	_, err = fmt.Fprintf(t.Out, "%d events of %d users are in region %s, each once; no request failed, and no "+
		"profile lost what it had shown\n",
		v.total.Load(), o.users, demoRegions[o.moves%len(demoRegions)])
	return err
}

// maxWaits is how many waits of a phase a move may take; it has six phases.
const maxWaits = 20

// moveApp moves the app and waits until the region that it left holds nothing of it.
func moveApp(ctx context.Context, t *command.Tool, m command.Mover, to string,
	longest time.Duration) (time.Duration, error) {
	began, shown := time.Now(), ""
	s, err := m.Move(ctx, "demo", to)
	for err == nil && s.Move.Phase != "" {
		if time.Since(began) > longest {
			return 0, fmt.Errorf("the move stands still in phase %s: this machine needs a lower --rate or a longer "+
				"--request-limit; %s", s.Move.Phase, s.Error)
		}
		if now := command.MoveProgress("demo", s); now != shown {
			fmt.Fprintln(t.Err, now)
			shown = now
		}
		if err = gax.Sleep(ctx, max(t.WatchEvery, 100*time.Millisecond)); err == nil {
			s, err = m.Moving(ctx, "demo")
		}
	}
	return time.Since(began), err
}

// times are those of the reads of a while.
type times struct {
	mu     sync.Mutex
	reads  *hdrhistogram.Histogram // in µs
	events atomic.Int64
}

func newTimes() *times { return &times{reads: hdrhistogram.New(1, time.Minute.Microseconds(), 3)} }

func (t *times) read(took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_ = t.reads.RecordValue(min(max(took.Microseconds(), 1), time.Minute.Microseconds())) // within its bounds
}

// count returns the number of reads.
func (t *times) count() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.reads.TotalCount()
}

func (t *times) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := func(q float64) float64 { return float64(t.reads.ValueAtQuantile(q)) / 1000 }
	return fmt.Sprintf("%6d events, %6d reads: p50 %.1f ms, p99 %.1f ms, max %.1f ms", t.events.Load(),
		t.reads.TotalCount(), at(50), at(99), at(100))
}

// visitors send events and read profiles, whether the engine keeps up or not.
type visitors struct {
	c     *client.Client
	timed atomic.Pointer[times]
	total atomic.Int64
	sent  []atomic.Int64 // by user

	mu     sync.Mutex
	shown  []float64 // by user, the most that a profile has shown
	faults []error
}

func newVisitors(c *client.Client, users int) *visitors {
	return &visitors{c: c, sent: make([]atomic.Int64, users), shown: make([]float64, users)}
}

func visitorToken(n int) string { return fmt.Sprintf("visitor-%d", n) }

// most is how many requests are under way at a time.
const most = 500

// steadily calls do so many times a second with the numbers of users in turn, until ctx ends,
// and waits for the calls.
func (v *visitors) steadily(ctx context.Context, rate int, do func(user int)) {
	ticker := time.NewTicker(time.Second / time.Duration(rate))
	defer ticker.Stop()
	var running sync.WaitGroup
	defer running.Wait()
	room := make(chan struct{}, most)
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		select {
		case room <- struct{}{}:
		default:
			v.fail(fmt.Errorf("%d requests wait for the engine", most))
			continue
		}
		running.Go(func() { defer func() { <-room }(); do(n % len(v.sent)) })
	}
}

// send sends events. What was begun is finished when ctx ends.
func (v *visitors) send(ctx context.Context, rate int) {
	v.steadily(ctx, rate, func(user int) {
		err := v.c.Events().Send(context.WithoutCancel(ctx),
			api.Event{EventType: "view", EventName: "Seen", Index: "products", UserToken: visitorToken(user),
				Filters: []string{"color:red"}})
		if err != nil {
			v.fail(fmt.Errorf("event of %s: %w", visitorToken(user), err))
			return
		}
		v.sent[user].Add(1)
		v.total.Add(1)
		v.timed.Load().events.Add(1)
	})
}

func (v *visitors) read(ctx context.Context, rate int) {
	v.steadily(ctx, rate, func(user int) {
		v.mu.Lock()
		before := v.shown[user]
		v.mu.Unlock()
		began := time.Now()
		p, err := v.c.Profiles().Get(context.WithoutCancel(ctx), visitorToken(user), api.ProfileQuery{})
		v.timed.Load().read(time.Since(began))
		score := 0.0
		for _, a := range p.Affinities {
			score += a.Score
		}
		refused, _ := errors.AsType[*api.Error](err)
		unknown := refused != nil && refused.Status == http.StatusNotFound && before == 0
		if err != nil && !unknown {
			v.fail(fmt.Errorf("profile of %s: %w", visitorToken(user), err))
			return
		}
		if score < before {
			v.fail(fmt.Errorf("the profile of %s shows %g events, and an earlier read %g", visitorToken(user), score, before))
		}
		v.mu.Lock()
		v.shown[user] = max(v.shown[user], score)
		v.mu.Unlock()
	})
}

// maxFaults is how many faults are kept.
const maxFaults = 5

func (v *visitors) fail(err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.faults) < maxFaults {
		v.faults = append(v.faults, err)
	}
}

// check waits until the engine has applied all events, and returns what was wrong.
func (v *visitors) check(ctx context.Context) error {
	v.mu.Lock()
	err := errors.Join(v.faults...)
	v.mu.Unlock()
	for user := range v.sent {
		want, got := int(v.sent[user].Load()), -1
		for began := time.Now(); got != want && time.Since(began) < demoTimeout; {
			x, failed := v.c.Profiles().Explain(ctx, visitorToken(user), api.ExplainQuery{})
			if failed != nil {
				return errors.Join(err, failed)
			}
			if got = x.Events.Counted; got != want {
				if failed := gax.Sleep(ctx, 100*time.Millisecond); failed != nil {
					return errors.Join(err, failed)
				}
			}
		}
		if got != want {
			err = errors.Join(err, fmt.Errorf("%s has %d events, and sent %d", visitorToken(user), got, want))
		}
	}
	return err
}
