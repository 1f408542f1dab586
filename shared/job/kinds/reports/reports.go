// Package reports says what the arms of an experiment have shown, from the log of events alone: the holdout of an app,
// which compares users who get personalization with those who do not, or its experiment.
//
// The shards of a job over users add up what each person did by day (package lift). A person of several tokens counts
// once, in the arm of the token that came first. The last shard merges the sums and keeps the report beside the
// configuration. A night makes a report of all that runs, and one of the month before, so that a report is there when
// its days have left the log. Package job runs the jobs, which lie in a collection of this package:
//
//	apps/{app}/reports/{id}
package reports

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/fault"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/judge/lift"
	"github.com/affinityengine/affinity/shared/profile"
)

// Collection names the collection of the jobs under an app.
var Collection = job.NewCollection[Params, Counts]("reports")

// Counts counts the work of a job.
type Counts struct {
	Users  int64 // whose rows were read
	Events int64 // that count for them
	Faulty int64 // rows that could not be read
}

// Params are the parameters of a job.
type Params struct {
	Experiment string `firestore:"experiment"`
	Month      string `firestore:"month,omitempty"` // of a report of a month, such as 2026-11
	Definition string `firestore:"definition"`      // JSON
	Hash       string `firestore:"hash"`            // of the definition
	// Start is the day on which the experiment began, From and To are the days of the report.
	Start string `firestore:"start"`
	From  string `firestore:"from"`
	To    string `firestore:"to"`
	// Metric is the one that decides, "": revenue if there is any, else conversions.
	Metric   string `firestore:"metric"`
	Currency string `firestore:"currency"`
	// Since (ms) is when it began as its exposures name it.
	Since int64 `firestore:"since"`
	// AsOf is the instant of the log, RetentionDays is how far back from the last day the job reads.
	AsOf          time.Time `firestore:"asOf"`
	RetentionDays int       `firestore:"retentionDays"`
}

var _ job.Params = Params{}

// LogAttrs returns the days. Names of experiments are the app's own.
func (p Params) LogAttrs() []slog.Attr {
	return []slog.Attr{slog.String("from", p.From), slog.String("to", p.To)}
}

const (
	// shardUsers bounds what a shard keeps: each person is in at most one cell of the sums of a metric and a currency.
	shardUsers = 5_000
	// concurrency bounds how many shards have tasks at a time.
	concurrency = 4
	// before is how many days before an experiment adjust its lift.
	before = 28
)

// Runner starts reports and runs their tasks. It is safe for concurrent use.
type Runner struct {
	*job.Runner
	work *Work
}

// Work adds up and merges. The function that runs its tasks must set Profiles and Reports.
type Work struct {
	job.Plain
	Profiles *profile.Engine
	Reports  config.Reports
	// ShardUsers is the number of users of a shard; 0: the default. Tests set fewer.
	ShardUsers int

	runner *Runner
}

var _ job.Continued = &Work{}

// New returns the runner of reports. It sets the name, the work and the size of the shards of r.
func New(r job.Runner, work Work) *Runner {
	r.Name, r.Work, r.ShardUsers = "report", &work, cmp.Or(work.ShardUsers, shardUsers)
	runner := &Runner{job.New(r), &work}
	work.runner = runner
	return runner
}

// Request asks for a report.
type Request struct {
	Experiment string
	From, To   string // days, such as 2026-11-30; "": the first and the last that there can be
	Currency   string // of revenue; "" is the one in which most people paid
}

// ErrBusy means that a report of the experiment is under way.
var ErrBusy = errors.New("a report is under way")

// Start starts a report. If another one of the experiment is under way, it returns that one and ErrBusy. The error is
// ErrUnknown, or of kind fault.Invalid for days that cannot be reported.
func (r *Runner) Start(ctx context.Context, appID string, q Request) (job.Job, error) {
	app, err := r.Config.App(ctx, appID)
	if err != nil {
		return job.Job{}, fmt.Errorf("start report: %w", err)
	}
	now := r.Now()
	d, err := definedBy(app, q.Experiment, now)
	if err != nil {
		return job.Job{}, err
	}
	p, err := d.params(app, q, now)
	if err != nil {
		return job.Job{}, err
	}
	unfinished, err := r.Jobs.Unfinished(ctx, appID)
	if err != nil {
		return job.Job{}, fmt.Errorf("list the unfinished report jobs: %w", err)
	}
	for _, j := range unfinished {
		if of := job.ParamsOf[Params](j); of.Experiment == q.Experiment && of.Month == "" {
			return j, errors.Join(ErrBusy, r.ResumeJob(ctx, j))
		}
	}
	return r.Runner.Start(ctx, job.Job{App: appID, ID: job.NewID("report", now), Concurrency: concurrency, Params: p}, 0)
}

// params returns the parameters of a report as of now.
func (d defined) params(app config.App, q Request, now time.Time) (p Params, err error) {
	today, start := lift.DayOf(now), lift.DayOf(d.start)
	first, last := start, max(today-1, start) // the last day that is over
	oldest := today - lift.Day(app.RetentionDays) + 1
	if app.RetentionDays > 0 {
		first = max(first, oldest)
	}
	if !d.end.IsZero() {
		today = max(lift.DayOf(d.end.Add(-time.Nanosecond)), start)
		last = min(last, today)
	}
	days := []struct {
		name, text string
		day        *lift.Day
	}{{"from", q.From, &first}, {"to", q.To, &last}}
	from := first
	for _, one := range days {
		if one.text != "" {
			if err := one.day.UnmarshalText([]byte(one.text)); err != nil {
				return p, fault.New(fault.Invalid, "%s: %v", one.name, err)
			}
		}
	}
	switch {
	case first < start:
		return p, fault.New(fault.Invalid, "from: %v is before the first day of %q, %v", first, d.name, start)
	case first < from:
		return p, fault.New(fault.Invalid, "from: %v has left the log, which begins on %v", first, from)
	case last > today:
		return p, fault.New(fault.Invalid, "to: %v is after the last day that %q has, %v", last, d.name, today)
	case last < first:
		return p, fault.New(fault.Invalid, "to: %v is before from, %v", last, first)
	}
	// What lies before the weeks that adjust the lift need not be read.
	reads := int(last-min(start, first)) + before + 2
	if app.RetentionDays > 0 {
		reads = min(reads, app.RetentionDays)
	}
	p = Params{Experiment: d.name, Start: start.String(), From: first.String(), To: last.String(),
		Metric: string(d.metric), Currency: q.Currency, Since: d.since.UnixMilli(),
		AsOf: job.Stamp(now.Truncate(time.Millisecond)), RetentionDays: reads}
	p.Definition, p.Hash, err = d.text()
	return p, err
}

// Nightly starts the reports that are due for an app: of all that runs, and of the month before that has none yet.
// It is idempotent.
func (r *Runner) Nightly(ctx context.Context, appID string, night job.Night) error {
	app, err := r.Config.App(ctx, appID)
	if err != nil {
		return fmt.Errorf("start report: %w", err)
	}
	now := r.Now()
	for _, d := range allOf(app, now) {
		err = errors.Join(err, r.nightOf(ctx, app, d, night, now))
	}
	return err
}

// nightOf starts the reports of one experiment.
func (r *Runner) nightOf(ctx context.Context, app config.App, d defined, night job.Night, now time.Time) error {
	kept := r.work.Reports
	latest, err := kept.Kept(ctx, app.ID, d.name, "")
	if err != nil && !errors.Is(err, config.ErrNotFound) {
		return err
	}
	_, hash, err := d.text()
	if err != nil {
		return err
	}
	if final := d.end.AddDate(0, 0, settled); d.end.IsZero() || latest.Definition != hash || latest.AsOf.Before(final) {
		if err := r.startNightly(ctx, app, d, Request{Experiment: d.name}, "", "nightly-"+night.Date, now); err != nil {
			return err
		}
	}
	q, month := d.lastMonth(app, now)
	if month == "" {
		return nil
	}
	if _, err := kept.Kept(ctx, app.ID, d.name, month); !errors.Is(err, config.ErrNotFound) {
		return err
	}
	return r.startNightly(ctx, app, d, q, month, "monthly-"+night.Date, now)
}

// settled is how many days after its last day a report is made for good: clients send later what happened offline.
const settled = 2

// lastMonth asks for the days of the month before this one on which an experiment ran and which the log holds. The
// month is empty if there are none, or if the report should wait.
func (d defined) lastMonth(app config.App, now time.Time) (q Request, month string) {
	today := lift.DayOf(now)
	last := today - lift.Day(now.UTC().Day())
	first, wait := max(lift.DayOf(d.start), last-lift.Day(last.Time().Day())+1), lift.Day(settled)
	if app.RetentionDays > 0 {
		first = max(first, today-lift.Day(app.RetentionDays)+1)
		if app.RetentionDays <= 31+settled { // days of the month would leave the log
			wait = 0
		}
	}
	if today-last <= wait || first > last || !d.end.IsZero() && lift.DayOf(d.end) <= last {
		return q, ""
	}
	return Request{Experiment: d.name, From: first.String(), To: last.String()}, last.String()[:len("2026-11")]
}

func (r *Runner) startNightly(ctx context.Context, app config.App, d defined, q Request, month, id string,
	now time.Time) error {
	p, err := d.params(app, q, now)
	if err != nil {
		return fmt.Errorf("start the nightly report of %q: %w", d.name, err)
	}
	p.Month = month
	if d.Experiment != nil {
		id += "-experiment"
	}
	_, err = r.Runner.Start(ctx, job.Job{App: app.ID, ID: id, Concurrency: concurrency, Params: p}, 0)
	return err
}
