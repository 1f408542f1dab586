// Package audit holds a running engine to its law: for a sample of users it
// compares what clients are served, and what would be computed for them, with
// the formula over every event in the log, and names each difference. It shares
// no code with what it checks but the formula's reference and the reading of the
// log. It keeps nothing; users, histories and the log lie in Bigtable.
package audit

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/affinityengine/affinity/shared/affinity"
	"github.com/affinityengine/affinity/shared/config"
	"github.com/affinityengine/affinity/shared/schema"
	"github.com/affinityengine/affinity/shared/store"
)

const (
	// MaxSample is the most users of one audit.
	MaxSample = 10_000
	// maxKeys is how many users' keys are read at most to choose a sample from.
	maxKeys = 50_000

	// batchUsers are read together, maxReadings batches at a time: each may hold
	// referenceEvents events. Batches that wait hold nearly nothing.
	batchUsers  = 50
	maxReadings = 2
	maxBatches  = 16
	// referenceEvents of a user are compared with the reference; of users with more
	// they are added up by a scorer as they are read.
	referenceEvents = 200_000
	// MaxDifferences are kept in a report; further ones are counted.
	MaxDifferences = 10_000
)

// pauses come before each further reading of a user who differs: what was under
// way must have had time to end.
var pauses = []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second}

// Store is what an audit reads.
type Store interface {
	SampleUsers(ctx context.Context, app string, n, most int, rnd *rand.Rand) ([]string, error)
	ReadUsers(ctx context.Context, app string, users []string) (map[string]store.User, error)
	ReadLog(ctx context.Context, app string, l schema.Layout, spans []store.UserRange, fn func(user string, row store.LogRow) error) error
	ReadBlocks(ctx context.Context, app string, names []store.BlockName, fn func(store.BlockName, []byte) error) error
}

// Engine computes profiles as reads do, and stores nothing.
type Engine interface {
	Compute(ctx context.Context, app config.App, users []string, sets ...*affinity.Compiled) (map[string][]affinity.Profile, error)
}

// Apps is the configuration itself, not a cache of it.
type Apps interface {
	App(ctx context.Context, appID string) (config.App, error)
}

// Auditor audits apps. Safe for concurrent use.
type Auditor struct {
	store  Store
	engine Engine
	apps   Apps
	wait   func(context.Context, time.Duration) error
	most   int // events of a user that the reference takes
}

// New makes an Auditor.
func New(s Store, e Engine, apps Apps) *Auditor {
	return &Auditor{store: s, engine: e, apps: apps, wait: wait, most: referenceEvents}
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Report is the outcome of an audit.
type Report struct {
	Sampled  int `json:"sampled"`
	Compared int `json:"compared"` // fewer than Sampled: the time was up
	Stored   int `json:"stored"`   // of Compared, whose stored profile could be served and was compared too
	Events   int `json:"events"`   // of the users compared
	// ByScorer counts users with too many events for the reference: a scorer over
	// their log took its place.
	ByScorer  int `json:"byScorer"`
	Differing int `json:"differing"` // users
	// Differences names at most MaxDifferences; Omitted counts the others.
	Differences []Difference `json:"differences"`
	Omitted     int          `json:"omitted,omitempty"`
}

// Sample compares up to n users of an app, chosen at random: see Run.
func (a *Auditor) Sample(ctx context.Context, app config.App, n int) (Report, error) {
	users, err := a.store.SampleUsers(ctx, app.ID, n, maxKeys, rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())))
	if err != nil {
		return Report{}, fmt.Errorf("audit %s: %w", app.ID, err)
	}
	return a.Run(ctx, app, users)
}

// Run compares users of an app, whose configuration should be read past any
// cache. When ctx reaches its deadline it ends with what was compared until then,
// which is no error.
func (a *Auditor) Run(ctx context.Context, app config.App, users []string) (Report, error) {
	r := &run{
		Auditor: a, app: app, compiled: affinity.Compile(app.Strategy), readings: make(chan struct{}, maxReadings),
		report: Report{Sampled: len(users), Differences: []Difference{}},
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(maxBatches)
	for batch := range slices.Chunk(users, batchUsers) {
		if gctx.Err() != nil {
			break
		}
		g.Go(func() error { return r.batch(gctx, batch) })
	}
	err := g.Wait()
	if err == nil {
		err = ctx.Err()
	}
	if err != nil && !timeIsUp(ctx, err) {
		return Report{}, fmt.Errorf("audit %s: %w", app.ID, err)
	}
	slices.SortStableFunc(r.report.Differences, func(a, b Difference) int { return store.UserOrder(a.User, b.User) })
	return r.report, nil
}

// timeIsUp tells whether an error only says that the context's deadline is here.
// The other side of a request may see it a little earlier.
func timeIsUp(ctx context.Context, err error) bool {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return true
	}
	deadline, ok := ctx.Deadline()
	return ok && time.Until(deadline) < time.Second && status.Code(err) == codes.DeadlineExceeded
}

// run is one audit.
type run struct {
	*Auditor
	app      config.App
	compiled *affinity.Compiled
	readings chan struct{} // one item a batch that is being read

	mu     sync.Mutex
	report Report
}

// batch compares some users: those who differ again and again, until they do not
// or have for long enough.
func (r *run) batch(ctx context.Context, users []string) error {
	earlier := map[string]marks{}
	for n := 0; ; n++ {
		found, err := r.read(ctx, users, earlier)
		if err != nil {
			return err
		}
		var again []string
		for _, f := range found {
			if len(f.differences) == 0 || n == len(pauses) {
				r.done(f)
				continue
			}
			again = append(again, f.user)
			if n == 0 {
				earlier[f.user] = f.marks
			}
		}
		if users = again; len(users) == 0 {
			return nil
		}
		if err := r.wait(ctx, pauses[n]); err != nil {
			return err
		}
	}
}

// done takes a user's outcome into the report.
func (r *run) done(f finding) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := &r.report
	p.Compared++
	p.Events += f.events
	if f.withStored {
		p.Stored++
	}
	if f.byScorer {
		p.ByScorer++
	}
	if len(f.differences) > 0 {
		p.Differing++
	}
	fits := min(len(f.differences), MaxDifferences-len(p.Differences))
	p.Differences = append(p.Differences, f.differences[:fits]...)
	p.Omitted += len(f.differences) - fits
}
