// Package audit checks a running engine. For a sample of users it applies the
// formula to every event in the log, and compares the result with the profile
// that clients get and with the profile that the engine computes. It lists each
// difference. It shares no code with the engine except for the reference of the
// formula and the reader of the log. It keeps nothing; users, histories and the
// log are in Bigtable.
package audit

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/googleapis/gax-go/v2"
	"golang.org/x/sync/errgroup"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/store"
)

const (
	// MaxSample is the largest sample of an audit, in users.
	MaxSample = 10_000
	// MaxKeys bounds the users from whom the sample is chosen.
	MaxKeys = 50_000

	// An audit reads batchUsers users together, and maxReadings batches at a
	// time. A batch holds up to referenceEvents events during a reading, and
	// nearly nothing while it waits for the next one.
	batchUsers  = 50
	maxReadings = 2
	maxBatches  = 16
	// referenceEvents is how many events of a user the audit passes to the
	// reference. If a user has more, a scorer adds them up as they arrive.
	referenceEvents = 200_000
	// MaxDifferences is how many differences a report lists; it counts the
	// others.
	MaxDifferences = 10_000
)

// pauses come before each further reading of a user who differs, so that
// writers can complete their writes.
var pauses = []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second}

// Rows is the part of the store that an audit reads.
type Rows interface {
	SampleUsers(ctx context.Context, app string, n, maxRead int, rnd *rand.Rand) (store.Sample, error)
	ScanPrimary(ctx context.Context, app string, users []string, fn func(user string, row store.User) error) error
	ReadLog(ctx context.Context, app string, l schema.Layout, ranges []store.UserRange,
		fn func(user string, row store.LogRow) error) error
	ReadInline(ctx context.Context, app string, users []string, fn func(user string, cell []byte) error) error
	ReadBlocks(ctx context.Context, app string, names []store.BlockName, fn func(store.BlockName, []byte) error) error
}

// RowsOf returns the Rows of a Store.
func RowsOf(s *store.Store) Rows {
	return struct {
		store.Users
		store.Events
		store.Histories
	}{s.Users, s.Events, s.Histories}
}

// Engine computes profiles as reads do, and stores nothing. An error that has a
// method ByUser() map[string]error names users who are not among the profiles.
type Engine interface {
	// StoreOf returns the Bigtable that holds a user.
	StoreOf(ctx context.Context, app config.App, user string) (*store.Store, error)
	Compute(ctx context.Context, app config.App, users []string,
		strategies ...*affinity.Compiled) (map[string][]affinity.Profile, error)
}

// Apps reads the configuration itself, not a cache of it.
type Apps interface {
	App(ctx context.Context, appID string) (config.App, error)
}

// Auditor audits apps. It is safe for concurrent use.
type Auditor struct {
	store     Rows
	engine    Engine
	apps      Apps
	sleep     func(context.Context, time.Duration) error
	maxEvents int // events of a user for the reference; a scorer takes users with more
	held      affinity.Hold
}

// New makes an Auditor.
func New(s Rows, e Engine, apps Apps) *Auditor {
	return &Auditor{store: s, engine: e, apps: apps, sleep: gax.Sleep, maxEvents: referenceEvents, held: held}
}

// Report is the result of an audit.
type Report struct {
	Sampled  int `json:"sampled"`
	Compared int `json:"compared"` // the others of Sampled are TooLarge, or the time ran out
	Stored   int `json:"stored"`   // compared users whose stored profile clients could get
	Events   int `json:"events"`   // of the users compared
	// ByScorer counts users with too many events for the reference: the audit
	// compared them with a scorer over their log.
	ByScorer int `json:"byScorer"`
	// TooLarge counts users with more than 100,000 values, who are not compared.
	TooLarge  int `json:"tooLarge,omitempty"`
	Differing int `json:"differing"` // users
	// Differences lists at most MaxDifferences; Omitted counts the others.
	Differences []Difference `json:"differences"`
	Omitted     int          `json:"omitted,omitempty"`
}

// Sample runs an audit of up to n random users of an app.
func (a *Auditor) Sample(ctx context.Context, app config.App, n int) (Report, error) {
	sample, err := a.store.SampleUsers(ctx, app.ID, n, MaxKeys, rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())))
	if err != nil {
		return Report{}, fmt.Errorf("audit %s: %w", app.ID, err)
	}
	return a.Run(ctx, app, sample.Users)
}

// Run compares users of an app. The caller reads the app past any cache. When
// ctx reaches its deadline, Run returns the report so far, without an error.
func (a *Auditor) Run(ctx context.Context, app config.App, users []string) (Report, error) {
	r := &run{
		Auditor: a, store: a.store, app: app, compiled: affinity.Compile(app.Strategy),
		readings: make(chan struct{}, maxReadings), result: Report{Sampled: len(users), Differences: []Difference{}},
	}
	if app.Residency.On() {
		r.store = spread{a.store, a.engine, app}
	}
	r.unbound = r.compiled.Within(affinity.Bounds{})
	r.memory = affinity.NewMemory(affinity.Hold{}, a.held)
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
	slices.SortStableFunc(r.result.Differences, func(a, b Difference) int { return store.UserOrder(a.User, b.User) })
	if app.Residency.On() {
		if err := r.nameRegions(ctx); err != nil && !timeIsUp(ctx, err) {
			return Report{}, fmt.Errorf("audit %s: %w", app.ID, err)
		}
	}
	return r.result, nil
}

// nameRegions sets where the users of the differences are held.
func (r *run) nameRegions(ctx context.Context) error {
	for i, d := range r.result.Differences {
		if i > 0 && r.result.Differences[i-1].User == d.User {
			r.result.Differences[i].Region = r.result.Differences[i-1].Region
			continue
		}
		at, err := r.engine.StoreOf(ctx, r.app, d.User)
		if err != nil {
			return err
		}
		r.result.Differences[i].Region = at.Region()
	}
	return nil
}

// timeIsUp reports whether an error only means that ctx has reached its
// deadline. The server of a request may notice the deadline a little earlier.
func timeIsUp(ctx context.Context, err error) bool {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return true
	}
	deadline, ok := ctx.Deadline()
	return ok && time.Until(deadline) < time.Second && store.TimedOut(err)
}

// run is one audit.
type run struct {
	*Auditor
	store    Rows
	app      config.App
	compiled *affinity.Compiled
	unbound  *affinity.Compiled // the same without bounds
	memory   *affinity.Memory   // of which each scorer has the free part
	readings chan struct{}      // an item for each batch that is being read

	mu     sync.Mutex
	result Report
}

// batch compares some users. It reads users who differ again after each pause;
// users who still differ at the last reading go into the report.
func (r *run) batch(ctx context.Context, users []string) error {
	earlier := map[string]marks{}
	for n := 0; ; n++ {
		found, err := r.read(ctx, users, earlier)
		if err != nil {
			return err
		}
		var differing []string
		for _, f := range found {
			if len(f.differences) == 0 || n == len(pauses) {
				r.report(f)
				continue
			}
			differing = append(differing, f.user)
			if n == 0 {
				earlier[f.user] = f.marks
			}
		}
		if users = differing; len(users) == 0 {
			return nil
		}
		if err := r.sleep(ctx, pauses[n]); err != nil {
			return err
		}
	}
}

// report adds a finding to the report.
func (r *run) report(f finding) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := &r.result
	if f.tooLarge {
		p.TooLarge++
	} else {
		p.Compared++
	}
	p.Events += f.events
	f.withStored = f.withStored && !f.tooLarge
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
