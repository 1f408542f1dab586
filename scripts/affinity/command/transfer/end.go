package transfer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/scripts/affinity/render"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
)

// noWaitUsage describes the flag --no-wait.
const noWaitUsage = "do not wait until histories are folded and crowd statistics are built"

// ending tells the engine that an import has ended, and follows the jobs that it starts then.
type ending struct {
	tool   *command.Tool
	client *client.Client
	noWait bool
	// first is what to do about an app without a strategy, and accepted how many events there are
	// to suggest one by. Statistics count what a strategy scores, so it comes before the jobs.
	first    firstStrategy
	accepted int
}

func (o importOptions) ending(t *command.Tool, c *client.Client) ending {
	return ending{tool: t, client: c, noWait: o.noWait}
}

// follow returns how far the jobs are at the end. Its error is that of a command that was
// interrupted. It only prints any other one: the events are imported, and the engine starts
// the jobs by itself a minute later.
func (e ending) follow(ctx context.Context) (*api.ImportEnd, error) {
	var request api.ImportEndRequest
	ask := func(c *client.Client) (api.ImportEnd, error) {
		end, err := c.Events().EndImport(ctx, request)
		if err == nil && request.At == nil {
			request.At = end.At // another import may begin
		}
		return end, err
	}
	var end api.ImportEnd
	var err error
	if e.noWait {
		end, err = ask(e.tool.Patient(e.client))
	} else {
		end, err = command.Follow(ctx, e.tool, e.client, "follow the end of the import", ask, progressOf)
	}
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%w\nall events went in: the engine folds histories and builds crowd statistics "+
			"by itself", err)
	case err != nil:
		fmt.Fprintf(e.tool.Err, "warning: %v; histories are folded and crowd statistics are built a minute later\n", err)
		return nil, nil
	case end.At == nil:
		return nil, nil // nothing was new
	}
	if !e.noWait {
		e.warn(end)
	}
	return &end, nil
}

// progressOf is how far the job is for which the command waits.
func progressOf(end api.ImportEnd) render.Progress {
	switch {
	case end.Ended():
		return render.Progress{State: api.JobDone}
	case end.Crowd != nil && !end.Crowd.State.Ended():
		return render.CrowdProgress(*end.Crowd)
	case end.Recompute != nil && !end.Recompute.State.Ended():
		return render.RecomputeProgress(*end.Recompute)
	}
	return render.Progress{State: api.JobPlanning} // the job that was waited for has just ended
}

// warn prints what the jobs have left undone.
func (e ending) warn(end api.ImportEnd) {
	var failed error
	if r := end.Recompute; r != nil {
		failed = command.Failure("recompute "+cli.Printable(r.ID), r.State, r.Error)
	}
	if b := end.Crowd; b != nil {
		failed = errors.Join(failed, command.Failure("build "+cli.Printable(b.ID), b.State, b.Error))
	}
	if failed != nil {
		fmt.Fprintf(e.tool.Err, "warning: %v\nall events went in, and the nightly round does what is left\n", failed)
	}
}

// followed says what the jobs that follow an import have done.
func followed(end api.ImportEnd) string {
	var parts []string
	if r := end.Recompute; r != nil && r.State == api.JobDone {
		parts = append(parts, "folded the histories of "+cli.Count(int(r.FoldedUsers), "user"))
	}
	if b := end.Crowd; b != nil && b.State == api.JobDone {
		parts = append(parts, "crowd statistics are as of "+b.AsOf.UTC().Format(time.RFC3339))
	}
	if len(parts) == 0 {
		return "histories are folded and crowd statistics are built in the background"
	}
	return strings.Join(parts, "; ")
}

// end ends an import, and prints what it did.
func (s *summary) end(ctx context.Context, end ending, did string) (err error) {
	if !s.im.Checks() && s.Events.Imported > 0 {
		err = end.first.set(ctx, end.tool, end.client, end.accepted)
		if ctx.Err() == nil {
			var ended error
			s.End, ended = end.follow(ctx)
			err = errors.Join(err, ended)
		}
	}
	return errors.Join(s.print(end.tool, did), err)
}
