package admin

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/auditlog"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/fault"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/kinds/segmentexport"
	"github.com/affinityengine/affinity/shared/rank/segment"
	"github.com/affinityengine/affinity/shared/web/auth"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// errNoSegment says that the app has no segment of that name.
func errNoSegment() error { return httpapi.Errorf(http.StatusNotFound, "Segment does not exist") }

// saveSegment saves a condition under a name.
func (h handler) saveSegment(w http.ResponseWriter, r *http.Request) error {
	app, key, admin, err := h.counter(r)
	if err != nil {
		return err
	}
	name := r.PathValue("name")
	if err := segment.CheckName(name); err != nil {
		return err
	}
	create, err := createOnly(r)
	if err != nil {
		return err
	}
	body, err := httpapi.ReadBody(w, r, api.MaxSegmentBody)
	if err != nil {
		return err
	}
	asked, err := decodeSegment(body, false)
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
	change := auditlog.Change{App: app.ID, Actor: key, Action: auditlog.SegmentSet, Subject: name, Detail: string(where)}
	err = h.Recorder().Do(r.Context(), change, func() (auditlog.End, error) {
		s, _, err = h.CachedConfig.SaveSegment(r.Context(), app.ID, s, create)
		return auditlog.End{}, err
	})
	if errors.Is(err, config.ErrExists) {
		return httpapi.Errorf(http.StatusConflict, "A segment named %s exists: send the request without create=true to replace it", name)
	}
	if err != nil {
		return fmt.Errorf("save segment: %w", err)
	}
	return h.writeSegment(w, r, app.ID, s, admin)
}

// createOnly reports whether a request must not replace a segment.
func createOnly(r *http.Request) (bool, error) {
	switch text := r.URL.Query().Get("create"); text {
	case "", "false":
		return false, nil
	case "true":
		return true, nil
	default:
		return false, fault.New(fault.Invalid, "create must be true or false, got %q", text)
	}
}

func (h handler) writeSegment(w http.ResponseWriter, r *http.Request, app string, s config.SavedSegment, admin bool) error {
	answer, err := h.segmentView(r, app, s, admin)
	if err != nil {
		return err
	}
	return httpapi.WriteJSON(w, http.StatusOK, answer)
}

// segmentView describes a saved segment with its sizes.
func (h handler) segmentView(r *http.Request, app string, s config.SavedSegment, admin bool) (api.Segment, error) {
	view := api.Segment{Name: s.Name, SetAt: api.At(s.SetAt), Sizes: []api.SegmentSize{}}
	if err := json.Unmarshal([]byte(s.Where), &view.Where); err != nil {
		return view, fmt.Errorf("decode segment %q: %w", s.Name, err)
	}
	sizes, err := h.Store.SegmentSizes(r.Context(), app, s.Name)
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

func (h handler) getSegment(w http.ResponseWriter, r *http.Request) error {
	app, _, admin, err := h.counter(r)
	if err != nil {
		return err
	}
	s, err := h.saved(r, app.ID)
	if err != nil {
		return err
	}
	return h.writeSegment(w, r, app.ID, s, admin)
}

// deleteSegment deletes a saved segment and its sizes.
func (h handler) deleteSegment(w http.ResponseWriter, r *http.Request) error {
	app, key, _, err := h.counter(r)
	if err != nil {
		return err
	}
	s, err := h.saved(r, app.ID)
	if err != nil {
		return err
	}
	change := auditlog.Change{App: app.ID, Actor: key, Action: auditlog.SegmentDelete, Subject: s.Name}
	err = h.Recorder().Do(r.Context(), change, func() (auditlog.End, error) {
		// Sizes first: after a crash in between, the client deletes again.
		if err := h.Store.DeleteSegmentSizes(r.Context(), app.ID, s.Name); err != nil {
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

// exportSegment starts a job that writes the users of a segment to a file.
func (h handler) exportSegment(w http.ResponseWriter, r *http.Request) error {
	app, key, err := h.Auth.TenantKey(r, auth.Admin)
	if err != nil {
		return err
	}
	s, err := h.saved(r, app.ID)
	if err != nil {
		return err
	}
	change := auditlog.Change{App: app.ID, Actor: key, Action: auditlog.SegmentExport, Detail: "segment " + s.Name}
	j, err := h.recordJob(r.Context(), change, func() (job.Job, error) { return h.Exports.Start(r.Context(), app.ID, s) })
	if err != nil {
		return err
	}
	return h.writeExport(w, r, j)
}

// findExport returns the export that a request names.
func (h handler) findExport(r *http.Request) (job.Job, error) {
	app, err := h.Auth.Tenant(r, auth.Admin)
	if err != nil {
		return job.Job{}, err
	}
	j, err := h.Exports.Find(r.Context(), app.ID, r.PathValue("id"))
	if errors.Is(err, job.ErrNotFound) {
		return j, httpapi.Errorf(http.StatusNotFound, "No export %q", r.PathValue("id"))
	}
	return j, err
}

func (h handler) getSegmentExport(w http.ResponseWriter, r *http.Request) error {
	j, err := h.findExport(r)
	if err != nil {
		return err
	}
	return h.writeExport(w, r, j)
}

func (h handler) writeExport(w http.ResponseWriter, r *http.Request, j job.Job) error {
	answer := api.SegmentExport{
		ID: j.ID, Segment: job.ParamsOf[segmentexport.Params](j).Segment, State: api.JobState(j.State),
		StartedAt: api.At(j.StartedAt), FinishedAt: finished(j), Place: h.place(r.Context(), j), Error: j.Error,
	}
	if j.State == job.Done {
		result, err := h.Exports.Result(r.Context(), j)
		if err != nil {
			return err
		}
		asOf, until := api.At(result.AsOf), api.At(j.FinishedAt.Add(segmentexport.Kept))
		answer.Users, answer.AsOf, answer.KeptUntil = &result.Users, &asOf, &until
	}
	return httpapi.WriteJSON(w, http.StatusOK, answer)
}

// segmentFile answers the file of an export, while it is read.
func (h handler) segmentFile(w http.ResponseWriter, r *http.Request) error {
	j, err := h.findExport(r)
	if err != nil {
		return err
	}
	if j.State != job.Done {
		return httpapi.Errorf(http.StatusConflict, "Export %s is %s: its file is not complete", j.ID, j.State)
	}
	result, err := h.Exports.Result(r.Context(), j)
	if err != nil {
		return err
	}
	chunks, _, complete, err := h.Store.Export(r.Context(), j.App, result.File)
	if err != nil {
		return err
	}
	if !complete || !h.Now().Before(j.FinishedAt.Add(segmentexport.Kept)) {
		return httpapi.Errorf(http.StatusNotFound, "The file of export %s is gone: the engine keeps it for 7 days", j.ID)
	}
	// If it fails after the first bytes, the connection ends, and the client knows that
	// lines are missing.
	return sendLines(w, func(out *bufio.Writer) error {
		for n := range chunks {
			chunk, err := h.Store.ReadExportChunk(r.Context(), j.App, result.File, n)
			if err == nil && chunk == nil {
				err = io.ErrUnexpectedEOF
			}
			if err == nil {
				_, err = out.Write(chunk)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}
