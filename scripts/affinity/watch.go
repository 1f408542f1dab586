package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
)

// watchEvery is how often the engine is asked how far a job is.
const watchEvery = 500 * time.Millisecond

// jobAnswer is what the engine says of every job over all users.
type jobAnswer struct {
	ID     string `json:"id"`
	State  string `json:"state"`
	Shards struct {
		Total, Done, Failed int
	} `json:"shards"`
	Users        int64      `json:"users"`
	Events       int64      `json:"events"`
	StartedAt    time.Time  `json:"startedAt"`
	FinishedAt   *time.Time `json:"finishedAt"`
	PlannedUsers int64      `json:"plannedUsers"`
	VisitedUsers int64      `json:"visitedUsers"`
	Error        string     `json:"error"`

	parts, rows string // what PlannedUsers and Events count, if not users and events
}

// took is how long a job has taken, with what stands before it; empty if it has
// not ended.
func (j jobAnswer) took() string {
	if j.FinishedAt == nil {
		return ""
	}
	return fmt.Sprintf(" in %.1f s", j.FinishedAt.Sub(j.StartedAt).Seconds())
}

// watchJob shows how far a job is until it has ended. look asks for it.
func (t *tool) watchJob(ctx context.Context, look func() (jobAnswer, error)) error {
	w := newJobMeter(t.err)
	defer w.clear()
	for {
		var job jobAnswer
		err := t.wait.retry(ctx, t.waiting, func() (err error) {
			job, err = look()
			return err
		})
		if err != nil || job.State != "planning" && job.State != "running" {
			return err
		}
		w.show(time.Now(), job)
		if err := cli.Sleep(ctx, cmp.Or(t.watchEvery, watchEvery)); err != nil {
			return err
		}
	}
}

// watchRecompute follows a recompute to its end. It ends with an error unless the
// recompute gets done.
func (t *tool) watchRecompute(ctx context.Context, c *client, id string) error {
	var job recomputeAnswer
	err := t.watchJob(ctx, func() (_ jobAnswer, err error) {
		job, err = readRecompute(c.do(ctx, http.MethodGet, recomputesPath+"/"+url.PathEscape(id), nil))
		return job.jobAnswer, err
	})
	if err != nil {
		return fmt.Errorf("watch recompute %s: %w", cli.Printable(id), err)
	}
	return t.recomputeEnded(job)
}

func (t *tool) recomputeEnded(job recomputeAnswer) error {
	text := fmt.Sprintf("recompute %s is %s: %d users, %d events, %d of %d shards%s", cli.Printable(job.ID), cli.Printable(job.State), job.Users, job.Events,
		job.Shards.Done, job.Shards.Total, job.took())
	if job.State == "done" {
		_, err := fmt.Fprintln(t.out, text)
		return err
	}
	if job.Error != "" {
		text += ": " + cli.Printable(job.Error)
	}
	return errors.New(text)
}

// jobMeter tells a person how far a job is: a bar on a terminal, a line now and
// then elsewhere.
type jobMeter struct {
	out   io.Writer
	bar   *progressbar.ProgressBar // nil: plain lines
	told  time.Time                // when the last line was
	phase string                   // what it said
	begun time.Time                // when its users were first seen to be gone through
	first jobAnswer                // what it was then
}

func newJobMeter(out io.Writer) *jobMeter {
	m := &jobMeter{out: out}
	if cli.IsTerminal(out) {
		m.bar = progressbar.NewOptions64(1, progressbar.OptionSetWriter(out), progressbar.OptionSetWidth(30),
			progressbar.OptionClearOnFinish(), progressbar.OptionSetElapsedTime(false), progressbar.OptionSetPredictTime(false))
	}
	return m
}

func (m *jobMeter) show(now time.Time, job jobAnswer) {
	text := m.describe(now, job)
	if m.bar != nil {
		m.bar.Describe(text)
		// Full only in the end; these fail only past it.
		m.bar.ChangeMax64(max(1, job.PlannedUsers))
		_ = m.bar.Set64(max(0, min(job.VisitedUsers, job.PlannedUsers-1)))
		return
	}
	if m.phase == job.State && now.Sub(m.told) < plainEvery {
		return
	}
	m.told, m.phase = now, job.State
	fmt.Fprintln(m.out, text)
}

// describe says how far a job is, how fast, and how long it takes from now on.
func (m *jobMeter) describe(now time.Time, job jobAnswer) string {
	if job.PlannedUsers == 0 {
		return "waiting to begin"
	}
	if m.begun.IsZero() {
		m.begun, m.first = now, job
	}
	seconds := now.Sub(m.begun).Seconds()
	text := fmt.Sprintf("%s, %d of %d %s", cli.Printable(job.State), job.VisitedUsers, job.PlannedUsers, cmp.Or(job.parts, "users"))
	if seconds <= 0 {
		return text
	}
	text += fmt.Sprintf(", %.0f %s/s", float64(job.Events-m.first.Events)/seconds, cmp.Or(job.rows, "events"))
	perSecond := float64(job.VisitedUsers-m.first.VisitedUsers) / seconds
	if left := job.PlannedUsers - job.VisitedUsers; job.State == "running" && perSecond > 0 && left >= 0 {
		text += fmt.Sprintf(", %s left", time.Duration(float64(left)/perSecond*float64(time.Second)).Round(time.Second))
	}
	return text
}

// clear takes the bar away.
func (m *jobMeter) clear() {
	if m.bar != nil {
		_ = m.bar.Clear() // it only writes to the terminal
	}
}
