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
	"github.com/affinityengine/affinity/shared/affinity"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/auth"
	"github.com/affinityengine/affinity/shared/config"
	"github.com/affinityengine/affinity/shared/enrich"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/export"
	"github.com/affinityengine/affinity/shared/httpapi"
	"github.com/affinityengine/affinity/shared/limit"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/refused"
	"github.com/affinityengine/affinity/shared/store"
)

type handler struct {
	Backends
	slots *slots
}

// New returns the function over its backends.
func New(b Backends) http.Handler {
	rt := b.Router()
	h := handler{b, &slots{last: map[string]int64{}}}
	rt.Count(limit.Imports, "POST /1/events/import")
	rt.HandleOwn("POST /1/events/import", h.run, "index")
	return rt
}

// importTime is how long a client may take to send a file of history. A person
// may load it over a slow connection.
const importTime = time.Minute

func (h handler) run(w http.ResponseWriter, r *http.Request) error {
	app, grant, err := h.Auth.TenantGrant(r, auth.Admin)
	if err != nil {
		return err
	}
	body, err := httpapi.ReadBodyWithin(w, r, api.MaxImportBody, importTime)
	if err != nil {
		return err
	}
	rules := event.Rules{Now: h.Now(), Ahead: event.MaxAhead, Request: rand.Uint64(), Index: r.URL.Query().Get("index")}
	lines, answer, err := decode(body, rules, grant)
	if err != nil {
		return err
	}
	events := lines.events
	if err := h.Charge(r.Context(), app.ID, limit.Imports, len(events)+len(lines.exported)-1); err != nil {
		return err
	}
	unknown, outcome, err := h.importAll(r.Context(), app, events, rules.Now.UnixMilli())
	if err != nil {
		return fmt.Errorf("import events of %s: %w", app.ID, err)
	}
	if len(lines.exported) > 0 {
		more, err := h.Profiles.Import(r.Context(), app, lines.exported)
		if err != nil {
			return fmt.Errorf("import exported events of %s: %w", app.ID, err)
		}
		outcome.Deleted, outcome.Refused = outcome.Deleted+more.Deleted, outcome.Refused+more.Refused
	}
	answer.Deleted, answer.OptedOut = outcome.Deleted, outcome.Refused
	if outcome.Refused > 0 {
		h.Refused.Count(app.ID, refused.OptedOut, int64(outcome.Refused))
	}
	if len(events)+len(lines.exported) > 0 {
		h.noteImport(r.Context(), app.ID)
	}
	if unknown > 0 {
		h.Metrics.UnknownObjects.Add(float64(unknown))
		h.Log.LogAttrs(r.Context(), slog.LevelInfo, "imported events name objects that the catalog does not know", slog.String("app", app.ID),
			slog.Int("events", len(events)), slog.Int("withUnknownObjects", unknown))
	}
	h.Usage.Events(app.ID, answer.Accepted, func(i int) string {
		switch exported := i - len(events); {
		case exported < 0:
			return events[i].UserToken
		case exported < len(lines.exported):
			return lines.exported[exported].User
		}
		return "" // of type instantsearch
	})
	h.Usage.Refused(app.ID, len(answer.Refused))
	window := affinity.Window{Now: rules.Now.UnixMilli(), RetentionDays: app.RetentionDays}
	for i := range events {
		if !window.Contains(events[i].Time) {
			answer.OutsideRetention++
		}
	}
	for i := range lines.exported {
		if !window.Contains(lines.exported[i].Time) {
			answer.OutsideRetention++
		}
	}
	return httpapi.WriteJSON(w, http.StatusOK, answer)
}

// importAll imports the events of a request in parts, each of as many events as may be
// in memory with the filters of their objects. It counts the events with objects that
// the catalog does not know, and all by their fate.
//
// Before it writes the first of several parts, it takes the memory of the largest. A
// later part takes none, so an import that is partly written never ends because the
// process is full: sent again, its events without a timestamp would count twice.
func (h handler) importAll(ctx context.Context, app config.App, events []event.Event, receivedAt int64) (unknown int, all profile.Outcome, err error) {
	ctx, leave := admission.Process().Enter(ctx)
	defer leave()
	for len(events) > 0 {
		objects, n, err := h.Enricher.ResolveFirst(ctx, app.ID, events)
		if err == nil && n < len(events) {
			err = admission.Take(ctx, enrich.MaxTaken)
		}
		if err != nil {
			return 0, all, err
		}
		ctx = admission.Exempt(ctx)
		part := events[:n]
		outcome, err := h.Profiles.Import(ctx, app, enrich.LogEvents(part, objects, receivedAt))
		if err != nil {
			return 0, all, err
		}
		all.Applied, all.Deleted, all.Refused = all.Applied+outcome.Applied, all.Deleted+outcome.Deleted, all.Refused+outcome.Refused
		unknown, events = unknown+len(enrich.Incomplete(part, objects)), events[n:]
	}
	return unknown, all, nil
}

// lines are the events of a request.
type lines struct {
	events []event.Event
	// exported are those of an export: the log has them already, with their filters.
	exported []store.LogEvent
}

// addExported adds a line of an export. It skips what is not an event.
func (l *lines) addExported(line api.ExportLine, now time.Time, grant auth.Grant) (added bool, err error) {
	if line.Event == nil {
		return false, export.Refusal(line)
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

// decode decodes each line. The answer lists the lines that are refused.
func decode(body []byte, rules event.Rules, grant auth.Grant) (found lines, answer api.ImportAnswer, err error) {
	answer = api.ImportAnswer{Refused: []api.RefusedLine{}}
	for line := 1; len(body) > 0; line++ {
		if line > api.MaxImportLines {
			return lines{}, answer, httpapi.Errorf(http.StatusRequestEntityTooLarge, "Cannot process more than %d lines in a request", api.MaxImportLines)
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
				added, err = found.addExported(exported, rules.Now, grant)
			}
			if err != nil {
				answer.Refused = append(answer.Refused, api.RefusedLine{Line: line, Message: message(err)})
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
