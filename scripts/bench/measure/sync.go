package measure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/affinityengine/affinity/shared/app/limit"
	"github.com/affinityengine/affinity/shared/local/stack"
)

// Sync measures what it costs that answers wait until their events are on the disk. Engines that wait and engines
// that do not take turns. An engine and its clients are in this process.
type Sync struct {
	Dir         string // a folder on the disk; empty: that of temporary files
	Connections int
	Rate        float64       // events per second of the open loop
	Duration    time.Duration // of each loop
	Repeat      int
	Common
}

// SyncReport is the outcome. --json prints it as it is.
type SyncReport struct {
	Machine Machine `json:"machine"`
	// Disk is how long the disk takes to sync a file after 4 kB were written to it.
	Disk        Percentiles `json:"disk"`
	Connections int         `json:"connections"`
	Rate        float64     `json:"rate"`
	Async       Acknowledge `json:"async"`
	Sync        Acknowledge `json:"sync"`
}

// Acknowledge is how an engine answers events, each in a request of its own.
type Acknowledge struct {
	// Throughput is how many are answered a second if each connection sends its next event after an answer, and
	// Applied how many until all are in profiles: medians.
	Throughput float64 `json:"eventsPerSecond"`
	Applied    float64 `json:"appliedPerSecond"`
	// Percentiles are from when an event of the fixed rate was due to its answer, in all runs.
	Percentiles
	Samples int64 `json:"samples"`
}

const syncApp = "sync"

// Check returns a FlagError for a value out of range.
func (o Sync) Check() error {
	if o.Connections < 1 || o.Rate <= 0 || o.Duration <= 0 || o.Repeat < 1 {
		return flagf("--connections, --rate, --for and --repeat must be more than 0")
	}
	return nil
}

// Run measures.
func (o Sync) Run(ctx context.Context, _ Starter) (report SyncReport, err error) {
	if err := o.Check(); err != nil {
		return SyncReport{}, err
	}
	dir, err := os.MkdirTemp(o.Dir, "affinity-bench-sync")
	if err != nil {
		return SyncReport{}, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	report = SyncReport{Machine: machine(), Connections: o.Connections, Rate: o.Rate}
	if report.Disk, err = diskSync(filepath.Join(dir, "file")); err != nil {
		return report, err
	}
	throughput, applied, waits := map[bool][]float64{}, map[bool][]float64{}, map[bool]stopwatch{}
	waits[false], waits[true] = newStopwatch(), newStopwatch()
	for n := range 2 * o.Repeat {
		syncs := n%4 == 1 || n%4 == 2 // each goes first as often as the other
		o.progress("run %d of %d, sync %v", n/2+1, o.Repeat, syncs)
		answered, done, err := o.engine(ctx, filepath.Join(dir, fmt.Sprint(n)), syncs, waits[syncs])
		if err != nil {
			return report, err
		}
		throughput[syncs], applied[syncs] = append(throughput[syncs], answered), append(applied[syncs], done)
	}
	of := func(syncs bool) Acknowledge {
		return Acknowledge{middle(throughput[syncs]), middle(applied[syncs]), waits[syncs].percentiles(),
			waits[syncs].TotalCount()}
	}
	report.Async, report.Sync = of(false), of(true)
	return report, nil
}

func middle(all []float64) float64 {
	slices.SortFunc(all, cmp.Compare[float64])
	return all[(len(all)-1)/2]
}

// diskSync measures syncs of a file.
func diskSync(name string) (_ Percentiles, err error) {
	f, err := os.Create(name)
	if err != nil {
		return Percentiles{}, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	took := newStopwatch()
	for range 300 {
		if _, err := f.Write(make([]byte, 4096)); err != nil {
			return Percentiles{}, err
		}
		began := time.Now()
		err := f.Sync()
		if err = errors.Join(err, took.RecordValue(max(1, time.Since(began).Microseconds()))); err != nil {
			return Percentiles{}, err
		}
	}
	return took.percentiles(), nil
}

// engine measures one engine with a new folder, after a warm-up. It returns how many events per second it answers
// and how many it applies, and adds the waits of the open loop.
func (o Sync) engine(ctx context.Context, data string, syncs bool, waits stopwatch) (answered, applied float64,
	err error) {
	n, err := startAnswering(ctx, data, syncs, o.Connections)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, n.close(), os.RemoveAll(data)) }()
	if _, err = o.closed(ctx, n, min(o.Duration, 2*time.Second)); err == nil {
		err = n.s.Idle(ctx)
	}
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	events, err := o.closed(ctx, n, o.Duration)
	answered = events / time.Since(began).Seconds()
	if err == nil {
		err = n.s.Idle(ctx)
	}
	applied = events / time.Since(began).Seconds()
	if err == nil {
		err = n.open(ctx, o.Rate, o.Duration, waits)
	}
	return answered, applied, err
}

// startAnswering starts an engine with a folder and an app that may send as much as it likes, and a client.
func startAnswering(ctx context.Context, data string, syncs bool, connections int) (*noise, error) {
	s, err := stack.Start(ctx, stack.Options{Apps: []stack.App{{ID: syncApp, Key: syncApp}}, Data: data, Sync: syncs})
	if err != nil {
		return nil, err
	}
	n := &noise{s: s, web: &http.Client{Timeout: probeTimeout,
		Transport: &http.Transport{MaxIdleConnsPerHost: max(connections, noisyAtOnce)}}}
	status, err := n.call(ctx, syncApp, "POST", "/1/strategies/personalization", noisyStrategy)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("set the strategy: it was answered %d", status)
	}
	if err == nil { // beyond its limit an app's events wait in the slow lane
		err = s.Backends.CachedConfig.SetLimits(ctx, syncApp, limit.Numbers{EventsPerSecond: 1_000_000})
	}
	if err != nil {
		return nil, errors.Join(err, n.close())
	}
	return n, nil
}

// close ends the engine.
func (n *noise) close() error {
	n.web.CloseIdleConnections()
	return n.s.Close()
}

// closed sends events on all connections, each after the answer to the one before, and returns how many.
func (o Sync) closed(ctx context.Context, n *noise, lasts time.Duration) (float64, error) {
	var sent atomic.Int64
	began := time.Now()
	group := errgroup.Group{}
	for range o.Connections {
		group.Go(func() error {
			for time.Since(began) < lasts && ctx.Err() == nil {
				if err := n.events(ctx, int(sent.Add(1)), 1); err != nil {
					return err
				}
			}
			return ctx.Err()
		})
	}
	err := group.Wait()
	return float64(sent.Load()), err
}

// open sends events at a rate a second, whether they are answered or not, and adds how long each waits for its answer.
func (n *noise) open(ctx context.Context, rate float64, lasts time.Duration, waits stopwatch) error {
	var mu sync.Mutex
	var next atomic.Int64
	began := time.Now()
	group := errgroup.Group{}
	for range noisyAtOnce {
		group.Go(func() error {
			for {
				i := next.Add(1)
				due := began.Add(time.Duration(float64(i) / rate * float64(time.Second)))
				if due.Sub(began) > lasts || ctx.Err() != nil {
					return ctx.Err()
				}
				time.Sleep(time.Until(due))
				if err := n.events(ctx, int(i), 1); err != nil {
					return err
				}
				wait := max(1, time.Since(due).Microseconds())
				mu.Lock()
				err := waits.RecordValue(wait)
				mu.Unlock()
				if err != nil {
					return err
				}
			}
		})
	}
	return group.Wait()
}

// events sends events in a request.
func (n *noise) events(ctx context.Context, first, count int) error {
	status, err := n.call(ctx, syncApp, "POST", "/1/events", noisyEvents(first, count))
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("events were answered %d", status)
	}
	return err
}

// Print prints the report.
func (r SyncReport) Print(out io.Writer) error {
	r.Machine.print(out, true)
	verdict := "misses a bar"
	if r.Sync.Throughput >= 0.7*r.Async.Throughput && r.Sync.P99 <= 2*r.Async.P99 && r.Sync.P99 < 50 {
		verdict = "meets the bars"
	}
	_, err := fmt.Fprintf(out, "a sync of the disk: p50 %.1f ms  p99 %.1f ms\n"+
		"%d connections     events/s answered  applied    at %.0f events/s: p50      p99\n"+
		"without sync        %17.0f  %7.0f  %22.1f ms  %5.1f ms\n"+
		"with sync           %17.0f  %7.0f  %22.1f ms  %5.1f ms\n"+
		"ratio               %17.2f  %7.2f  %22.2f     %5.2f\n"+
		"that %s: 0.7 times the events, at most twice the p99, and less than 50 ms\n",
		r.Disk.P50, r.Disk.P99, r.Connections, r.Rate,
		r.Async.Throughput, r.Async.Applied, r.Async.P50, r.Async.P99,
		r.Sync.Throughput, r.Sync.Applied, r.Sync.P50, r.Sync.P99,
		r.Sync.Throughput/r.Async.Throughput, r.Sync.Applied/r.Async.Applied, r.Sync.P50/r.Async.P50, r.Sync.P99/r.Async.P99,
		verdict)
	return err
}
