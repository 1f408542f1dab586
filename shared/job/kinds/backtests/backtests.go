// Package backtests judges strategies on the log of a live app (package
// backtest), and searches for a better one there (package tune).
//
// A job is one shard over all users, of all regions. Its task reads the events of the users, or
// of a sample of them, and the objects of the index into memory, judges, and
// stores the report as the result of the shard. It writes nothing else. A task
// that ends early starts again from the beginning.
//
// The package is separate from backtest because that package reads nothing.
// Package job runs the jobs, which lie in a collection of this package:
//
//	apps/{app}/backtests/{id}
package backtests

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/catalog"
	"github.com/affinityengine/affinity/shared/fault"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/judge/backtest"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/strategy"
	"github.com/affinityengine/affinity/shared/store"
)

// Collection names the collection of the jobs under an app.
var Collection = job.NewCollection[Params, Counts]("backtests")

// Counts counts the work of a job.
type Counts struct {
	Users  int64 // read
	Events int64 // read
	Trials int64 // of the search for a better strategy
	Faulty int64 // users whose events could not be read
}

// Params are the parameters of a job.
type Params struct {
	Index      string   `firestore:"index"`
	Names      []string `firestore:"names"`      // of the strategies, in the report
	Strategies []string `firestore:"strategies"` // as JSON, or the number of a version; the first one defines the cases
	Protocol   string   `firestore:"protocol"`
	At         int      `firestore:"at"`
	Within     string   `firestore:"within"`
	Sample     int      `firestore:"sample"` // the most cases; 0: all
	// MaxEvents is the number of events above which the job reads a sample of the
	// users.
	MaxEvents int64 `firestore:"maxEvents"`
	// Trials is the most strategies that a search judges; 0: no search.
	Trials int `firestore:"trials"`
	// AsOf is the end of the window; RetentionDays is the app's retention at the
	// start of the job.
	AsOf          time.Time `firestore:"asOf"`
	RetentionDays int       `firestore:"retentionDays"`
}

var _ job.Params = Params{}

// LogAttrs returns the number of strategies.
func (p Params) LogAttrs() []slog.Attr {
	return []slog.Attr{slog.String("index", p.Index), slog.Int("strategies", len(p.Strategies))}
}

func (p Params) options() backtest.Options {
	return backtest.Options{Protocol: backtest.Protocol(p.Protocol), At: p.At, Within: p.Within, Sample: p.Sample}
}

// Bounds of what a job reads.
const (
	// maxCases is the maximum number of cases of a job that does not read all.
	maxCases = 20_000
	// MaxEvents is the number of events above which a job reads a sample of the
	// users: they take some 60 bytes each in memory, and a task has some 500 MB.
	MaxEvents = 4_000_000
	// MaxAllEvents is MaxEvents for a job that shall read all. It needs a worker
	// with more memory.
	MaxAllEvents = 20_000_000
)

// maxGivenBytes is the maximum size of the strategies of a job that are no
// versions, as JSON: its parameters are one document.
const maxGivenBytes = 700_000

// Source reads the events of users with the objects or the filters that they name.
type Source interface {
	SweepObjects(ctx context.Context, app config.App, users store.Range, o profile.SweepOptions,
		fn func(user string, e affinity.Event) error,
		progress func(profile.SweepProgress) error) (profile.SweepProgress, error)
}

// Work reads and judges. The function that runs its tasks must set all fields.
type Work struct {
	job.Plain
	Store  *store.Store
	Source Source
	Config Config
	Now    func() time.Time // the engine's clock
}

// Config reads the settings of indexes and the versions of strategies.
type Config interface {
	// StrategyVersion returns config.ErrNotFound for a version that is not kept.
	StrategyVersion(ctx context.Context, app string, version int64) (strategy.Strategy, error)
	// IndexSettings returns config.ErrNotFound for an index without settings.
	IndexSettings(ctx context.Context, app, index string) (catalog.Settings, error)
}

var _ job.Work = Work{}

// Runner starts backtests and runs their tasks. It is safe for concurrent use.
type Runner struct{ *job.Runner }

// New returns the runner of backtests. It sets the name, the work and the size
// of the shards of r.
func New(r job.Runner, work Work) *Runner {
	r.Name, r.Work, r.ShardUsers, r.Whole = "backtest", work, math.MaxInt, true
	return &Runner{job.New(r)}
}

// ErrBusy means that a backtest of the app is under way.
var ErrBusy = errors.New("a backtest is under way")

// Request asks for a backtest.
type Request struct {
	Index   string
	Given   []Given // valid, and checked by backtest.Check
	Options backtest.Options
	All     bool // read all users up to MaxAllEvents, and judge all cases
	Trials  int  // of a search that begins with the only strategy; 0: no search
}

// Given is a strategy to judge.
type Given struct {
	backtest.Given
	Version int64 // of the app's strategy; 0: none
}

// encode sets the strategies. It returns a fault.Error if they are too large.
func (p *Params) encode(given []Given) error {
	size := 0
	for _, g := range given {
		text := strconv.FormatInt(g.Version, 10)
		if g.Version == 0 {
			b, err := json.Marshal(g.Strategy)
			if err != nil {
				return fmt.Errorf("encode strategy %s: %w", g.Name, err)
			}
			text = string(b)
		}
		size += len(text)
		p.Names, p.Strategies = append(p.Names, g.Name), append(p.Strategies, text)
	}
	if size > maxGivenBytes {
		return fault.New(fault.Invalid, "the strategies have %d bytes as stored, at most %d are accepted: "+
			"judge fewer at a time, or name versions by their numbers", size, maxGivenBytes)
	}
	return nil
}

// given reads the strategies of a job.
func (w Work) given(ctx context.Context, app string, p Params) ([]backtest.Given, error) {
	given := make([]backtest.Given, len(p.Strategies))
	for i, text := range p.Strategies {
		s, err := w.strategyOf(ctx, app, text)
		if err != nil {
			return nil, fmt.Errorf("strategy %d: %w", i+1, err)
		}
		given[i] = backtest.Given{Name: p.Names[i], Strategy: s}
	}
	return given, nil
}

func (w Work) strategyOf(ctx context.Context, app, text string) (strategy.Strategy, error) {
	version, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return strategy.Decode([]byte(text))
	}
	s, err := w.Config.StrategyVersion(ctx, app, version)
	if errors.Is(err, config.ErrNotFound) {
		return s, fault.New(fault.Invalid, "version %d is no longer kept", version)
	}
	return s, err
}

// Start starts a job. If another job of the app is under way, it returns that
// one and ErrBusy.
func (r *Runner) Start(ctx context.Context, appID string, q Request) (job.Job, error) {
	app, err := r.Config.App(ctx, appID)
	if err != nil {
		return job.Job{}, fmt.Errorf("start backtest: %w", err)
	}
	return r.StartAlone(ctx, app, "backtest", ErrBusy, func() (job.Job, error) {
		p := Params{
			Index: q.Index, Protocol: string(cmp.Or(q.Options.Protocol, backtest.Last)),
			At:     cmp.Or(q.Options.At, backtest.DefaultAt),
			Within: q.Options.Within, Sample: q.Options.Sample, MaxEvents: MaxAllEvents, Trials: q.Trials,
			AsOf: job.Stamp(r.Now().Truncate(time.Millisecond)), RetentionDays: app.RetentionDays,
		}
		if !q.All {
			p.Sample, p.MaxEvents = min(cmp.Or(p.Sample, maxCases), maxCases), MaxEvents
		}
		if err := p.encode(q.Given); err != nil {
			return job.Job{}, err
		}
		return job.Job{App: appID, ID: job.NewID("backtest", r.Now()), Params: p}, nil
	})
}

// Result is what a job has found.
type Result struct {
	Report api.Backtest `json:"report"`
	// Share is the share of users that the job has read, below 1 for a sample.
	Share float64 `json:"share"`
	// Tune and Search are what a search has found; nil without one.
	Tune   *api.Tuning     `json:"tune,omitempty"`
	Search *api.TuneSearch `json:"search,omitempty"`
}

// Result returns what a job has found, or job.ErrNotFound if it is not done.
func (r *Runner) Result(ctx context.Context, j job.Job) (Result, error) {
	var result Result
	shard, err := r.Jobs.Shard(ctx, j.App, j.ID, 0)
	if err != nil {
		return result, err
	}
	if j.State != job.Done || shard.Result == "" {
		return result, fmt.Errorf("result of %s: %w", j.ID, job.ErrNotFound)
	}
	if err := json.Unmarshal([]byte(shard.Result), &result); err != nil {
		return result, fmt.Errorf("decode the result of %s: %w", j.ID, err)
	}
	return result, nil
}
