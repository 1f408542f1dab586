package command

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/kinds/move"
	"github.com/affinityengine/affinity/shared/local/operator"
)

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
		return text + fmt.Sprintf("; the job of the phase is %s, and affinity app move %s %s resumes it: %s", s.State, id, again, cmp.Or(s.Error, "it names no error"))
	case s.Waits > 0:
		return text + fmt.Sprintf(" in %s", s.Waits.Round(5*time.Second))
	case s.Users > 0:
		return text + fmt.Sprintf(", %s of %d", cli.Count(int(s.Users), "user"), s.Planned)
	}
	return text
}
