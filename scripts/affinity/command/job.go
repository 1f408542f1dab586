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

// WatchJob shows how far a job is until it has ended. look asks the engine.
func WatchJob(ctx context.Context, t *Tool, look func() (render.Progress, error)) error {
	meter := render.NewJobMeter(t.Err)
	defer meter.Clear()
	for {
		progress, err := look()
		if err != nil || progress.State.Ended() {
			return err
		}
		meter.Show(time.Now(), progress)
		if err := gax.Sleep(ctx, t.WatchEvery); err != nil {
			return err
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
