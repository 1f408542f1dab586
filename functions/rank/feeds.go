package rank

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/auditlog"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/kinds/daterows"
	"github.com/affinityengine/affinity/shared/rank/feed"
	"github.com/affinityengine/affinity/shared/web/auth"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// registerDefinitions registers the routes of feeds' definitions.
func (h handler) registerDefinitions(rt *httpapi.Router) {
	rt.HandleOwn("GET /1/feeds", auth.Serve(h.Auth.AppID, h.listFeeds, auth.Settings))
	rt.HandleOwn("GET /1/feeds/{name}", auth.Serve(h.Auth.Grant, h.getFeed, auth.Settings))
	rt.HandleOwn("PUT /1/feeds/{name}", auth.Serve(h.Auth.Grant, h.setFeed, auth.Settings))
	rt.HandleOwn("DELETE /1/feeds/{name}", auth.Serve(h.Auth.Grant, h.deleteFeed, auth.Settings))
}

// setFeed stores a definition, and starts the job that lists by date the objects that
// are there already. If the process dies in between, the same request starts the job.
func (h handler) setFeed(w http.ResponseWriter, r *http.Request, grant auth.Grant) error {
	body, err := httpapi.ReadBody(w, r, feed.MaxDefinition)
	if err != nil {
		return err
	}
	d, err := feed.Decode(r.PathValue("name"), body)
	if err != nil {
		return err
	}
	if err := grant.Index(d.Index); err != nil {
		return err
	}
	if err := h.mayReplace(r.Context(), grant, d.Name); err != nil {
		return err
	}
	stored, err := d.Encode()
	if err != nil {
		return err
	}
	f := config.Feed{Name: d.Name, Index: d.Index, Date: d.Date, Definition: string(stored)}
	var backfill job.Job
	change := auditlog.Change{App: grant.App, Actor: grant.Key, Action: auditlog.FeedSet, Subject: d.Name,
		Detail: string(stored)}
	err = auditlog.New(h.AuditLog()).Do(r.Context(), change, func() (auditlog.End, error) {
		if f, _, err = h.CachedConfig.SetFeed(r.Context(), grant.App, f, h.Now()); err != nil {
			return auditlog.End{}, fmt.Errorf("set feed: %w", err)
		}
		if backfill, err = h.DateRows.StartBackfill(r.Context(), grant.App, d.Index, d.Date); err != nil {
			return auditlog.End{}, fmt.Errorf("set feed: %w", err)
		}
		return auditlog.End{Detail: fmt.Sprintf("version %d, %s", f.Version, stored)}, nil
	})
	if err != nil {
		return err
	}
	d.Version = f.Version
	answer := api.Feed{FeedDefinition: definitionView(d)}
	if backfill.State != job.Done {
		if answer.Backfill, err = h.backfillView(r.Context(), backfill, d.Date); err != nil {
			return err
		}
	}
	return httpapi.WriteJSON(w, http.StatusOK, answer)
}

// mayReplace refuses to replace a feed on an index that the key may not access.
func (h handler) mayReplace(ctx context.Context, grant auth.Grant, name string) error {
	old, err := h.Config.Feed(ctx, grant.App, name)
	if errors.Is(err, config.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return grant.Index(old.Index)
}

// definition returns a feed of the app, which the request names.
func (h handler) definition(r *http.Request, grant auth.Grant) (feed.Definition, error) {
	name := r.PathValue("name")
	if err := feed.CheckName(name); err != nil {
		return feed.Definition{}, err
	}
	f, err := h.Config.Feed(r.Context(), grant.App, name)
	if errors.Is(err, config.ErrNotFound) {
		return feed.Definition{}, httpapi.Errorf(http.StatusNotFound, "Feed does not exist")
	}
	if err != nil {
		return feed.Definition{}, err
	}
	if err := grant.Index(f.Index); err != nil {
		return feed.Definition{}, err
	}
	return feed.Parse(f.Name, f.Version, []byte(f.Definition))
}

func (h handler) getFeed(w http.ResponseWriter, r *http.Request, grant auth.Grant) error {
	d, err := h.definition(r, grant)
	if err != nil {
		return err
	}
	answer := api.Feed{FeedDefinition: definitionView(d)}
	app, err := h.Config.App(r.Context(), grant.App)
	if err != nil {
		return err
	}
	switch j, err := h.DateRows.Current(r.Context(), app, d.Index, d.Date); {
	case errors.Is(err, job.ErrNotFound): // its start failed, or it ended months ago
	case err != nil:
		return err
	default:
		if answer.Backfill, err = h.backfillView(r.Context(), j, d.Date); err != nil {
			return err
		}
	}
	return httpapi.WriteJSON(w, http.StatusOK, answer)
}

// listFeeds answers all definitions. A key of some indexes reads those by their names.
func (h handler) listFeeds(w http.ResponseWriter, r *http.Request, app string) error {
	feeds, err := h.Config.Feeds(r.Context(), app)
	if err != nil {
		return err
	}
	answer := api.Feeds{Feeds: []api.FeedDefinition{}}
	for _, f := range feeds {
		d, err := feed.Parse(f.Name, f.Version, []byte(f.Definition))
		if err != nil {
			return err
		}
		answer.Feeds = append(answer.Feeds, definitionView(d))
	}
	return httpapi.WriteJSON(w, http.StatusOK, answer)
}

func (h handler) deleteFeed(w http.ResponseWriter, r *http.Request, grant auth.Grant) error {
	d, err := h.definition(r, grant)
	if err != nil {
		return err
	}
	change := auditlog.Change{App: grant.App, Actor: grant.Key, Action: auditlog.FeedDelete, Subject: d.Name,
		Detail: "index " + d.Index}
	err = auditlog.New(h.AuditLog()).Do(r.Context(), change, func() (auditlog.End, error) {
		return auditlog.End{}, h.CachedConfig.DeleteFeed(r.Context(), grant.App, d.Name, h.Now())
	})
	if errors.Is(err, config.ErrNotFound) {
		return httpapi.Errorf(http.StatusNotFound, "Feed does not exist")
	}
	if err != nil {
		return fmt.Errorf("delete feed: %w", err)
	}
	return httpapi.WriteJSON(w, http.StatusOK, api.DeletedFeed{DeletedAt: api.At(h.Now())})
}

func definitionView(d feed.Definition) api.FeedDefinition {
	view := api.FeedDefinition{Name: d.Name, Version: d.Version, FeedRequest: api.FeedRequest{
		Index: d.Index, Date: d.Date, MaxAgeDays: d.MaxAgeDays, Diversity: d.Diversity, Seen: string(d.Seen),
		Format: string(d.Format), Public: d.Public,
	}}
	for _, condition := range d.Where {
		view.Where = append(view.Where, condition)
	}
	return view
}

func (h handler) backfillView(ctx context.Context, j job.Job, date string) (*api.FeedBackfill, error) {
	counts := job.CountsOf[daterows.Counts](j.Totals.Counts)
	view := &api.FeedBackfill{
		ID: j.ID, State: api.JobState(j.State), Objects: counts.Objects, Inserted: counts.Inserted, Faulty: counts.Faulty,
		StartedAt: api.At(j.StartedAt), Error: j.Error,
	}
	if !j.FinishedAt.IsZero() {
		at := api.At(j.FinishedAt)
		view.FinishedAt = &at
	}
	undated, known, err := h.DateRows.Undated(ctx, j, date)
	if known {
		view.Undated = &undated
	}
	return view, err
}
