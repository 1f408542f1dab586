package imports

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/auditlog"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/intake/export"
	"github.com/affinityengine/affinity/shared/job/tasks/purge"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/consent"
	"github.com/affinityengine/affinity/shared/web/auth"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// consented is a line that says what a user has said of purposes.
type consented struct {
	line int
	of   *api.ExportedConsents
	from consent.Consents
}

// addConsents adds such a line. It is about all indexes.
func (l *lines) addConsents(line *api.ExportedConsents, grant auth.Grant, kept bool) error {
	if !kept {
		return httpapi.Errorf(http.StatusUnprocessableEntity, "Consents can only be imported with receipts=kept")
	}
	l.consented = append(l.consented, consented{of: line})
	return grant.Index("")
}

// restoreConsents adds what a dump says to the consents of users. It reads the stored purposes: by a copy of before an
// operator's change the app has none. The client may send the lines again after an error. The audit log has one entry
// for the request.
func (h handler) restoreConsents(ctx context.Context, appID, key string, all []consented,
	answer *api.ImportAnswer) error {
	if len(all) == 0 {
		return nil
	}
	app, err := h.Config.App(ctx, appID)
	if err != nil {
		return err
	}
	var good []consented
	for _, c := range all {
		if c.from, err = export.Consents(c.of, app.Purposes, h.Now()); err == nil {
			good = append(good, c)
			continue
		}
		answer.UserConsents--
		answer.Refused = append(answer.Refused, api.RefusedLine{Line: c.line, Message: message(err)})
	}
	slices.SortFunc(answer.Refused, func(a, b api.RefusedLine) int { return cmp.Compare(a.Line, b.Line) })
	if len(good) == 0 {
		return nil
	}
	change := auditlog.Change{App: appID, Actor: key, Action: auditlog.UsersRestore,
		Detail: fmt.Sprintf("consents of %d users", len(good))}
	return auditlog.New(h.AuditLog()).Do(ctx, change, func() (auditlog.End, error) {
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(deletionsAtOnce)
		for _, c := range good {
			group.Go(func() error { return h.restoreConsented(ctx, app, c) })
		}
		return auditlog.End{}, group.Wait()
	})
}

// restoreConsented also enqueues the purge of what counts no more: the app may have had events of the user.
func (h handler) restoreConsented(ctx context.Context, app config.App, c consented) error {
	said, err := profile.ConsentsOf(h.Profiles).Restore(ctx, app, c.of.UserToken, c.from)
	if err != nil || !said.Changed {
		return err
	}
	request := purge.Request{App: app.ID, User: c.of.UserToken, DeletedUntil: h.Now().UnixMilli(), Withdrawn: true,
		Exported: said.Exported}
	return purge.Enqueue(ctx, h.Queue, profile.ResidentsOf(h.Profiles), request)
}
