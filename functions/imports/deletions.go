package imports

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/affinityengine/affinity/shared/app/auditlog"
	"github.com/affinityengine/affinity/shared/job/tasks/purge"
)

// deletionsAtOnce is how many users a request deletes at a time.
const deletionsAtOnce = 16

// restoreDeletions deletes users as a dump says, and enqueues their purges. The client may
// send the lines again after an error. The audit log has one entry for the request.
func (h handler) restoreDeletions(ctx context.Context, app, key string, all []deletion) error {
	if len(all) == 0 {
		return nil
	}
	change := auditlog.Change{App: app, Actor: key, Action: auditlog.UsersRestore, Detail: fmt.Sprintf("deletions of %d users", len(all))}
	return h.Recorder().Do(ctx, change, func() (auditlog.End, error) {
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(deletionsAtOnce)
		for _, d := range all {
			group.Go(func() error { return h.restoreDeletion(ctx, app, d) })
		}
		return auditlog.End{}, group.Wait()
	})
}

func (h handler) restoreDeletion(ctx context.Context, app string, d deletion) error {
	if err := h.Profiles.RestoreDeletion(ctx, app, d.user, d.tombstone, d.types); err != nil {
		return err
	}
	return purge.Enqueue(ctx, h.Queue, purge.Request{App: app, User: d.user, DeletedUntil: d.tombstone.ReceivedUntil})
}
