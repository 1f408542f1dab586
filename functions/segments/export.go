package segments

import (
	"bufio"
	"errors"
	"io"
	"net/http"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/auditlog"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/backend/answers"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/kinds/segmentexport"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// startExport starts a job that writes the users of a segment to a file.
func (h handler) startExport(w http.ResponseWriter, r *http.Request, app config.App, key string) error {
	s, err := h.saved(r, app.ID)
	if err != nil {
		return err
	}
	change := auditlog.Change{App: app.ID, Actor: key, Action: auditlog.SegmentExport, Detail: "segment " + s.Name}
	j, err := h.jobs.Record(r.Context(), change,
		func() (job.Job, error) { return h.Exports.Start(r.Context(), app.ID, s) })
	if err != nil {
		return err
	}
	return h.export(w, r, j)
}

// findExport returns the export that a request names.
func (h handler) findExport(r *http.Request, anyOf ...string) (job.Job, error) {
	app, err := h.Auth.Tenant(r, anyOf...)
	if err != nil {
		return job.Job{}, err
	}
	j, err := h.Exports.Find(r.Context(), app.ID, r.PathValue("id"))
	if errors.Is(err, job.ErrNotFound) {
		return j, httpapi.Errorf(http.StatusNotFound, "No export %q", r.PathValue("id"))
	}
	return j, err
}

func (h handler) export(w http.ResponseWriter, r *http.Request, j job.Job) error {
	answer := api.SegmentExport{
		ID: j.ID, Segment: job.ParamsOf[segmentexport.Params](j).Segment, State: api.JobState(j.State),
		StartedAt: api.At(j.StartedAt), FinishedAt: answers.Finished(j), Place: h.jobs.Place(r.Context(), j), Error: j.Error,
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

// file answers the file of an export, while it is read.
func (h handler) file(w http.ResponseWriter, r *http.Request, j job.Job) error {
	if j.State != job.Done {
		return httpapi.Errorf(http.StatusConflict, "Export %s is %s: its file is not complete", j.ID, j.State)
	}
	result, err := h.Exports.Result(r.Context(), j)
	if err != nil {
		return err
	}
	chunks, complete := make([]int, len(result.Regions)), true
	for i, region := range result.Regions {
		n, _, whole, err := h.Store.In(region).Segments.Export(r.Context(), j.App, result.File)
		if err != nil {
			return err
		}
		chunks[i], complete = n, complete && whole
	}
	if !complete || !h.Now().Before(j.FinishedAt.Add(segmentexport.Kept)) {
		return httpapi.Errorf(http.StatusNotFound, "The file of export %s is gone: the engine keeps it for 7 days", j.ID)
	}
	// If it fails after the first bytes, the connection ends, and the client knows that
	// lines are missing.
	return httpapi.SendLines(w, func(out *bufio.Writer) error {
		for i, region := range result.Regions {
			for n := range chunks[i] {
				chunk, err := h.Store.In(region).Segments.ReadExportChunk(r.Context(), j.App, result.File, n)
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
		}
		return nil
	})
}
