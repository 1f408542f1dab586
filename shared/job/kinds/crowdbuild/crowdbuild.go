// Package crowdbuild builds the crowd statistics of an app's indexes (package
// crowd), as of the start of a job.
//
// A job has three phases. Its shards over users count what the users of a range
// do, and write the counts as runs. A run covers successive users; a shard writes
// one, or more if memory or time ends. Then shards over buckets of objects merge
// the runs, then one shard for each index counts document frequencies and lists the
// objects of each filter that users turn to most. The last shard swaps the manifests of the indexes.
//
// The package is separate from recompute because it reads other parts of events
// and must not delay profiles. A crash at any point leaves the statistics of
// before: nothing reads a generation that no manifest names. What a crash leaves
// behind is dropped by the next build. Statistics lie in the table crowd. The header of a run names users, and lies in
// the region in which they live. Package
// job runs the jobs, which lie in a collection of this package:
//
//	apps/{app}/crowds/{id}
package crowdbuild

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/catalog"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/rank/crowd"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/store"
)

// Collection names the collection of the jobs under an app.
var Collection = job.NewCollection[Params, Counts]("crowds")

// Trigger is what started a job. It begins the job's id.
type Trigger string

// The triggers.
const (
	manual  Trigger = "manual"
	nightly Trigger = "nightly"
	Import  Trigger = "import"
)

// Params are the parameters of a job.
type Params struct {
	Trigger Trigger `firestore:"trigger"`
	// Indexes are those whose statistics the job builds.
	Indexes []string `firestore:"indexes"`
	// Generation is the name of the generation that the job builds.
	Generation string `firestore:"generation"`
	// AsOf is the instant of the statistics; RetentionDays is the app's retention
	// at the start of the job.
	AsOf          time.Time `firestore:"asOf"`
	RetentionDays int       `firestore:"retentionDays"`
	// ScoringVersion is that of the strategy whose events count. Another one
	// supersedes the job.
	ScoringVersion int64 `firestore:"scoringVersion"`
	// HalfLife is that of the decayed counts, in ms.
	HalfLife float64 `firestore:"halfLife"`
	// Share is the share of users that the job reads, 1 for all.
	Share float64 `firestore:"share"`
}

var _ job.Params = Params{}

// LogAttrs returns the number of indexes and the share of users.
func (p Params) LogAttrs() []slog.Attr {
	return []slog.Attr{slog.String("trigger", string(p.Trigger)), slog.Int("indexes", len(p.Indexes)),
		slog.Float64("share", p.Share)}
}

// Sampled reports whether the job reads only a sample of the users.
func (p Params) Sampled() bool { return p.Share < 1 }

func (p Params) halfLife() float64 {
	if p.HalfLife == 0 {
		return math.Inf(1)
	}
	return p.HalfLife
}

// ref returns the rows of an index.
func (p Params) ref(app, index string) store.CrowdRef {
	return store.CrowdRef{App: app, Index: index, Generation: p.Generation}
}

// Counts counts the work of a job.
type Counts struct {
	Users   int64 // processed
	Known   int64 // processed users with events that count
	Events  int64 // events read: those that the strategy scores
	Counted int64 // events that count for an object
	Unknown int64 // events that name an object that the catalog lacks
	Faulty  int64 // users and events that could not be read
}

// Source reads the events of users with the objects that they name.
type Source interface {
	SweepObjects(ctx context.Context, app config.App, users store.Range, o profile.SweepOptions,
		fn func(user string, e affinity.Event) error,
		progress func(profile.SweepProgress) error) (profile.SweepProgress, error)
}

var _ Source = (*profile.Engine)(nil)

const (
	// MaxEvents is the number of events of an app above which a job reads a
	// sample of its users.
	MaxEvents = 20_000_000
	// shardUsers is the number of users of a shard. It is larger than for other
	// jobs: each task reads the catalog, and runs of many users lose fewer pairs.
	shardUsers = 10_000
	// concurrency bounds how many shards have tasks at a time. One of users takes
	// up to some 300 MB.
	concurrency = 4
	// maxDifferent bounds the different pairs that a task holds, of 32 bytes each
	// with the space to merge them.
	maxDifferent = 3_000_000
	// maxBuffered bounds the pairs of all indexes that a task holds before it sorts
	// them, of 8 bytes each.
	maxBuffered = 4 << 20
	// maxObjects bounds the objects of all indexes of a build, which each task of
	// users holds as hashes of 8 bytes. A build of more fails; of one index it holds
	// fewer.
	maxObjects = 8_000_000
	// maxNamed bounds, in bytes, what a run holds for the objects that its users
	// name. The run ends with the user who reaches it. Twice as much is the most for
	// one user: further objects of such a robot do not count.
	maxNamed = 64 << 20
)

// Runner starts builds and runs their tasks. It is safe for concurrent use.
type Runner struct {
	*job.Runner
	work *Work
}

// Settings reads the settings of indexes.
type Settings interface {
	// IndexSettings returns config.ErrNotFound for an index without settings.
	IndexSettings(ctx context.Context, app, index string) (catalog.Settings, error)
}

// Work counts, merges and swaps. The function that runs its tasks must set Store,
// Source and Settings.
type Work struct {
	job.Plain
	Store    *store.Store
	Source   Source
	Settings Settings
	// Tests replace the bounds of this package and of crowd. 0 means the
	// default.
	MaxEvents    int64
	MaxDifferent int
	MaxObjects   int
	MaxNamed     int
	MaxFilters   int
	ShardUsers   int
	Kept         int

	runner *Runner
}

var _ job.Continued = &Work{}

// New returns the runner of builds. It sets the name and the work of r.
func New(r job.Runner, work Work) *Runner {
	work.MaxEvents = cmp.Or(work.MaxEvents, MaxEvents)
	work.MaxDifferent = cmp.Or(work.MaxDifferent, maxDifferent)
	work.MaxObjects = cmp.Or(work.MaxObjects, maxObjects)
	work.MaxNamed = cmp.Or(work.MaxNamed, maxNamed)
	work.MaxFilters = cmp.Or(work.MaxFilters, crowd.FilterBytes)
	work.ShardUsers = cmp.Or(work.ShardUsers, shardUsers)
	work.Kept = cmp.Or(work.Kept, crowd.Kept)
	r.Name, r.Work, r.ShardUsers = "crowd", &work, work.ShardUsers
	runner := &Runner{job.New(r), &work}
	work.runner = runner
	return runner
}

// Obsolete ends a job if the scoring of events has changed since its start.
func (*Work) Obsolete(j job.Job, app config.App) string {
	version := job.ParamsOf[Params](j).ScoringVersion
	if app.ScoringVersion == version {
		return ""
	}
	return fmt.Sprintf("scoring version %d has replaced %d", app.ScoringVersion, version)
}

// Process does the work of a shard: that of its phase.
func (w *Work) Process(ctx context.Context, j job.Job, app config.App, shard job.Shard, until time.Time,
	progress func(job.Progress) error) (job.Progress, error) {
	p := job.ParamsOf[Params](j)
	t := &task{Work: w, job: j, app: app, params: p, shard: shard, until: until, progress: progress}
	switch shard.Part {
	case "":
		return t.sweep(ctx)
	case merging:
		return t.merge(ctx)
	case counting:
		at, err := parsePlace(shard.From, len(p.Indexes))
		if err != nil {
			return job.Progress{}, err
		}
		return t.frequencies(ctx, p.Indexes[at.index])
	case swapping:
		return t.swap(ctx)
	}
	return job.Progress{}, fmt.Errorf("part %q is unknown: %w", shard.Part, job.ErrFailed)
}

// task is one call of Process.
type task struct {
	*Work
	job      job.Job
	app      config.App
	params   Params
	shard    job.Shard
	until    time.Time
	progress func(job.Progress) error
}

// now is the engine's clock.
func (t *task) now() time.Time { return t.runner.Now() }

// done is the progress at the end of a shard of a later phase.
func (t *task) done() (job.Progress, error) {
	p := job.Progress{Next: t.shard.To, Done: true}
	return p, t.progress(p)
}

// Following returns the shards that merge, once all users are counted, then those that count
// filters, which read the counts of all objects, and then the one that swaps the manifests.
func (w *Work) Following(_ context.Context, j job.Job, last job.Shard) ([]job.Shard, error) {
	var merges, counts []job.Shard
	for i := range job.ParamsOf[Params](j).Indexes {
		for b := 0; b < buckets; b += bucketsPerShard {
			merges = append(merges, job.Shard{Part: merging, From: place{i, b}.String(),
				To: place{i, b + bucketsPerShard}.String()})
		}
		counts = append(counts, job.Shard{Part: counting, From: place{index: i}.String(), To: place{index: i + 1}.String()})
	}
	phases := [][]job.Shard{merges, counts, {{Part: swapping}}}
	for i, phase := range phases {
		// -1 if the last shard is one over users, and of another phase.
		n := slices.IndexFunc(phase, func(s job.Shard) bool { return s.Part == last.Part && s.From == last.From })
		if rest := phase[n+1:]; n >= 0 && len(rest) > 0 {
			return rest, nil
		} else if n >= 0 {
			phases = phases[i+1:]
			break
		}
	}
	if len(phases) == 0 {
		return nil, nil
	}
	return phases[0], nil
}
