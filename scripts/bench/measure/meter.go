package measure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/metrics"
	"runtime/pprof"
	"slices"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/stats"
)

// taken is the outcome of a measurement.
type taken struct {
	seconds  float64
	cpu      float64 // seconds, user and system, of this process
	received int64   // bytes of gRPC messages
	server   Counts
	allocs   uint64
	peakHeap uint64    // bytes of objects, with garbage that is not collected yet
	walls    []float64 // of all runs; this is the median
}

// short is the duration in seconds below which a measurement is preceded by a
// warm-up: connection, caches and heap affect it most.
const short = 1.0

// repeat measures n times and returns the run with the median wall time.
func (c *client) repeat(n int, do func() error) (taken, error) {
	first, err := c.measure(do)
	if err != nil {
		return taken{}, err
	}
	if first.seconds >= short {
		return c.more(n, do, first)
	}
	return c.more(n, do)
}

// more measures until there are n runs, including all, and returns the one with
// the median wall time.
func (c *client) more(n int, do func() error, all ...taken) (taken, error) {
	for len(all) < n {
		t, err := c.measure(do)
		if err != nil {
			return taken{}, err
		}
		all = append(all, t)
	}
	return median(all), nil
}

// median is the run with the median wall time.
func median(all []taken) taken {
	var walls []float64
	for _, t := range all {
		walls = append(walls, t.seconds)
	}
	slices.SortFunc(all, func(a, b taken) int { return cmp.Compare(a.seconds, b.seconds) })
	median := all[(len(all)-1)/2]
	median.walls = walls
	return median
}

func (c *client) measure(do func() error) (taken, error) {
	runtime.GC()
	heap := watchHeap()
	counts, err := c.server.Count()
	if err != nil {
		return taken{}, err
	}
	received, allocs := c.traffic.received.Load(), allocations()
	cpu, err := cpuTime()
	if err != nil {
		return taken{}, err
	}
	began := time.Now()
	if err := do(); err != nil {
		return taken{}, err
	}
	wall := time.Since(began)
	after, err := cpuTime()
	t := taken{
		seconds: wall.Seconds(), cpu: (after - cpu).Seconds(), received: c.traffic.received.Load() - received,
		allocs: allocations() - allocs, peakHeap: heap.stop(),
	}
	now, counting := c.server.Count()
	t.server = now.minus(counts)
	return t, errors.Join(err, counting)
}

// heapWatch samples the size of the heap.
type heapWatch struct {
	peak       uint64
	quit, done chan struct{}
}

const heapEvery = 10 * time.Millisecond

func watchHeap() *heapWatch {
	w := &heapWatch{peak: heapObjects(), quit: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(w.done)
		tick := time.NewTicker(heapEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				w.peak = max(w.peak, heapObjects())
			case <-w.quit:
				return
			}
		}
	}()
	return w
}

// stop returns the largest sample.
func (w *heapWatch) stop() uint64 {
	close(w.quit)
	<-w.done
	return max(w.peak, heapObjects())
}

func heapObjects() uint64 { return metric("/memory/classes/heap/objects:bytes") }

func allocations() uint64 { return metric("/gc/heap/allocs:objects") }

func metric(name string) uint64 {
	s := []metrics.Sample{{Name: name}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// traffic counts the bytes of received gRPC messages.
type traffic struct{ received atomic.Int64 }

// HandleRPC adds the size of a received message.
func (t *traffic) HandleRPC(_ context.Context, s stats.RPCStats) {
	if in, ok := s.(*stats.InPayload); ok {
		t.received.Add(int64(in.WireLength))
	}
}

// TagRPC does nothing.
func (t *traffic) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// TagConn does nothing.
func (t *traffic) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn does nothing.
func (t *traffic) HandleConn(context.Context, stats.ConnStats) {}

// profile starts a CPU profile of the last reader if one was asked for. The
// returned function ends it.
func (o Recompute) profile(name string) (stop func() error, err error) {
	if name != o.Readers[len(o.Readers)-1] {
		return profileCPU("")
	}
	return profileCPU(o.CPUProfile)
}

// profileCPU starts a CPU profile unless the name of its file is empty. The
// returned function ends it.
func profileCPU(file string) (stop func() error, err error) {
	if file == "" {
		return func() error { return nil }, nil
	}
	f, err := os.Create(file)
	if err != nil {
		return nil, fmt.Errorf("create the CPU profile: %w", err)
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, fmt.Errorf("begin the CPU profile: %w", err)
	}
	return func() error {
		pprof.StopCPUProfile()
		return f.Close()
	}, nil
}
