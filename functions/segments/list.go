package segments

import (
	"fmt"
	"net/http"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/rank/segment"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// list lists the saved segments, and what queries read.
func (h handler) list(w http.ResponseWriter, r *http.Request) error {
	app, _, admin, err := h.counter(r)
	if err != nil {
		return err
	}
	saved, err := h.Config.SavedSegments(r.Context(), app.ID)
	if err != nil {
		return err
	}
	answer := api.Segments{Segments: make([]api.Segment, len(saved))}
	for i, s := range saved {
		if answer.Segments[i], err = h.view(r, app.ID, s, admin); err != nil {
			return err
		}
	}
	m, err := h.Store.Segments.ReadSegmentManifest(r.Context(), app.ID)
	if err != nil {
		return fmt.Errorf("list segments: %w", err)
	}
	answer.Lists = listsView(m)
	if answer.Builds, err = h.builds(r.Context(), app.ID); err != nil {
		return err
	}
	return httpapi.WriteJSON(w, http.StatusOK, answer)
}

// listsView describes the lists of a manifest, nil if it has none.
func listsView(m segment.Manifest) *api.SegmentLists {
	if m.Generation == "" {
		return nil
	}
	lists := &api.SegmentLists{BuiltAt: api.At(time.UnixMilli(m.BuiltAt)), ScoringVersion: m.ScoringVersion, RetentionDays: m.RetentionDays}
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
