package imports

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/auditlog"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/job/tasks/purge"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/profile/links"
)

// conflicts are what is wrong with a line whose token has another role here.
var conflicts = map[links.Reason]string{
	links.TokenIsKnown:    "%s is an authenticatedUserToken here, and the line says that it is an anonymous one",
	links.UserIsAnonymous: "%s is an anonymous userToken here, and the line says that it is a known one",
}

// restoreLinks adds links as a dump says, and counts them in the answer. The client may send the lines again after an
// error. The audit log has one entry for the request.
func (h handler) restoreLinks(ctx context.Context, app config.App, key string, all []linked,
	answer *api.ImportAnswer) error {
	if len(all) == 0 {
		return nil
	}
	change := auditlog.Change{App: app.ID, Actor: key, Action: auditlog.UsersRestore,
		Detail: fmt.Sprintf("links of %d tokens", len(all))}
	return auditlog.New(h.AuditLog()).Do(ctx, change, func() (auditlog.End, error) {
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(deletionsAtOnce)
		var mu sync.Mutex
		for _, l := range all {
			group.Go(func() error {
				left, err := h.restoreLinked(ctx, app, l)
				mu.Lock()
				defer mu.Unlock()
				if refused, ok := errors.AsType[profile.LinkRefused](err); ok {
					answer.UserLinks--
					answer.Refused = append(answer.Refused,
						api.RefusedLine{Line: l.line, Message: fmt.Sprintf(conflicts[refused.Reason], l.user)})
					return nil
				}
				answer.LinksLeftOut += left
				return err
			})
		}
		err := group.Wait()
		slices.SortFunc(answer.Refused, func(a, b api.RefusedLine) int { return cmp.Compare(a.Line, b.Line) })
		return auditlog.End{}, err
	})
}

// restoreLinked also enqueues the purges of the deleted users who take events of the token along: the log may have
// these from the dump.
func (h handler) restoreLinked(ctx context.Context, app config.App, l linked) (int, error) {
	left, err := profile.IdentitiesOf(h.Profiles).Restore(ctx, app, l.user, l.from)
	if err != nil {
		return 0, err
	}
	for i := range l.from.Entries {
		e := &l.from.Entries[i]
		if e.State != links.Dead {
			continue
		}
		request := purge.Request{App: app.ID, User: e.Known, DeletedUntil: e.Until.ReceivedUntil}
		err := purge.Enqueue(ctx, h.Queue, profile.ResidentsOf(h.Profiles), request)
		if err != nil {
			return 0, err
		}
	}
	return left, nil
}
