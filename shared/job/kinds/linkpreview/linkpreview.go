// Package linkpreview says which links between the tokens of persons the events of an app would have made
// in the last days, if the app had linked tokens: a dry run, which changes nothing.
//
// A job is one shard over all users, or one for each region in which users of the app live: the tokens of a person are
// in one region. Its task reads the log of these days, keeps in memory which events name
// the user who had signed in, links by them in the order of their times, and stores the counts as the result
// of the shard. Of some users it also compares the order of objects with links and without, by the events of the
// whole log. A task that ends early starts again from the beginning. Package job runs the jobs, which lie in
// a collection of this package:
//
//	apps/{app}/linkPreviews/{id}
package linkpreview

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/profile/links"
	"github.com/affinityengine/affinity/shared/profile/view"
	"github.com/affinityengine/affinity/shared/store"
)

// Collection names the collection of the jobs under an app.
var Collection = job.NewCollection[Params, Counts]("linkPreviews")

// Counts counts the work of a job.
type Counts struct {
	Users  int64 // with events in these days
	Events int64 // read
	Faulty int64 // rows that could not be read
}

// Params are the parameters of a job.
type Params struct {
	Days int       `firestore:"days"`
	AsOf time.Time `firestore:"asOf"` // the end of the days
	// Lookback is how long before a sign-in events count for the user (ms).
	Lookback int64 `firestore:"lookback"`
	// MaxEvents is how many events the job reads at most.
	MaxEvents int64 `firestore:"maxEvents"`
}

var _ job.Params = Params{}

// LogAttrs returns the number of days.
func (p Params) LogAttrs() []slog.Attr { return []slog.Attr{slog.Int("days", p.Days)} }

// since is the time of the first events that count (ms).
func (p Params) since() int64 { return p.AsOf.AddDate(0, 0, -p.Days).UnixMilli() }

// Bounds of what a job keeps in memory, some 400 MB. What exceeds them needs fewer days.
const (
	maxEvents   = 20_000_000 // read; those of tokens with evidence take 8 bytes each
	maxEvidence = 3_000_000  // events that name who had signed in, of 40 bytes each
	maxTokens   = 300_000    // with such events, and of users, whose links take some 500 bytes each
)

// Work reads and links.
type Work struct {
	job.Plain
	Store  *store.Store
	Config Config
	Now    func() time.Time // the engine's clock
}

// Config reads apps.
type Config interface {
	App(ctx context.Context, id string) (config.App, error)
}

var _ job.Work = Work{}

// Runner starts previews and runs their tasks. It is safe for concurrent use.
type Runner struct{ *job.Runner }

// New returns the runner of previews. It sets the name, the work and the size of the shards of r.
func New(r job.Runner, work Work) *Runner {
	r.Name, r.Work, r.ShardUsers = "linkpreview", work, math.MaxInt
	return &Runner{job.New(r)}
}

// ErrBusy means that a preview of the app is under way.
var ErrBusy = errors.New("a preview of links is under way")

// Start starts a preview of the last days. If another one of the app is under way, it returns that one and
// ErrBusy.
func (r *Runner) Start(ctx context.Context, appID string, days int) (job.Job, error) {
	app, err := r.Config.App(ctx, appID)
	if err != nil {
		return job.Job{}, fmt.Errorf("start linkpreview: %w", err)
	}
	return r.StartAlone(ctx, app, "preview", ErrBusy, func() (job.Job, error) {
		lookback := config.DefaultLookback
		if app.Identity.On() {
			lookback = app.Identity.Lookback
		}
		p := Params{Days: days, AsOf: job.Stamp(r.Now().Truncate(time.Millisecond)), Lookback: lookback.Milliseconds(),
			MaxEvents: maxEvents}
		if app.RetentionDays > 0 {
			p.Days = min(p.Days, app.RetentionDays)
		}
		return job.Job{App: appID, ID: job.NewID("linkpreview", r.Now()), Params: p}, nil
	})
}

// Result returns what a job has found, or job.ErrNotFound if it is not done, or what it has found is not stored any
// more. An app without users has no links.
func (r *Runner) Result(ctx context.Context, j job.Job) (api.LinkPreview, error) {
	var result api.LinkPreview
	if j.State != job.Done {
		return result, fmt.Errorf("result of %s: %w", j.ID, job.ErrNotFound)
	}
	result.LinkCounts = view.Links(links.NewDryRun(0))
	if j.Totals.PlannedUsers == 0 {
		return result, nil
	}
	for n := range j.Totals.Shards {
		shard, err := r.Jobs.Shard(ctx, j.App, j.ID, n)
		if err != nil {
			return result, err
		}
		if shard.PlannedUsers == 0 {
			continue // of a region without users
		}
		if shard.Result == "" {
			return result, fmt.Errorf("result of %s: %w", j.ID, job.ErrNotFound)
		}
		var of api.LinkPreview
		if err := json.Unmarshal([]byte(shard.Result), &of); err != nil {
			return result, fmt.Errorf("decode the result of %s: %w", j.ID, err)
		}
		result = sum(result, of)
	}
	return result, nil
}

// sum returns what previews of two regions have found.
func sum(a, b api.LinkPreview) api.LinkPreview {
	a.LinkCounts, a.GainedEvents = view.Sum(a.LinkCounts, b.LinkCounts), a.GainedEvents+b.GainedEvents
	if a.Orders == nil || b.Orders == nil {
		a.Orders = cmp.Or(a.Orders, b.Orders)
		return a
	}
	o := *a.Orders
	o.Users += b.Orders.Users
	o.TopChanged += b.Orders.TopChanged
	o.TopTenChanged += b.Orders.TopTenChanged
	o.Changed += b.Orders.Changed
	a.Orders = &o
	return a
}
