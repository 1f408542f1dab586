package admin

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/kinds/move"
	"github.com/affinityengine/affinity/shared/local/operator"
)

// stoppedMove is the move of an app whose job has failed in a phase.
type stoppedMove struct {
	command.Mover
	back  bool
	phase config.MovePhase
}

func (m stoppedMove) Moving(context.Context, string) (operator.MoveStatus, error) {
	return operator.MoveStatus{
		Region: "us", Move: config.Move{ID: "m", From: "eu", To: "us", Births: "us", Phase: m.phase, Back: m.back},
		State: job.Failed, Error: "2 rows are left",
	}, nil
}

func (m stoppedMove) Move(ctx context.Context, id, _ string) (operator.MoveStatus, error) {
	return m.Moving(ctx, id)
}

func (m stoppedMove) PlanMove(context.Context, string, string) (move.Estimate, error) {
	return move.Estimate{From: "eu", To: "us"}, nil
}

// A job that has failed is shown in every phase, also to who does not wait for its end.
func TestAppMoveShowsFailedJobs(t *testing.T) {
	for _, phase := range []config.MovePhase{config.MoveUsers, config.MoveDropping, config.MoveErasing, config.MoveFinishing} {
		var out strings.Builder
		a := &appTool{Tool: &command.Tool{Out: &out, Err: io.Discard, WatchEvery: time.Millisecond}}
		want := "the move of app shop has stopped in phase " + string(phase) + "; run the command again: 2 rows are left"
		for _, wait := range []bool{false, true} {
			err := a.move(t.Context(), stoppedMove{phase: phase}, "shop", moveOptions{to: "us", wait: wait})
			if err == nil || err.Error() != want || out.Len() > 0 {
				t.Errorf("%q (%v), want %q", out.String(), err, want)
			}
		}
		for back, again := range map[bool]string{false: "--to us", true: "--back"} {
			s, _ := stoppedMove{phase: phase, back: back}.Moving(t.Context(), "shop")
			want := "; the job of the phase is failed, and affinity app move shop " + again + " resumes it: 2 rows are left"
			if got := command.MoveProgress("shop", s); !strings.HasSuffix(got, want) {
				t.Errorf("%q, want %q", got, want)
			}
		}
	}
}

// turnedMove is a move that another command turns back.
type turnedMove struct {
	command.Mover
	now operator.MoveStatus
}

func (m turnedMove) Moving(context.Context, string) (operator.MoveStatus, error) { return m.now, nil }

func (turnedMove) PlanMove(context.Context, string, string) (move.Estimate, error) {
	return move.Estimate{From: "eu", To: "us"}, nil
}

func (turnedMove) Move(context.Context, string, string) (operator.MoveStatus, error) {
	return operator.MoveStatus{Region: "eu", Move: config.Move{ID: "m", From: "eu", To: "us", Births: "us", Phase: config.MoveUsers}}, nil
}

// Who waits for a move hears when another command has turned it back.
func TestAppMoveTurnedBack(t *testing.T) {
	for want, now := range map[string]operator.MoveStatus{
		"app shop is in region eu":                                       {Region: "eu"},
		"app shop moves from us to eu: completing what was left halfway": {Region: "eu", Move: config.Move{ID: "m", From: "us", To: "eu", Births: "eu", Phase: config.MoveArriving, Back: true}},
		"app shop moves from eu to asia: giving each user an owner":      {Region: "eu", Move: config.Move{ID: "n", From: "eu", To: "asia", Births: "eu", Phase: config.MoveMarking}},
	} {
		var out strings.Builder
		a := &appTool{Tool: &command.Tool{Out: &out, Err: io.Discard, WatchEvery: time.Millisecond}}
		err := a.move(t.Context(), turnedMove{now: now}, "shop", moveOptions{to: "us", wait: true})
		if want = "the move of app shop to us has been changed by another command: " + want; err == nil || !strings.HasPrefix(err.Error(), want) || out.Len() > 0 {
			t.Errorf("%q (%v), want %q", out.String(), err, want)
		}
	}
}
