package command

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/googleapis/gax-go/v2"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/render"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
)

// Outcome says how a job ended: "is done", "failed", "was cancelled".
func Outcome(state api.JobState) string {
	switch state {
	case api.JobFailed:
		return "failed"
	case api.JobSuperseded, api.JobCancelled:
		return "was " + string(state)
	}
	return "is " + cli.Printable(string(state))
}

// IsNow says what a cancelled job is.
func IsNow(kind, id string, state api.JobState) string {
	return fmt.Sprintf("%s %s is %s", kind, cli.Printable(id), cli.Printable(string(state)))
}

// Failure is the error for a job that has ended, nil if it is done. name is what it is
// called, reason why it failed, if the engine says so.
func Failure(name string, state api.JobState, reason string) error {
	switch {
	case state == api.JobDone:
		return nil
	case reason == "":
		return fmt.Errorf("%s %s", name, Outcome(state))
	}
	return fmt.Errorf("%s %s: %s", name, Outcome(state), reason)
}

// Follow asks the engine for a job until it has ended, and returns it as it is then. It
// shows the progress meanwhile, and waits for an engine that is busy or away. doing is
// as for Show.
func Follow[J any](ctx context.Context, t *Tool, c *client.Client, doing string, ask func(*client.Client) (J, error),
	progress func(J) render.Progress) (J, error) {
	c = t.Patient(c)
	meter := render.NewJobMeter(t.Err)
	defer meter.Clear()
	for {
		job, err := ask(c)
		if err != nil {
			return job, failed(doing, nil, err)
		}
		p := progress(job)
		if p.State.Ended() {
			return job, nil
		}
		meter.Show(time.Now(), p)
		if err := gax.Sleep(ctx, t.WatchEvery); err != nil {
			return job, failed(doing, nil, err)
		}
	}
}

// FaultList says what a job has left out, and names the first faults.
func FaultList(what string, faults []string) string {
	if len(faults) == 0 {
		return what
	}
	for i := range faults {
		faults[i] = cli.Printable(faults[i])
	}
	return what + ":\n  " + strings.Join(faults, "\n  ")
}

// Unread is what a job over the log has left out.
func Unread(faulty int64) string {
	return fmt.Sprintf("%d users and rows of the log cannot be read and are left out", faulty)
}
