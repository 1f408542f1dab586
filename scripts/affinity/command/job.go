package command

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/googleapis/gax-go/v2"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/render"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/kinds/move"
	"github.com/affinityengine/affinity/shared/local/operator"
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
// shows the progress until then, and waits for an engine that is busy or away. doing is
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

// Mover moves apps: an operator.Client does, and operator.Moves.
type Mover interface {
	Move(ctx context.Context, appID, to string) (operator.MoveStatus, error)
	PlanMove(ctx context.Context, appID, to string) (move.Estimate, error)
	MoveBack(ctx context.Context, appID string) (operator.MoveStatus, error)
	Moving(ctx context.Context, appID string) (operator.MoveStatus, error)
	Isolation(ctx context.Context, appID, tables string, back bool) (string, error)
}

// phaseTexts say what the phases of a move do.
var phaseTexts = map[config.MovePhase]string{
	config.MoveMarking:   "giving each user an owner",
	config.MoveArriving:  "completing what was left halfway",
	config.MoveClearing:  "removing what users have left behind",
	config.MoveCleared:   "waiting",
	config.MoveUsers:     "moving users and the catalog",
	config.MoveSwitched:  "asking the new region first, and moving statistics",
	config.MoveDropping:  "deleting what users have left behind",
	config.MoveErasing:   "deleting the rest",
	config.MoveFinishing: "ending the move",
}

// MoveStopped reports whether the job of the phase has ended before its work was done.
func MoveStopped(s operator.MoveStatus) bool {
	return s.State.Ended() && s.State != job.Done && s.State != ""
}

// MoveProgress says how far the move of an app is.
func MoveProgress(id string, s operator.MoveStatus) string {
	text := fmt.Sprintf("app %s moves from %s to %s: %s", id, s.Move.From, s.Move.To, phaseTexts[s.Move.Phase])
	switch {
	case MoveStopped(s):
		again := "--to " + s.Move.To
		if s.Move.Back {
			again = "--back"
		}
		return text + fmt.Sprintf("; the job of the phase is %s, and affinity app move %s %s resumes it: %s", s.State,
			id, again, cmp.Or(s.Error, "it names no error"))
	case s.Waits > 0:
		return text + fmt.Sprintf(" in %s", s.Waits.Round(5*time.Second))
	case s.Users > 0:
		return text + fmt.Sprintf(", %s of %d", cli.Count(int(s.Users), "user"), s.Planned)
	}
	return text
}
