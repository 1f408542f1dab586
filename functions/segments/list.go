package segments

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/auditlog"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/backend/answers"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/kinds/segmentbuild"
	"github.com/affinityengine/affinity/shared/rank/segment"
	"github.com/affinityengine/affinity/shared/serve/query"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// refresh starts a build of the lists that queries read.
func (h handler) refresh(w http.ResponseWriter, r *http.Request, app config.App, key string) error {
	if !app.Segments.On() {
		return answers.Segments(w, query.ErrOff)
	}
	j, err := h.jobs.Record(r.Context(), auditlog.Change{App: app.ID, Actor: key, Action: auditlog.SegmentRefresh},
		func() (job.Job, error) {
			return h.Segments.StartManual(r.Context(), app.ID)
		})
	switch {
	case errors.Is(err, segmentbuild.ErrOff):
		return answers.Segments(w, query.ErrOff)
	case err != nil:
		return err
	}
	return httpapi.WriteJSON(w, http.StatusOK, h.buildView(r.Context(), j))
}

// build answers how far a build is.
func (h handler) build(w http.ResponseWriter, r *http.Request, app config.App, by caller) error {
	j, err := h.Segments.Find(r.Context(), app.ID, r.PathValue("id"))
	if errors.Is(err, job.ErrNotFound) {
		return httpapi.Errorf(http.StatusNotFound, "No build %q: GET /1/segments lists the latest", r.PathValue("id"))
	}
	if err != nil {
		return err
	}
	return httpapi.WriteJSON(w, http.StatusOK, h.buildView(r.Context(), j))
}

func (h handler) buildView(ctx context.Context, j job.Job) api.SegmentBuild {
	p, c := job.ParamsOf[segmentbuild.Params](j), job.CountsOf[segmentbuild.Counts](j.Totals.Counts)
	return api.SegmentBuild{
		ID: j.ID, State: api.JobState(j.State), Shards: answers.Shards(j), Users: c.Packed,
		StartedAt: api.At(j.StartedAt), FinishedAt: answers.Finished(j),
		Place: h.jobs.Place(ctx, j), Trigger: string(p.Trigger), PlannedUsers: j.Totals.PlannedUsers,
		VisitedUsers: c.Users, Faulty: c.Faulty, Error: j.Error,
	}
}

// maxBuildsListed is how many builds GET /1/segments lists: the newest.
const maxBuildsListed = 10

// builds returns the latest builds.
func (h handler) builds(ctx context.Context, app string) ([]api.SegmentBuild, error) {
	jobs, err := h.Segments.List(ctx, app, maxBuildsListed)
	if err != nil {
		return nil, fmt.Errorf("list builds of segments: %w", err)
	}
	views := make([]api.SegmentBuild, len(jobs))
	for i, j := range jobs {
		views[i] = h.buildView(ctx, j)
	}
	return views, nil
}

// list lists the saved segments, and what queries read.
func (h handler) list(w http.ResponseWriter, r *http.Request, app config.App, by caller) error {
	saved, err := h.Config.SavedSegments(r.Context(), app.ID)
	if err != nil {
		return err
	}
	answer := api.Segments{Segments: make([]api.Segment, len(saved))}
	for i, s := range saved {
		if answer.Segments[i], err = h.view(r, app.ID, s, by.admin); err != nil {
			return err
		}
	}
	for _, region := range app.UserRegions() {
		m, err := h.Store.In(region).Segments.ReadSegmentManifest(r.Context(), app.ID)
		if err != nil {
			return fmt.Errorf("list segments: %w", err)
		}
		answer.Lists = listsView(answer.Lists, m)
	}
	if answer.Builds, err = h.builds(r.Context(), app.ID); err != nil {
		return err
	}
	return httpapi.WriteJSON(w, http.StatusOK, answer)
}

// listsView adds the lists of a manifest to those of other regions, nil if they have none.
func listsView(others *api.SegmentLists, m segment.Manifest) *api.SegmentLists {
	if m.Generation == "" {
		return others
	}
	lists := others
	if lists == nil {
		lists = &api.SegmentLists{BuiltAt: api.At(time.UnixMilli(m.BuiltAt)), ScoringVersion: m.ScoringVersion,
			RetentionDays: m.RetentionDays}
	}
	for _, p := range m.Parts {
		if p.Delta {
			lists.Updates++
			continue
		}
		lists.Parts++
		lists.Users += int64(p.Users)
	}
	return lists
}
