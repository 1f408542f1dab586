package console

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/web/auth"
)

func init() {
	pages = append(pages,
		page{pattern: "GET /console/jobs", section: "jobs", template: "jobs", fragment: "list", poll: true, load: loadJobs},
		page{pattern: "POST /console/jobs/start", section: "jobs", template: "jobs", load: startJob},
		page{pattern: "POST /console/jobs/cancel", section: "jobs", template: "jobs", load: cancelJob},
		page{pattern: "GET /console/backtests/{id}", section: "jobs", template: "backtest", fragment: "report",
			poll: true, load: loadBacktest},
	)
	notices["started"] = "The job has been started."
	notices["cancelled"] = "The job has been cancelled. What it has done so far stays."
}

// Kinds of jobs, as forms name them.
const (
	kindRecompute = "recompute"
	kindCrowd     = "crowd"
	kindSegments  = "segments"
	kindReenrich  = "reenrich"
	kindBacktest  = "backtest"
	kindTune      = "tune"
	kindLinks     = "links"
)

// jobLine is a job of any kind.
type jobLine struct {
	Kind, ID string
	What     string // in words
	Why      string // it was started
	State    api.JobState
	Done     float64 // share of the users, 0 to 1
	Users    string  // how many of how many
	Started  time.Time
	Ended    time.Time // zero: it has not
	Ends     time.Time // by estimate; zero: unknown
	Before   int       // jobs that come first
	Error    string
	Faulty   int64
	Path     string // of its own page; empty: none
}

// Running and Failed say what people look for.
func (j jobLine) Running() bool { return !j.State.Ended() }

// Failed reports whether the job ended with an error.
func (j jobLine) Failed() bool { return j.State == api.JobFailed }

// Tone is how the state looks.
func (j jobLine) Tone() string {
	switch j.State {
	case api.JobDone:
		return "good"
	case api.JobFailed:
		return "bad"
	case api.JobPlanning, api.JobRunning:
		return "accent"
	}
	return ""
}

// Took says how long the job ran, or has been running.
func (j jobLine) Took(now time.Time) string {
	end := j.Ended
	if end.IsZero() {
		end = now
	}
	return end.Sub(j.Started).Round(time.Second).String()
}

// newJob makes a job of what all kinds have.
func newJob(kind, what, id string, state api.JobState, visited, planned int64, started api.Time,
	finished *api.Time) jobLine {
	j := jobLine{Kind: kind, What: what, ID: id, State: state, Started: started.Time, Users: plural(visited, "user")}
	if planned > 0 {
		j.Done, j.Users = min(1, float64(visited)/float64(planned)),
			number(visited)+" of "+plural(max(visited, planned), "user")
	}
	if state == api.JobPlanning {
		j.Users = "the work is being divided"
	}
	if state == api.JobDone {
		j.Done, j.Users = 1, plural(visited, "user")
	}
	if finished != nil {
		j.Ended = finished.Time
	}
	return j
}

var triggers = map[string]string{
	api.TriggerStrategy: "a new strategy", api.TriggerManual: "asked for", api.TriggerNightly: "every night",
	api.TriggerImport: "an import",
}

func (j jobLine) because(trigger string) jobLine {
	j.Why = triggers[trigger]
	return j
}

func (j jobLine) waits(p api.Place) jobLine {
	if p.JobsBefore != nil {
		j.Before = *p.JobsBefore
	}
	return j
}

func (j jobLine) faults(n int64, text string) jobLine {
	j.Faulty, j.Error = n, text
	return j
}

// jobLines are the jobs of a kind.
func jobLines[T any](jobs []T, line func(T) jobLine) []jobLine {
	lines := make([]jobLine, len(jobs))
	for i, j := range jobs {
		lines[i] = line(j)
	}
	return lines
}

func recomputeJob(r api.Recompute) jobLine {
	j := newJob(kindRecompute, "Recompute of profiles", r.ID, r.State, r.VisitedUsers, r.PlannedUsers, r.StartedAt,
		r.FinishedAt).because(r.Trigger).waits(r.Place).faults(r.Faulty, r.Error)
	if r.EstimatedEndAt != nil {
		j.Ends = r.EstimatedEndAt.Time
	}
	return j
}

func crowdJob(b api.CrowdBuild) jobLine {
	what := "Build of crowd statistics"
	if len(b.Indexes) > 0 {
		what += " of " + shown(strings.Join(b.Indexes, ", "))
	}
	return newJob(kindCrowd, what, b.ID, b.State, b.VisitedUsers, b.PlannedUsers, b.StartedAt,
		b.FinishedAt).because(b.Trigger).waits(b.Place).faults(b.Faulty, b.Error)
}

func segmentJob(b api.SegmentBuild) jobLine {
	return newJob(kindSegments, "Build of segments", b.ID, b.State, b.VisitedUsers, b.PlannedUsers, b.StartedAt,
		b.FinishedAt).because(b.Trigger).waits(b.Place).faults(b.Faulty, b.Error)
}

func reenrichJob(r api.Reenrichment) jobLine {
	what := "Re-enrichment of events"
	if r.DryRun {
		what += ", as a trial"
	}
	return newJob(kindReenrich, what, r.ID, r.State, r.VisitedUsers, r.PlannedUsers, r.StartedAt,
		r.FinishedAt).waits(r.Place).faults(r.Faulty, r.Error)
}

func backtestJob(b api.BacktestSummary) jobLine {
	what, kind := "Backtest", kindBacktest
	if b.Search != nil {
		what, kind = "Tuning", kindTune
	}
	j := newJob(kind, what, b.ID, b.State, b.Users, b.PlannedUsers, b.StartedAt,
		b.FinishedAt).waits(b.Place).faults(b.Faulty, b.Error)
	if b.Search != nil && !b.State.Ended() && b.Search.Most > 0 {
		j.Done, j.Users = float64(b.Search.Trials)/float64(b.Search.Most),
			fmt.Sprintf("%d of %d trials", b.Search.Trials, b.Search.Most)
	}
	j.Path = "/console/backtests/" + url.PathEscape(b.ID)
	return j
}

// jobs is what the page of jobs shows.
type jobs struct {
	Now        time.Time
	Running    []jobLine
	Ended      []jobLine
	Indexes    []string // those with statistics: a backtest is about one
	Denied     bool     // the key may not see jobs
	Missing    string   // why some jobs are not in the lists; empty: all are
	Statistics part[api.Crowd]
}

// Follow reports whether the lists may soon be others.
func (j *jobs) Follow() bool { return len(j.Running) > 0 || j.Missing != "" }

const shownJobs = 40

func loadJobs(v *visit) (any, error) {
	v.title, v.command = "Jobs", "affinity recompute list\n"+backtestCommand(v)
	found, ctx, a := &jobs{Now: v.now()}, v.Context(), &asks{}
	var recomputes part[api.Recomputes]
	var reenrichments part[api.Reenrichments]
	var segments part[api.Segments]
	var backtests part[api.Backtests]
	var previews part[api.IdentityPreviews]
	ask(a, &recomputes, func() (api.Recomputes, error) { return v.engine.Jobs().Recomputes(ctx) })
	ask(a, &found.Statistics, func() (api.Crowd, error) { return v.engine.Jobs().Crowd(ctx) })
	ask(a, &reenrichments, func() (api.Reenrichments, error) { return v.engine.Jobs().Reenrichments(ctx) })
	ask(a, &segments, func() (api.Segments, error) { return v.engine.Segments().List(ctx) })
	ask(a, &backtests, func() (api.Backtests, error) { return v.engine.Jobs().Backtests(ctx) })
	ask(a, &previews, func() (api.IdentityPreviews, error) { return v.engine.Jobs().IdentityPreviews(ctx) })
	a.wait()
	var err error
	if found.Missing, err = firstMissing(recomputes, found.Statistics, reenrichments, segments, backtests,
		previews); err != nil && v.Header.Get("Hx-Request") != "" {
		return nil, err // the page keeps what it shows
	}
	all := slices.Concat(
		jobLines(recomputes.Got.Recomputes, recomputeJob), jobLines(found.Statistics.Got.Builds, crowdJob),
		jobLines(reenrichments.Got.Reenrichments, reenrichJob), jobLines(segments.Got.Builds, segmentJob),
		jobLines(backtests.Got.Backtests, backtestJob), jobLines(previews.Got.Previews, linksJob),
	)
	for _, g := range found.Statistics.Got.Generations {
		found.Indexes = append(found.Indexes, g.Index)
	}
	slices.SortStableFunc(all, func(a, b jobLine) int { return b.Started.Compare(a.Started) })
	for _, j := range all {
		if j.Running() {
			found.Running = append(found.Running, j)
		} else if len(found.Ended) < shownJobs {
			found.Ended = append(found.Ended, j)
		}
	}
	found.Denied = recomputes.Denied
	return found, nil
}

// startJob starts a job of the kind that the form names.
func startJob(v *visit) (any, error) {
	ctx, index := v.Context(), v.PostForm.Get("index")
	var err error
	switch kind := v.PostForm.Get("kind"); kind {
	case kindRecompute:
		_, err = v.engine.Jobs().StartRecompute(ctx, api.RecomputeRequest{})
	case kindCrowd:
		_, err = v.engine.Jobs().BuildCrowd(ctx, api.CrowdRequest{Index: index})
	case kindSegments:
		_, err = v.engine.Segments().Refresh(ctx)
	case kindReenrich:
		_, err = v.engine.Jobs().StartReenrichment(ctx, api.ReenrichRequest{})
	case kindLinks:
		var started api.IdentityPreview
		if started, err = v.engine.Jobs().StartIdentityPreview(ctx, api.IdentityPreviewRequest{}); err == nil {
			return nil, done(linksPath(started.ID), "started")
		}
	case kindBacktest, kindTune:
		request := api.BacktestRequest{Index: index}
		if kind == kindTune {
			request.Tune = &api.TuneRequest{}
		} else if request.Strategies, err = activeVersion(v); err != nil {
			return nil, err
		}
		var started api.BacktestJob
		if started, err = v.engine.Jobs().StartBacktest(ctx, request); err == nil {
			return nil, done("/console/backtests/"+url.PathEscape(started.ID), "started")
		}
	default:
		return nil, &api.Error{Status: http.StatusUnprocessableEntity, Message: "There is no such kind of job"}
	}
	if err != nil {
		return nil, err
	}
	return nil, done("/console/jobs", "started")
}

// cancelJob ends a job of the kind that the form names.
func cancelJob(v *visit) (any, error) {
	ctx, id := v.Context(), v.PostForm.Get("id")
	var err error
	switch v.PostForm.Get("kind") {
	case kindRecompute:
		_, err = v.engine.Jobs().CancelRecompute(ctx, id)
	case kindCrowd:
		_, err = v.engine.Jobs().CancelCrowd(ctx, id)
	case kindReenrich:
		_, err = v.engine.Jobs().CancelReenrichment(ctx, id)
	case kindBacktest, kindTune:
		_, err = v.engine.Jobs().CancelBacktest(ctx, id)
	case kindLinks:
		_, err = v.engine.Jobs().CancelIdentityPreview(ctx, id)
	default:
		err = &api.Error{Status: http.StatusUnprocessableEntity, Message: "A job of this kind cannot be cancelled"}
	}
	if err != nil {
		return nil, err
	}
	return nil, done("/console/jobs", "cancelled")
}

// Cancellable reports whether a job of this kind can be cancelled.
func (j jobLine) Cancellable() bool { return j.Running() && j.Kind != kindSegments }

// Permission is the permission with which a session may cancel the job.
func (j jobLine) Permission() string {
	if j.Kind == kindCrowd {
		return auth.Recommendation
	}
	return auth.Admin
}
