// Package catalog is the public function for the objects and settings of an
// index, and for the names of track calls, which are a setting of the app. Objects are
// stored in the table objects, with the filters that they have under the settings. Settings
// are stored in Firestore. New numeric bands enqueue the task that starts their
// re-enrichment, and new objects the one that starts a build of crowd statistics.
package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/admission"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/auditlog"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/catalog"
	"github.com/affinityengine/affinity/shared/job/tasks/afterimport"
	"github.com/affinityengine/affinity/shared/job/tasks/bands"
	"github.com/affinityengine/affinity/shared/store"
	"github.com/affinityengine/affinity/shared/web/auth"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// Timeout is how long a request may take, as Terraform has it.
const Timeout = time.Minute

type handler struct {
	Backends
	groupBytes int // of the records that a batch merges at a time
	mostRead   int // objects that a page of a list reads
	notes      *afterimport.Notes
}

// New returns the function over its backends.
func New(b Backends) http.Handler { return newSized(b, groupBytes, api.MaxObjectsRead) }

func newSized(b Backends, groupBytes, mostRead int) http.Handler {
	h := handler{b, groupBytes, mostRead, afterimport.NewNotes(b.Store.Crowd, b.Queue, b.Now)}
	rt := b.Router(Timeout)
	rt.Hint = ofSearch
	rt.Handle("POST /1/indexes/{index}/batch", auth.ServeBoth(h.grant, h.batch, auth.AddObject, auth.DeleteObject))
	rt.Handle("GET /1/indexes/{index}/task/{task}", auth.ServeBoth(h.grant, h.task,
		auth.AddObject, auth.DeleteObject, auth.Settings))
	rt.Handle("GET /1/indexes/{index}/settings", auth.ServeBoth(h.grant, h.settings, auth.Settings))
	rt.Handle("PUT /1/indexes/{index}/settings", auth.ServeBoth(h.grant, h.setSettings, auth.Settings))
	rt.HandleOwn("GET /1/indexes/{index}", auth.ServeBoth(h.grant, h.list, auth.AddObject), "filter", "limit", "cursor")
	rt.Handle("GET /1/indexes/{index}/{objectID}", auth.ServeBoth(h.grant, h.get, auth.AddObject))
	rt.Handle("DELETE /1/indexes/{index}/{objectID}", auth.ServeBoth(h.grant, h.delete, auth.DeleteObject))
	rt.HandleOwn("GET /1/track-names", auth.Serve(h.Auth.AppID, h.trackNames, auth.Settings))
	rt.HandleOwn("PUT /1/track-names", auth.ServeBoth(h.Auth.TenantKey, h.setTrackNames, auth.Settings))
	return rt
}

// ofSearch tells a client of Algolia which searches here that it is in the wrong place.
func ofSearch(r *http.Request) string {
	switch path.Base(r.URL.Path) {
	case "query", "queries", "browse":
		return "Affinity is no search engine: ask yours, and order its results with POST /1/rank, or send it the " +
			"filters of GET /1/boosts/{userToken}"
	}
	return ""
}

// grant returns what the key permits, and the index that a request names.
func (h handler) grant(r *http.Request, anyOf ...string) (auth.Grant, string, error) {
	g, err := h.Auth.Grant(r, anyOf...)
	if err != nil {
		return g, "", err
	}
	index := r.PathValue("index")
	if !catalog.ValidIndex(index) {
		return g, "", httpapi.Errorf(http.StatusUnprocessableEntity, "The index name must have 1 to %d bytes",
			catalog.MaxIndex)
	}
	return g, index, g.Index(index)
}

// taskID is the ID of a task for clients that wait for it. A write is finished
// before its answer, so every ID is that of a finished task.
func taskID(now time.Time) int64 { return now.UnixMilli() }

func (h handler) batch(w http.ResponseWriter, r *http.Request, grant auth.Grant, index string) error {
	body, err := httpapi.ReadBody(w, r, api.MaxCatalogBody)
	if err != nil {
		return err
	}
	if len(body) >= heavyBatch {
		if err := admission.AwaitTurn(r.Context(), admission.TurnWait); err != nil {
			return err
		}
	}
	actions, err := catalog.DecodeBatch(body)
	if err != nil {
		return err
	}
	needed := neededACLs(actions)
	for _, acl := range needed {
		if err := grant.Require(acl); err != nil {
			return err
		}
	}
	left, err := h.applyRecorded(r.Context(), grant, index, actions)
	if err != nil {
		return err
	}
	if slices.Contains(needed, auth.AddObject) {
		h.note(r.Context(), grant.App, index)
	}
	ids := make([]string, 0, len(actions))
	for _, a := range actions {
		if a.Kind != catalog.Clear {
			ids = append(ids, a.ObjectID)
		}
	}
	return httpapi.WriteJSON(w, http.StatusOK, api.BatchAnswer{ObjectIDs: ids, TaskID: taskID(h.Now()),
		NotNumbers: left.NotNumbers, Dropped: left.Dropped})
}

// note has crowd statistics built, if the index has none or outgrows them. It only logs a
// fault: the objects are stored, and the nightly round builds statistics too.
func (h handler) note(ctx context.Context, app, index string) {
	if err := h.notes.Note(ctx, app, index); err != nil {
		h.Log.LogAttrs(ctx, slog.LevelWarn, "no build of crowd statistics follows this load of objects",
			slog.String("app", app), slog.String("index", index), slog.Any("error", err))
	}
}

// applyRecorded applies a batch. The audit log has the batches that clear an index:
// an entry for each object would hide them.
func (h handler) applyRecorded(ctx context.Context, grant auth.Grant, index string,
	actions []catalog.Action) (left catalog.Left, err error) {
	do := func() error {
		left, err = h.apply(ctx, grant.App, index, actions)
		return err
	}
	if !slices.ContainsFunc(actions, func(a catalog.Action) bool { return a.Kind == catalog.Clear }) {
		err = do()
		return left, err
	}
	change := auditlog.Change{
		App: grant.App, Actor: grant.Key, Action: auditlog.IndexClear, Subject: index,
		Detail: fmt.Sprintf("in a batch of %d actions", len(actions)),
	}
	err = auditlog.New(h.AuditLog()).Do(ctx, change, func() (auditlog.End, error) { return auditlog.End{}, do() })
	return left, err
}

// heavyBatch is the size of a batch that takes a turn: one of a few hundred partial
// updates reads some hundred records.
const heavyBatch = 16 << 10

// neededACLs returns the permissions that a key needs for the actions of a batch.
func neededACLs(actions []catalog.Action) []string {
	var add, remove bool
	for _, a := range actions {
		if a.Kind == catalog.DeleteObject || a.Kind == catalog.Clear {
			remove = true
		} else {
			add = true
		}
	}
	var acls []string
	if add {
		acls = append(acls, auth.AddObject)
	}
	if remove {
		acls = append(acls, auth.DeleteObject)
	}
	return acls
}

func (h handler) task(w http.ResponseWriter, _ *http.Request, _ auth.Grant, _ string) error {
	return httpapi.WriteJSON(w, http.StatusOK, api.TaskAnswer{Status: "published"})
}

func (h handler) settings(w http.ResponseWriter, r *http.Request, grant auth.Grant, index string) error {
	s, err := h.Config.IndexSettings(r.Context(), grant.App, index)
	if err != nil && !errors.Is(err, config.ErrNotFound) {
		return fmt.Errorf("read settings: %w", err)
	}
	a, err := h.Config.App(r.Context(), grant.App)
	if err != nil {
		return fmt.Errorf("read private facets: %w", err)
	}
	answer := api.Settings{PrivateFacets: a.PrivateFacets[index]}
	if s.AttributesForFaceting != nil {
		answer.AttributesForFaceting = append([]string{}, s.AttributesForFaceting...)
	}
	if len(s.NumericBands) > 0 {
		answer.NumericBands = s.NumericBands
	}
	return httpapi.WriteJSON(w, http.StatusOK, answer)
}

func (h handler) setSettings(w http.ResponseWriter, r *http.Request, grant auth.Grant, index string) error {
	change, err := httpapi.Decode(w, r, api.MaxCatalogBody, catalog.DecodeSettings)
	if err != nil {
		return err
	}
	// Private facets first: nothing shows a facet between the two changes.
	if change.PrivateFacets != nil {
		if err := h.setPrivate(r.Context(), grant, index, change.PrivateFacets); err != nil {
			return fmt.Errorf("set private facets: %w", err)
		}
	}
	if change.AttributesForFaceting != nil || change.NumericBands != nil {
		if err := h.setFaceting(r.Context(), grant, index, change); err != nil {
			return fmt.Errorf("set settings: %w", err)
		}
	}
	now := h.Now()
	return httpapi.WriteJSON(w, http.StatusOK, api.SettingsAnswer{TaskID: taskID(now), UpdatedAt: now.UTC()})
}

// setFaceting sets the attributes for faceting and the numeric bands.
func (h handler) setFaceting(ctx context.Context, grant auth.Grant, index string, c catalog.Change) error {
	change := auditlog.Change{App: grant.App, Actor: grant.Key, Action: auditlog.SettingsSet, Subject: index,
		Detail: detail(c)}
	return auditlog.New(h.AuditLog()).Do(ctx, change, func() (auditlog.End, error) {
		set, err := h.CachedConfig.SetIndexSettings(ctx, grant.App, index, c)
		if err == nil && c.NumericBands != nil {
			h.startBands(ctx, grant.App, index, set.BandsVersion)
		}
		return auditlog.End{Detail: fmt.Sprintf("version %d, %s", set.Version, change.Detail)}, err
	})
}

// detail names what a change sets.
func detail(c catalog.Change) string {
	var parts []string
	if c.AttributesForFaceting != nil {
		parts = append(parts, "attributesForFaceting "+strings.Join(c.AttributesForFaceting, ","))
	}
	if c.NumericBands != nil {
		parts = append(parts, "numericBands "+strings.Join(slices.Sorted(maps.Keys(c.NumericBands)), ","))
	}
	return strings.Join(parts, ", ")
}

// startBands enqueues the task that starts the re-enrichment of new numeric bands. A
// change that is sent again enqueues it again; the task starts nothing if the bands are
// applied. It only logs a fault: the bands are set, and the nightly round starts the
// re-enrichment too.
func (h handler) startBands(ctx context.Context, app, index string, version int64) {
	if version == 0 {
		return // there never were any
	}
	task, err := bands.Task(app, index, version)
	if err == nil {
		err = h.Queue.Create(ctx, task)
	}
	if err != nil {
		h.Log.LogAttrs(ctx, slog.LevelWarn, "logged events get their new numeric bands with the nightly round",
			slog.String("app", app), slog.Any("error", err))
	}
}

func (h handler) setPrivate(ctx context.Context, grant auth.Grant, index string, facets []string) error {
	change := auditlog.Change{
		App: grant.App, Actor: grant.Key, Action: auditlog.SettingsSet, Subject: index,
		Detail: "privateFacets " + strings.Join(facets, ","),
	}
	return auditlog.New(h.AuditLog()).Do(ctx, change, func() (auditlog.End, error) {
		return auditlog.End{}, h.CachedConfig.SetPrivateFacets(ctx, grant.App, index, facets)
	})
}

func (h handler) get(w http.ResponseWriter, r *http.Request, grant auth.Grant, index string) error {
	ref := store.ObjectRef{Index: index, ID: r.PathValue("objectID")}
	if err := checkID(ref.ID); err != nil {
		return err
	}
	records, err := h.Store.Catalog.ReadRecords(r.Context(), grant.App, []store.ObjectRef{ref})
	if err != nil {
		return err
	}
	record, ok := records[ref]
	if !ok {
		return httpapi.Errorf(http.StatusNotFound, "ObjectID does not exist")
	}
	return httpapi.WriteJSON(w, http.StatusOK, json.RawMessage(record))
}

func (h handler) delete(w http.ResponseWriter, r *http.Request, grant auth.Grant, index string) error {
	id := r.PathValue("objectID")
	if err := checkID(id); err != nil {
		return err
	}
	dates, err := h.dates(r.Context(), grant.App, index)
	if err != nil {
		return err
	}
	if err := h.Store.Catalog.DeleteObjects(r.Context(), grant.App, index, []string{id}, dates...); err != nil {
		return err
	}
	now := h.Now()
	return httpapi.WriteJSON(w, http.StatusOK, api.DeletedObject{TaskID: taskID(now), DeletedAt: now.UTC()})
}

func checkID(id string) error {
	if len(id) == 0 || len(id) > catalog.MaxObjectID {
		return httpapi.Errorf(http.StatusUnprocessableEntity, "objectID must have 1 to %d bytes", catalog.MaxObjectID)
	}
	return nil
}
