// Package imports is the public function that imports history: events of any
// age, one JSON object a line.
//
// It is separate from ingest so that a bulk load has its own instances and its
// own Bigtable app profile, and cannot delay live events. It writes the log
// before it answers: every read that begins after the answer counts the events.
package imports

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/affinityengine/affinity/shared/admission"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/limit"
	"github.com/affinityengine/affinity/shared/app/usage"
	"github.com/affinityengine/affinity/shared/cache"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/intake/archive"
	"github.com/affinityengine/affinity/shared/intake/enrich"
	"github.com/affinityengine/affinity/shared/intake/export"
	"github.com/affinityengine/affinity/shared/intake/refused"
	"github.com/affinityengine/affinity/shared/job/tasks/afterimport"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/store"
	"github.com/affinityengine/affinity/shared/web/auth"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// Timeout is how long a request may take, as Terraform has it.
const Timeout = 5 * time.Minute

type handler struct {
	Backends
	notes  *afterimport.Notes
	finder *finder
}

// New returns the function over its backends.
func New(b Backends) http.Handler {
	rt := b.Router(Timeout)
	h := handler{b, afterimport.NewNotes(b.Store.Crowd, b.Queue, b.Now),
		&finder{b.Store, cache.New[string, indexes](manyApps)}}
	rt.Count(limit.Imports, "POST /1/events/import")
	rt.HandleOwn("POST /1/events/import", auth.ServeBoth(h.Auth.TenantGrant, h.run, auth.Admin), "index", "receipts")
	return rt
}

// note has histories folded and crowd statistics built once the app's imports have ended. It
// only logs a fault: the events are imported, and the nightly round does both too.
func (h handler) note(ctx context.Context, app string) {
	if err := h.notes.Note(ctx, app, ""); err != nil {
		h.Log.LogAttrs(ctx, slog.LevelWarn, "no recompute and no build of crowd statistics follow this import",
			slog.String("app", app), slog.Any("error", err))
	}
}

// importTime is how long a client may take to send a file of history. A person
// may load it over a slow connection.
const importTime = time.Minute

func (h handler) run(w http.ResponseWriter, r *http.Request, app config.App, grant auth.Grant) error {
	body, err := httpapi.ReadBodyWithin(w, r, api.MaxImportBody, importTime)
	if err != nil {
		return err
	}
	rules := event.Rules{Now: h.Now(), Ahead: event.MaxAhead, History: true, Request: rand.Uint64(),
		Index: r.URL.Query().Get("index")}
	kept, err := keepsReceipts(r)
	if err != nil {
		return err
	}
	lines, answer, err := decode(body, rules, grant, kept)
	if err != nil {
		return err
	}
	lines.keyID = grant.KeyID()
	events, logged := lines.events, lines.logged()
	n := len(events) + logged + len(lines.deletions) + len(lines.linked) + len(lines.consented) +
		len(lines.reports)
	if err := h.Charge(r.Context(), app.ID, limit.Imports, n-1); err != nil {
		return err
	}
	// First: a user of whom nothing is here yet has granted what the lines say since then.
	if err := h.restoreConsents(r.Context(), app.ID, grant.Key, lines.consented, &answer); err != nil {
		return fmt.Errorf("restore consents: %w", err)
	}
	if err := h.restoreDeletions(r.Context(), app.ID, grant.Key, lines.deletions); err != nil {
		return fmt.Errorf("restore deletions: %w", err)
	}
	if err := h.restoreLinks(r.Context(), app, grant.Key, lines.linked, &answer); err != nil {
		return fmt.Errorf("restore links: %w", err)
	}
	for _, report := range lines.reports {
		if err := config.ReportsOf(h.Config).Keep(r.Context(), app.ID, report); err != nil {
			return fmt.Errorf("restore reports: %w", err)
		}
	}
	unknown, err := h.write(r.Context(), app, lines, rules.Now.UnixMilli(), &answer)
	if err != nil {
		return err
	}
	if len(events)+logged-answer.Present > 0 {
		h.note(r.Context(), app.ID)
	}
	if unknown > 0 {
		h.finder.find(r.Context(), app.ID, grant, h.Now(), h.Log, answer.UnknownObjects)
		h.Metrics.CountUnknownObjects(r.Context(), unknown)
		h.Log.LogAttrs(r.Context(), slog.LevelInfo, "imported events name objects that the catalog does not know",
			slog.String("app", app.ID),
			slog.Int("events", len(events)), slog.Int("withUnknownObjects", unknown))
	}
	h.Usage.Events(app.ID, answer.Accepted, func(i int) string {
		switch at := i - len(events); {
		case at < 0:
			return events[i].UserToken
		case at < logged:
			return lines.row(at).User
		}
		return "" // of type instantsearch
	})
	h.Usage.Refused(app.ID, len(answer.Refused))
	answer.OutsideRetention += outside(app, rules.Now, &lines)
	return httpapi.WriteJSON(w, http.StatusOK, answer)
}

// outside counts the events that are not in the retention of an app.
func outside(app config.App, now time.Time, l *lines) (n int) {
	window := affinity.Window{Now: now.UnixMilli(), RetentionDays: app.RetentionDays}
	for i := range l.events {
		if !window.Contains(l.events[i].Time) {
			n++
		}
	}
	for i := range l.logged() {
		if !window.Contains(l.row(i).Time) {
			n++
		}
	}
	return n
}

// write writes the events of a request to the log, and adds their fates to the answer. It
// counts the events with objects that the catalog does not know.
func (h handler) write(ctx context.Context, app config.App, l lines, receivedAt int64,
	answer *api.ImportAnswer) (unknown int, err error) {
	unknown, outcome, err := h.importAll(ctx, app, l, receivedAt, answer)
	if err != nil {
		return 0, fmt.Errorf("import events of %s: %w", app.ID, err)
	}
	if exported, withheld := enrich.Admit(app.Purposes, l.exported); len(l.exported) > 0 {
		outcome.Withheld += withheld
		more, err := h.Profiles.Import(ctx, app, exported)
		if err != nil {
			return 0, fmt.Errorf("import exported events of %s: %w", app.ID, err)
		}
		if err := h.written(ctx, app, exported, more); err != nil {
			return 0, err
		}
		outcome.Add(more)
	}
	if len(l.archived) > 0 {
		restorer := archive.Restorer{Catalog: h.Enricher, Store: h.Store, Profiles: h.Profiles, Written: h.written}
		more, err := restorer.Restore(ctx, app, l.archived)
		if err != nil {
			return 0, fmt.Errorf("restore events of %s: %w", app.ID, err)
		}
		outcome.Add(more.Outcome)
		answer.Present = more.Present
	}
	answer.Deleted, answer.OptedOut, answer.Withheld = outcome.Deleted, outcome.Refused, outcome.Withheld
	if outcome.Withheld > 0 {
		h.Refused.Count(app.ID, refused.Withheld, int64(outcome.Withheld))
	}
	if outcome.Refused > 0 {
		h.Refused.Count(app.ID, refused.OptedOut, int64(outcome.Refused))
	}
	if outcome.Ahead > 0 {
		h.Refused.Count(app.ID, refused.Ahead, int64(outcome.Ahead))
	}
	return unknown, nil
}

// importAll imports the events of a request in parts, each of as many events as may be
// in memory with the filters of their objects. It counts the events with objects that
// the catalog does not know, names these in the answer, and counts all by their fate.
//
// Before it writes the first of several parts, it takes the memory of the largest. A
// later part takes none, so an import that is partly written never ends because the
// process is full: sent again, its events without a timestamp would count twice.
func (h handler) importAll(ctx context.Context, app config.App, l lines, receivedAt int64,
	answer *api.ImportAnswer) (unknown int, all profile.Outcome, err error) {
	ctx, leave := admission.Process().Enter(ctx)
	defer leave()
	for events := l.events; len(events) > 0; {
		known, n, err := h.Enricher.ResolveFirst(ctx, app.ID, events)
		if err == nil && n < len(events) {
			err = admission.Take(ctx, enrich.MaxTaken)
		}
		if err != nil {
			return 0, all, err
		}
		ctx = admission.Exempt(ctx)
		part := events[:n]
		rows := enrich.LogEvents(part, known, receivedAt)
		for i := range rows {
			rows[i].Strong, rows[i].KeyID = true, l.keyID // an import needs a server's key
		}
		rows, withheld := enrich.Admit(app.Purposes, rows)
		all.Withheld += withheld
		outcome, err := h.Profiles.Import(ctx, app, rows)
		if err == nil {
			err = h.written(ctx, app, rows, outcome)
		}
		if err != nil {
			return 0, all, err
		}
		all.Add(outcome)
		unknown, events = unknown+noteUnknown(part, known.Objects, answer), events[n:]
	}
	return unknown, all, nil
}

// written publishes rows that are in the log to the warehouse, and counts them by their kinds and
// facets. After an error the client sends them again.
func (h handler) written(ctx context.Context, app config.App, rows []store.LogEvent, o profile.Outcome) error {
	err := h.Warehouse.Events(ctx, app, rows, o.Deleted+o.Refused+o.Withheld > 0)
	if err == nil {
		h.Usage.Named(app.ID, len(rows), func(i int) usage.Kind {
			return usage.Kind{Type: string(rows[i].Type), Name: rows[i].Name}
		}, func(i int, add func(facet string)) {
			for _, c := range rows[i].Counts {
				add(c.Facet)
			}
		})
		return nil
	}
	h.Log.LogAttrs(ctx, slog.LevelError, "imported events are not published to the warehouse", slog.String("app", app.ID),
		slog.Any("error", err))
	return httpapi.Errorf(http.StatusServiceUnavailable,
		"The events count, but the warehouse did not take them all, send them again: "+
			"with a timestamp they count once, others may count twice")
}

// decode decodes each line. The answer lists the lines that are refused.
func decode(body []byte, rules event.Rules, grant auth.Grant,
	kept bool) (found lines, answer api.ImportAnswer, err error) {
	answer = api.ImportAnswer{Refused: []api.RefusedLine{}}
	for line := 1; len(body) > 0; line++ {
		if line > api.MaxImportLines {
			return lines{}, answer, httpapi.Errorf(http.StatusRequestEntityTooLarge,
				"Cannot process more than %d lines in a request", api.MaxImportLines)
		}
		var raw []byte
		raw, body, _ = bytes.Cut(body, []byte("\n"))
		if raw = bytes.TrimSpace(raw); len(raw) == 0 {
			continue
		}
		exported, own, err := export.Parse(raw)
		if own {
			added := false
			if err == nil {
				added, err = found.addExported(exported, rules.Now, grant, kept)
			}
			if err != nil {
				answer.Refused = append(answer.Refused, api.RefusedLine{Line: line, Message: message(err)})
			} else if added && exported.Deletion != nil {
				answer.UserDeletions++
			} else if added && exported.Consents != nil {
				answer.UserConsents++
				found.consented[len(found.consented)-1].line = line
			} else if added && exported.Links != nil {
				answer.UserLinks++
				found.linked[len(found.linked)-1].line = line
			} else if added && exported.Report != nil {
				answer.Reports++
			} else if added {
				answer.Accepted++
			}
			continue
		}
		rules.Ordinal = line - 1
		e, err := event.Decode(raw, rules)
		if err == nil && e.Type != event.InstantSearch {
			err = grant.Index(e.Index)
		}
		if err != nil {
			answer.Refused = append(answer.Refused, api.RefusedLine{Line: line, Message: message(err)})
			continue
		}
		answer.Accepted++
		if e.Received {
			answer.Received++
		}
		if e.Type != event.InstantSearch {
			found.events = append(found.events, e)
		}
	}
	return found, answer, nil
}

// message is the reason for which a line is refused.
func message(err error) string {
	var refusal *event.Refusal
	if errors.As(err, &refusal) {
		return refusal.Message
	}
	return err.Error()
}
