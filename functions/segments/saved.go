package segments

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/auditlog"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/rank/segment"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// errNoSegment says that the app has no segment of that name.
func errNoSegment() error { return httpapi.Errorf(http.StatusNotFound, "Segment does not exist") }

// save saves a condition under a name.
func (h handler) save(w http.ResponseWriter, r *http.Request, app config.App, by caller) error {
	name := r.PathValue("name")
	if err := segment.CheckName(name); err != nil {
		return err
	}
	create, err := httpapi.BoolOption(r, "create") // it must not replace a segment
	if err != nil {
		return err
	}
	asked, err := httpapi.Decode(w, r, api.MaxSegmentBody, decodeSaved)
	if err != nil {
		return err
	}
	if _, err := asked.where.Compile(app.Strategy); err != nil {
		return err
	}
	where, err := json.Marshal(asked.where)
	if err != nil {
		return err
	}
	s := config.SavedSegment{Name: name, Where: string(where), SetAt: h.Now()}
	change := auditlog.Change{App: app.ID, Actor: by.key, Action: auditlog.SegmentSet, Subject: name}
	change.Detail = string(where)
	err = auditlog.New(h.AuditLog()).Do(r.Context(), change, func() (auditlog.End, error) {
		s, _, err = h.CachedConfig.SaveSegment(r.Context(), app.ID, s, create)
		return auditlog.End{}, err
	})
	if errors.Is(err, config.ErrExists) {
		return httpapi.Errorf(http.StatusConflict,
			"A segment named %s exists: send the request without create=true to replace it", name)
	}
	if err != nil {
		return fmt.Errorf("save segment: %w", err)
	}
	return h.write(w, r, app.ID, s, by.admin)
}

func (h handler) write(w http.ResponseWriter, r *http.Request, app string, s config.SavedSegment, admin bool) error {
	answer, err := h.view(r, app, s, admin)
	if err != nil {
		return err
	}
	return httpapi.WriteJSON(w, http.StatusOK, answer)
}

// view describes a saved segment with its sizes.
func (h handler) view(r *http.Request, app string, s config.SavedSegment, admin bool) (api.Segment, error) {
	view := api.Segment{Name: s.Name, SetAt: api.At(s.SetAt), Sizes: []api.SegmentSize{}}
	if err := json.Unmarshal([]byte(s.Where), &view.Where); err != nil {
		return view, fmt.Errorf("decode segment %q: %w", s.Name, err)
	}
	sizes, err := h.Store.Segments.SegmentSizes(r.Context(), app, s.Name)
	if err != nil {
		return view, err
	}
	since := s.SetAt.UTC().Format(time.DateOnly)
	for _, size := range sizes {
		if size.Day >= since {
			view.Sizes = append(view.Sizes, api.SegmentSize{Day: size.Day, Users: countView(size.Users, admin)})
		}
	}
	return view, nil
}

// saved returns the segment that a request names.
func (h handler) saved(r *http.Request, app string) (config.SavedSegment, error) {
	name := r.PathValue("name")
	if err := segment.CheckName(name); err != nil {
		return config.SavedSegment{}, err
	}
	s, err := h.Config.SavedSegment(r.Context(), app, name)
	if errors.Is(err, config.ErrNotFound) {
		return s, errNoSegment()
	}
	return s, err
}

func (h handler) get(w http.ResponseWriter, r *http.Request, app config.App, by caller) error {
	s, err := h.saved(r, app.ID)
	if err != nil {
		return err
	}
	return h.write(w, r, app.ID, s, by.admin)
}

// delete deletes a saved segment and its sizes.
func (h handler) delete(w http.ResponseWriter, r *http.Request, app config.App, by caller) error {
	s, err := h.saved(r, app.ID)
	if err != nil {
		return err
	}
	change := auditlog.Change{App: app.ID, Actor: by.key, Action: auditlog.SegmentDelete, Subject: s.Name}
	err = auditlog.New(h.AuditLog()).Do(r.Context(), change, func() (auditlog.End, error) {
		// Sizes first: after a crash in between, the client deletes again.
		if err := h.Store.Segments.DeleteSegmentSizes(r.Context(), app.ID, s.Name); err != nil {
			return auditlog.End{}, err
		}
		return auditlog.End{}, h.CachedConfig.DeleteSegment(r.Context(), app.ID, s.Name)
	})
	if errors.Is(err, config.ErrNotFound) {
		return errNoSegment()
	}
	if err != nil {
		return fmt.Errorf("delete segment: %w", err)
	}
	return httpapi.WriteJSON(w, http.StatusOK, api.DeletedSegment{DeletedAt: api.At(h.Now())})
}
