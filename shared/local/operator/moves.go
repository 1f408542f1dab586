package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/app/auditlog"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/fault"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/kinds/move"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

const (
	movePath     = "/local/apps/move"
	movePlanPath = "/local/apps/move/plan"
	moveBackPath = "/local/apps/move/back"
	movingPath   = "/local/apps/moving"
	isolatePath  = "/local/apps/isolation"
)

// noRegions is the answer to a request about regions where there are none.
const noRegions = "This engine has no regions: start it with --regions eu,us"

// MoveStatus is where the move of an app is.
type MoveStatus struct {
	Region string      `json:"region"`
	Move   config.Move `json:"move"` // zero: the app does not move
	// State and Error are those of the job of the phase; empty if there is none yet.
	State job.State `json:"state,omitempty"`
	Error string    `json:"error,omitempty"`
	// Users is how many users the phase has visited, of Planned.
	Users   int64 `json:"users"`
	Planned int64 `json:"planned"`
	// Waits is how long the phase still waits before it begins.
	Waits time.Duration `json:"waits"`
}

func statusOf(s move.Status, err error) (MoveStatus, error) {
	m := MoveStatus{Region: s.Region, Move: s.Move, Waits: s.Waits}
	if s.Job != nil {
		m.State, m.Error, m.Users, m.Planned = s.Job.State, s.Job.Error, s.Job.Totals.Counts[job.CountUsers],
			s.Job.Totals.PlannedUsers
	}
	return m, err
}

// Moves moves apps between regions, and records that the operator did so.
type Moves struct {
	Runner   *move.Runner
	Recorder *auditlog.Recorder
	// Regions and Apps say where an app can move to, and where it can be isolated.
	Regions config.Regions
	Apps    *config.Store
}

// Move begins the move of an app to another region, or resumes it.
func (m Moves) Move(ctx context.Context, appID, to string) (MoveStatus, error) {
	if err := m.takes(ctx, appID, to); err != nil {
		return MoveStatus{}, err
	}
	return m.recorded(ctx, appID, "to "+to, func() (move.Status, error) { return m.Runner.Start(ctx, appID, to) })
}

// takes refuses a region that drains, but for an app that is under way to it.
func (m Moves) takes(ctx context.Context, appID, to string) error {
	if one, ok := m.Regions.Find(to); !ok || !one.Draining {
		return nil // the runner refuses a region that is not there
	}
	app, err := m.Apps.App(ctx, appID)
	if err != nil || app.Moving() && app.Move.To == to {
		return err
	}
	return &move.Refused{Message: m.Regions.Takes(to).Error()}
}

// PlanMove returns what a move would do.
func (m Moves) PlanMove(ctx context.Context, appID, to string) (move.Estimate, error) {
	if err := m.takes(ctx, appID, to); err != nil {
		return move.Estimate{}, err
	}
	return m.Runner.Estimate(ctx, appID, to)
}

// MoveBack turns the move of an app back.
func (m Moves) MoveBack(ctx context.Context, appID string) (MoveStatus, error) {
	return m.recorded(ctx, appID, "back", func() (move.Status, error) { return m.Runner.Undo(ctx, appID) })
}

// Moving returns where the move of an app is.
func (m Moves) Moving(ctx context.Context, appID string) (MoveStatus, error) {
	return statusOf(m.Runner.Status(ctx, appID))
}

// Isolation returns the region that is a set of tables of its own within the region of an app:
// that of the name tables, or the only one. With back it returns the region that the app's set
// is within. The error is of type move.Refused if there is none.
func (m Moves) Isolation(ctx context.Context, appID, tables string, back bool) (string, error) {
	app, err := m.Apps.App(ctx, appID)
	if err != nil {
		return "", err
	}
	at, ok := m.Regions.Find(app.Region)
	if app.Moving() {
		at, ok = m.Regions.Find(app.Move.To)
	}
	if !ok {
		return "", fmt.Errorf("app %s is in region %s, which this deployment does not have", appID, app.Region)
	}
	in := cmp.Or(at.In, at.Name)
	sets := m.Regions.Within(in)
	refuse := func(format string, args ...any) (string, error) {
		return "", &move.Refused{Message: fmt.Sprintf(format, args...)}
	}
	switch {
	case back && at.In == "" && !app.Moving():
		return refuse("App %s is not isolated: it is in the common tables of region %s", appID, in)
	case back:
		return in, nil
	case len(sets) == 0:
		return refuse("Region %s has no set of tables for isolated apps: `affinity up --tables NAME`, or "+
			"dedicated_tables in Terraform, makes one", in)
	case slices.Contains(sets, tables):
		return tables, nil
	case tables != "":
		return refuse("Region %s has no set of tables %q: there are %s", in, tables, strings.Join(sets, ", "))
	case at.In != "":
		return at.Name, nil
	case len(sets) > 1:
		return refuse("Region %s has several sets of tables: give --tables with one of %s", in, strings.Join(sets, ", "))
	}
	return sets[0], nil
}

// recorded records a change of an app that exists: the log of an app that never existed must
// not begin.
func (m Moves) recorded(ctx context.Context, appID, detail string,
	do func() (move.Status, error)) (status MoveStatus, err error) {
	if _, err := m.Runner.Status(ctx, appID); err != nil {
		return MoveStatus{}, err
	}
	c := auditlog.Change{App: appID, Actor: auditlog.Operator, Action: auditlog.AppMove, Detail: detail}
	err = m.Recorder.Do(ctx, c, func() (auditlog.End, error) {
		status, err = statusOf(do())
		return auditlog.End{}, err
	})
	return status, err
}

// handleMoves adds the operations on the regions of apps to a router. moves.Runner is nil in an
// engine without regions.
func handleMoves(rt *httpapi.Router, moves Moves) {
	add := func(path string, do func(ctx context.Context, r request) (any, error)) {
		handle(rt, path, func(ctx context.Context, r request) (any, error) {
			switch {
			case !config.ValidAppID(r.App.ID):
				return nil, config.ErrNotFound
			case moves.Runner == nil:
				return nil, fault.New(fault.Invalid, noRegions)
			}
			answer, err := do(ctx, r)
			if refused, ok := errors.AsType[*move.Refused](err); ok {
				return nil, fault.New(fault.Invalid, "%s", refused.Message)
			}
			return answer, err
		})
	}
	add(movePath, func(ctx context.Context, r request) (any, error) {
		return moves.Move(ctx, r.App.ID, r.App.Region)
	})
	add(isolatePath, func(ctx context.Context, r request) (any, error) {
		return moves.Isolation(ctx, r.App.ID, r.App.Region, r.Back)
	})
	add(movePlanPath, func(ctx context.Context, r request) (any,
		error) {
		return moves.PlanMove(ctx, r.App.ID, r.App.Region)
	})
	add(moveBackPath, func(ctx context.Context, r request) (any, error) { return moves.MoveBack(ctx, r.App.ID) })
	add(movingPath, func(ctx context.Context, r request) (any, error) { return moves.Moving(ctx, r.App.ID) })
}

// Move is that of Moves, as are the following.
func (c *Client) Move(ctx context.Context, appID, to string) (MoveStatus, error) {
	return post[MoveStatus](ctx, c, movePath, request{App: config.App{ID: appID, Region: to}})
}

// PlanMove returns what a move would do.
func (c *Client) PlanMove(ctx context.Context, appID, to string) (move.Estimate, error) {
	return post[move.Estimate](ctx, c, movePlanPath, request{App: config.App{ID: appID, Region: to}})
}

// MoveBack turns the move of an app back.
func (c *Client) MoveBack(ctx context.Context, appID string) (MoveStatus, error) {
	return post[MoveStatus](ctx, c, moveBackPath, request{App: config.App{ID: appID}})
}

// Isolation is that of Moves.
func (c *Client) Isolation(ctx context.Context, appID, tables string, back bool) (string, error) {
	return post[string](ctx, c, isolatePath, request{App: config.App{ID: appID, Region: tables}, Back: back})
}

// Moving returns where the move of an app is.
func (c *Client) Moving(ctx context.Context, appID string) (MoveStatus, error) {
	return post[MoveStatus](ctx, c, movingPath, request{App: config.App{ID: appID}})
}
