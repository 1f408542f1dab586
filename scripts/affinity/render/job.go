package render

import (
	"cmp"
	"fmt"
	"io"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/api"
)

// Progress is how far a job is.
type Progress struct {
	State            api.JobState
	Planned, Visited int64 // users, or what Parts names
	Count            int64 // events read, or what Counted names
	Parts, Counted   string
	Wait             api.Wait
}

// RecomputeProgress is how far a recompute is.
func RecomputeProgress(j api.Recompute) Progress {
	return Progress{State: j.State, Planned: j.PlannedUsers, Visited: j.VisitedUsers, Count: j.Events, Wait: j.Wait}
}

// ReenrichProgress is how far a re-enrichment is.
func ReenrichProgress(j api.Reenrichment) Progress {
	return Progress{State: j.State, Planned: j.PlannedUsers, Visited: j.VisitedUsers, Count: j.Events, Wait: j.Wait}
}

// PreviewProgress is how far a preview of links is.
func PreviewProgress(j api.IdentityPreview) Progress {
	return Progress{State: j.State, Planned: j.PlannedUsers, Visited: j.Users, Count: j.Events,
		Wait: api.Wait{Place: j.Place}}
}

// CrowdProgress is how far a build of crowd statistics is. Once all users are
// counted, it is the shards that merge.
func CrowdProgress(j api.CrowdBuild) Progress {
	p := Progress{State: j.State, Planned: j.PlannedUsers, Visited: j.VisitedUsers, Count: j.Events,
		Wait: api.Wait{Place: j.Place}}
	if j.PlannedUsers > 0 && j.VisitedUsers >= j.PlannedUsers {
		p.Planned, p.Visited, p.Parts = int64(j.Shards.Total), int64(j.Shards.Done), "parts"
	}
	return p
}

// MigrationProgress is how far the job of a migration is. A drop visits no users.
func MigrationProgress(j api.MigrationJob) Progress {
	p := Progress{State: j.State, Planned: j.PlannedUsers, Visited: j.Users, Count: j.Rows, Counted: "rows", Wait: j.Wait}
	if j.Kind == "drop" {
		p.Planned, p.Visited, p.Parts = int64(j.Shards.Total), int64(j.Shards.Done), "parts"
	}
	return p
}

// Took is how long a job took, to be put after its outcome; "" if it has not
// ended.
func Took(started api.Time, finished *api.Time) string {
	if finished == nil {
		return ""
	}
	return fmt.Sprintf(" in %.1f s", finished.Sub(started.Time).Seconds())
}

// JobMeter shows how far a job is: a bar on a terminal, else a line every few
// seconds.
type JobMeter struct {
	out     io.Writer
	bar     *progressbar.ProgressBar // nil: lines
	printed time.Time                // when the last line was printed
	state   api.JobState             // in the last line
	begun   time.Time                // when the job was first seen at work
	first   Progress                 // what it was then
}

// NewJobMeter returns a meter that writes to out.
func NewJobMeter(out io.Writer) *JobMeter {
	m := &JobMeter{out: out}
	if cli.IsTerminal(out) {
		m.bar = progressbar.NewOptions64(1, progressbar.OptionSetWriter(out), progressbar.OptionSetWidth(30),
			progressbar.OptionClearOnFinish(), progressbar.OptionSetElapsedTime(false), progressbar.OptionSetPredictTime(false))
	}
	return m
}

// Show shows the progress at a time.
func (m *JobMeter) Show(now time.Time, p Progress) {
	text := m.describe(now, p)
	if m.bar != nil {
		m.bar.Describe(text)
		// The bar is full only at the end. Set64 fails only beyond it.
		m.bar.ChangeMax64(max(1, p.Planned))
		_ = m.bar.Set64(max(0, min(p.Visited, p.Planned-1)))
		return
	}
	if m.state == p.State && now.Sub(m.printed) < cli.PlainEvery {
		return
	}
	m.printed, m.state = now, p.State
	fmt.Fprintln(m.out, text)
}

// describe says how far a job is, how fast it is, and how long it will take.
func (m *JobMeter) describe(now time.Time, p Progress) string {
	if p.Planned == 0 {
		return "waiting to begin, until every instance has the latest configuration" + Before(p.Wait.Place)
	}
	if m.begun.IsZero() {
		m.begun, m.first = now, p
	}
	seconds := now.Sub(m.begun).Seconds()
	text := fmt.Sprintf("%s, %d of %d %s", cli.Printable(string(p.State)), p.Visited, p.Planned, cmp.Or(p.Parts, "users"))
	if p.State == api.JobPlanning {
		text += " planned so far"
	}
	if p.Visited == 0 {
		text += Before(p.Wait.Place)
	}
	if seconds <= 0 {
		return text + EstimatedEnd(p.Wait)
	}
	text += fmt.Sprintf(", %.0f %s/s", float64(p.Count-m.first.Count)/seconds, cmp.Or(p.Counted, "events"))
	perSecond := float64(p.Visited-m.first.Visited) / seconds
	if left := p.Planned - p.Visited; p.State == api.JobRunning && perSecond > 0 && left >= 0 {
		// What the command has seen is newer than the rate of the whole job.
		return text + fmt.Sprintf(", %s left", time.Duration(float64(left)/perSecond*float64(time.Second)).Round(time.Second))
	}
	return text + EstimatedEnd(p.Wait)
}

// Before says how many jobs are before a job, to be put after its state; "" if
// none is, or if that is unknown.
func Before(p api.Place) string {
	if p.JobsBefore == nil || *p.JobsBefore == 0 {
		return ""
	}
	return fmt.Sprintf(", %s before it in the queue", cli.Count(int64(*p.JobsBefore), "job"))
}

// EstimatedEnd says when a job may end, by the engine's clock; "" if that is
// unknown.
func EstimatedEnd(w api.Wait) string {
	if w.EstimatedEndAt == nil {
		return ""
	}
	return ", may end at " + w.EstimatedEndAt.UTC().Format(time.TimeOnly) + " UTC"
}

// Clear removes the bar.
func (m *JobMeter) Clear() {
	if m.bar != nil {
		_ = m.bar.Clear() // it writes to the terminal only
	}
}
