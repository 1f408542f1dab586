package imports

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/auditlog"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/intake/archive"
	"github.com/affinityengine/affinity/shared/intake/export"
	"github.com/affinityengine/affinity/shared/job/tasks/purge"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/profile/links"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/store"
	"github.com/affinityengine/affinity/shared/web/auth"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// keepsReceipts reports whether a request restores events with their receipts.
func keepsReceipts(r *http.Request) (bool, error) {
	switch receipts := r.URL.Query().Get("receipts"); receipts {
	case "":
		return false, nil
	case "kept":
		return true, nil
	default:
		return false, httpapi.Errorf(http.StatusUnprocessableEntity, "receipts %.50q must be kept, or missing", receipts)
	}
}

// lines are the events of a request.
type lines struct {
	events []event.Event
	// exported are those of an export, received now: they have their filters already.
	exported []store.LogEvent
	// archived are those of an export or an archive that keep their receipts. A request
	// has no exported ones beside them.
	archived []archive.Event
	// deletions are of users who were deleted or have opted out.
	deletions []deletion
	// consented are what users say of purposes.
	consented []consented
	// linked are the links of tokens.
	linked  []linked
	reports []config.KeptReport
	keyID   string // of the request
}

type linked struct {
	line int
	user string
	from links.Copy
}

type deletion struct {
	user      string
	tombstone affinity.Tombstone
	types     event.Types
}

// logged returns of how many events row returns the rows.
func (l *lines) logged() int { return len(l.exported) + len(l.archived) }

func (l *lines) row(i int) *store.LogEvent {
	if i < len(l.exported) {
		return &l.exported[i]
	}
	return &l.archived[i-len(l.exported)].Row
}

// addExported adds a line of an export. It skips the lines of one that have no data.
func (l *lines) addExported(line api.ExportLine, now time.Time, grant auth.Grant, kept bool) (added bool, err error) {
	if line.Deletion != nil {
		return true, l.addDeletion(line.Deletion, now, grant, kept)
	}
	if line.Consents != nil {
		return true, l.addConsents(line.Consents, grant, kept)
	}
	if line.Links != nil {
		return true, l.addLinks(line.Links, now, grant, kept)
	}
	if line.Report != nil {
		return true, l.addReport(line.Report, grant, kept)
	}
	if line.Event == nil {
		return false, export.Refusal(line)
	}
	if kept {
		e, err := archive.Decode(line.Event, now)
		if err == nil {
			err = grant.Index(e.Row.Index)
		}
		if err != nil {
			return false, err
		}
		l.archived = append(l.archived, e)
		return true, nil
	}
	e, err := export.LogEvent(line.Event, now)
	if err == nil {
		err = grant.Index(e.Index)
	}
	if err != nil {
		return false, err
	}
	l.exported = append(l.exported, e)
	return true, nil
}

// addDeletion adds a line that says that a user was deleted. It is about all indexes.
func (l *lines) addDeletion(line *api.ExportedDeletion, now time.Time, grant auth.Grant, kept bool) error {
	if !kept {
		return httpapi.Errorf(http.StatusUnprocessableEntity, "A deletion can only be imported with receipts=kept")
	}
	t, types, err := export.Deletion(line, now)
	if err == nil {
		err = grant.Index("")
	}
	if err == nil {
		l.deletions = append(l.deletions, deletion{line.UserToken, t, types})
	}
	return err
}

// addLinks adds a line that says how a token is linked. It is about all indexes.
func (l *lines) addLinks(line *api.ExportedLinks, now time.Time, grant auth.Grant, kept bool) error {
	if !kept {
		return httpapi.Errorf(http.StatusUnprocessableEntity, "Links can only be imported with receipts=kept")
	}
	from, err := export.Links(line, now)
	if err == nil {
		err = grant.Index("")
	}
	if err == nil {
		l.linked = append(l.linked, linked{user: line.UserToken, from: from})
	}
	return err
}

// deletionsAtOnce is how many users a request deletes at a time.
const deletionsAtOnce = 16

// restoreDeletions deletes users as a dump says, and enqueues their purges. The client may
// send the lines again after an error. The audit log has one entry for the request.
func (h handler) restoreDeletions(ctx context.Context, app, key string, all []deletion) error {
	if len(all) == 0 {
		return nil
	}
	change := auditlog.Change{App: app, Actor: key, Action: auditlog.UsersRestore,
		Detail: fmt.Sprintf("deletions of %d users", len(all))}
	return auditlog.New(h.AuditLog()).Do(ctx, change, func() (auditlog.End, error) {
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
	request := purge.Request{App: app, User: d.user, DeletedUntil: d.tombstone.ReceivedUntil}
	return purge.Enqueue(ctx, h.Queue, profile.ResidentsOf(h.Profiles), request)
}
