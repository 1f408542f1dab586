// Package segmentbuild packs the profiles of an app's users into the parts that
// answer questions about segments (package segment), and keeps them close to the
// profiles of the moment.
//
// A build is a job over all users. Its shards compute stale profiles, as a recompute
// does, and pack these and the valid ones into base parts. The last shard puts the
// parts into the manifest. Between builds, deltas pack the users who have changed: see
// Runner.Delta.
//
// Answers are exact by the cut of a part, a slot of the list of changes. A part counts
// every change that is listed in an earlier slot: a writer lists a user after it has
// drawn a ticket, and a row is packed only with the profile of its last ticket. Queries
// read the profiles of the users who are listed from the cut on.
//
// If each user of the app has a region of their own, each region has a manifest, parts and a list of changes of
// the users who live there. A build makes the parts of all regions, and a delta those of one. Who has moved is
// listed in both regions, and nobody but the one in which they live has them in a part that was made since.
//
// A crash at any point leaves the manifest of before, or the next one: nothing reads a
// part that no manifest names. What a crash leaves behind is dropped by the task that
// cleans up after the next build. Parts lie in the table segments. Package job runs the
// builds, which lie in a collection of this package:
//
//	apps/{app}/segmentBuilds/{id}
package segmentbuild

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/affinityengine/affinity/shared/admission"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/rank/segment"
	"github.com/affinityengine/affinity/shared/store"
)

// Collection names the collection of the builds under an app.
var Collection = job.NewCollection[Params, Counts]("segmentBuilds")

// ErrOff means that segments are off for the app.
var ErrOff = errors.New("segments are off for the app")

// Trigger is what started a build. It begins the build's id.
type Trigger string

// An operator, the nightly schedule, the end of a recompute and too many changed users
// start builds.
const (
	manual    Trigger = "manual"
	nightly   Trigger = "nightly"
	Recompute Trigger = "recompute"
	changes   Trigger = "changes"
)

// Params are the parameters of a build.
type Params struct {
	Trigger Trigger `firestore:"trigger"`
	// Generation is the name of what the build makes. Of two, the newer is greater.
	Generation string `firestore:"generation"`
	// ScoringVersion and RetentionDays are those of the profiles, Since is when
	// segments were turned on, and Holdout says whom the lists leave out. Others supersede the build.
	ScoringVersion int64     `firestore:"scoringVersion"`
	RetentionDays  int       `firestore:"retentionDays"`
	Since          time.Time `firestore:"since"`
	Holdout        string    `firestore:"holdout,omitempty"`
}

var _ job.Params = Params{}

// LogAttrs returns the trigger and the scoring version.
func (p Params) LogAttrs() []slog.Attr {
	return []slog.Attr{slog.String("trigger", string(p.Trigger)), slog.Int64("scoringVersion", p.ScoringVersion)}
}

// Counts counts the work of a build.
type Counts struct {
	Users      int64 // processed
	Packed     int64 // processed users who are in a part
	Affinities int64 // in parts
	Computed   int64 // profiles that were stale
	Parts      int64
	Faulty     int64 // users whose profiles could not be computed or packed
}

// Profiles computes and reads the profiles to pack.
type Profiles interface {
	Recompute(ctx context.Context, app config.App, users store.Range, o profile.RecomputeOptions,
		progress func(profile.Progress) error) (profile.Progress, error)
	ReadStored(ctx context.Context, app config.App, users []string, fn func(user string, stored []byte) error) error
}

var _ Profiles = (*profile.Engine)(nil)

// The bounds of builds and deltas; tests replace them.
const (
	// shardUsers is the number of users of a shard: a common value has a row in each
	// part, so parts should be as large as they may be.
	shardUsers = 60_000
	// concurrency bounds how many shards have tasks at a time. One takes up to some
	// 250 MB.
	concurrency = 4
	// deltaUsers is how many changed users make a delta, and joined how many deltas of
	// about one size become one.
	deltaUsers = 500
	joined     = 8
	// smallLimit is the memory, in bytes, below which parts are half as large.
	smallLimit = 400 << 20
)

// Work packs and swaps. The function that runs its tasks must set Store and Profiles.
type Work struct {
	job.Plain
	Store    *store.Store
	Profiles Profiles
	// Sizes stores the sizes of an app's saved segments, after each build and delta.
	// nil: nobody asks.
	Sizes func(ctx context.Context, app config.App) error
	// Tests replace the bounds. 0 means the default.
	ShardUsers int
	PartUsers  int // in a part
	Affinities int // in a part
	DeltaUsers int
	Joined     int

	runner *Runner
}

var _ job.Continued = &Work{}

// Runner starts builds, runs their tasks, and makes deltas. It is safe for concurrent
// use.
type Runner struct {
	*job.Runner
	work *Work
}

// New returns the runner of builds. It sets the name and the work of r.
func New(r job.Runner, work Work) *Runner {
	work.ShardUsers = cmp.Or(work.ShardUsers, shardUsers)
	work.PartUsers = cmp.Or(work.PartUsers, segment.MaxUsers)
	if work.Affinities == 0 && admission.MemoryLimit() < smallLimit {
		work.Affinities = segment.MaxAffinities / 2
	}
	work.Affinities = cmp.Or(work.Affinities, segment.MaxAffinities)
	work.DeltaUsers = cmp.Or(work.DeltaUsers, deltaUsers)
	work.Joined = cmp.Or(work.Joined, joined)
	r.Name, r.Work, r.ShardUsers = "segments", &work, work.ShardUsers
	work.runner = &Runner{job.New(r), &work}
	return work.runner
}

// Obsolete ends a build whose parts no query may read.
func (*Work) Obsolete(j job.Job, app config.App) string {
	p := job.ParamsOf[Params](j)
	switch {
	case !app.Segments.On():
		return "segments are off"
	case !app.Segments.Since.Equal(p.Since):
		return "segments were turned off and on again"
	case app.ScoringVersion != p.ScoringVersion:
		return fmt.Sprintf("scoring version %d has replaced %d", app.ScoringVersion, p.ScoringVersion)
	case app.RetentionDays != p.RetentionDays:
		return fmt.Sprintf("a retention of %d days has replaced %d", app.RetentionDays, p.RetentionDays)
	case app.Holdout.ID() != p.Holdout:
		return "others are held out"
	}
	return ""
}

// swapPart is the part of a build that puts its parts into the manifest.
const swapPart = "swap"

// Following returns the shard that swaps the manifest, once all users are packed.
func (*Work) Following(_ context.Context, _ job.Job, last job.Shard) ([]job.Shard, error) {
	if last.Part == swapPart {
		return nil, nil
	}
	return []job.Shard{{Part: swapPart}}, nil
}

// Process packs the users of a shard, or swaps the manifest.
func (w *Work) Process(ctx context.Context, j job.Job, app config.App, shard job.Shard, until time.Time,
	progress func(job.Progress) error) (job.Progress, error) {
	t := &task{Work: w, job: j, app: app, params: job.ParamsOf[Params](j)}
	if shard.Part == swapPart {
		return t.swap(ctx, until, progress)
	}
	return t.pack(ctx, store.Range{From: shard.Next, To: shard.To}, computing(until), progress)
}

// storeOf returns the store that holds the parts of an app, or of the users of the region in which the app takes work.
func (w *Work) storeOf(app config.App) *store.Store {
	if !app.Residency.On() {
		return w.Store
	}
	return w.Store.In(app.Region)
}

// regional returns an app as work over the users of each of its regions takes it.
func regional(app config.App) []config.App {
	if !app.Residency.On() {
		return []config.App{app}
	}
	var all []config.App
	for _, region := range app.Everywhere() {
		all = append(all, app.In(region))
	}
	return all
}

// task is one call of Process.
type task struct {
	*Work
	job    job.Job
	app    config.App
	params Params
}

// computing returns the options of the recompute that a build packs.
func computing(until time.Time) profile.RecomputeOptions {
	return profile.RecomputeOptions{OnlyStale: true, Until: until}
}

// cut returns the slot from which changes may be missing in what is read from now on.
func (w *Work) cut() int64 { return int64(store.CutAt(w.runner.Now())) }

// lastPart counts the parts that this process has begun, from a random number on.
var lastPart atomic.Uint32

func init() { lastPart.Store(rand.Uint32()) }

// newPart returns the name of a part that is begun now. The count tells the parts of this process
// apart that are begun in one millisecond, and its random start those of two processes.
func (w *Work) newPart() segment.PartID { return segment.NewPartID(w.runner.Now(), lastPart.Add(1)) }

// scoring returns what the profiles of an app have in common.
func scoring(app config.App) segment.Scoring {
	return segment.Scoring{Version: app.ScoringVersion, RetentionDays: app.RetentionDays,
		HalfLives: app.Strategy.HalfLives}
}

// serves reports whether queries of an app read the parts of a manifest. The list of
// changes has gaps while segments are off.
func serves(m segment.Manifest, app config.App) bool {
	return m.Version > 0 && m.Generation != "" && app.Segments.On() && m.Since == app.Segments.Since.UnixMilli() &&
		app.ScoresAs(m.ScoringVersion) && m.RetentionDays == app.RetentionDays && m.Holdout == app.Holdout.ID()
}
