package console

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

func init() {
	notices["export-started"] = "The export has been started. This page follows it."
}

const (
	// exportsShown is how many exports of a segment are listed, and exportsRead how many entries of
	// the audit log are read for them.
	exportsShown = 5
	exportsRead  = 200
	// maxFile is how many users a file may have that the console sends. A page keeps an answer in
	// memory.
	maxFile = 50_000
)

// exportLine is an export of the list.
type exportLine struct {
	ID, Path, Actor string
	At              time.Time
}

// readExports lists the latest exports of a segment. The engine lists no exports, and the audit log
// has each.
func readExports(v *visit, segment string) (lines []exportLine, err error) {
	log, err := v.engine.AuditLog(v.Context(), api.AuditLogQuery{Action: "segment.export", Limit: exportsRead})
	if err != nil {
		return nil, fmt.Errorf("list exports: %w", err)
	}
	for _, e := range log.Entries {
		if e.Detail == "segment "+segment && e.Subject != "" && len(lines) < exportsShown {
			lines = append(lines, exportLine{e.Subject, exportPath(segment, e.Subject), e.Actor, e.At.Time})
		}
	}
	return lines, nil
}

// exportPath is the address of an export.
func exportPath(segment, id string) string {
	return segmentPath(segment, "/exports/"+url.PathEscape(id))
}

// exportCommand writes the file of an export.
func exportCommand(segment string) string {
	return "affinity segment export " + shellArg(segment) + " --out " + shellArg(segment+".ndjson")
}

// startSegmentExport starts a job that writes the users of a segment to a file.
func startSegmentExport(v *visit) (any, error) {
	job, err := v.engine.Segments().StartExport(v.Context(), v.PathValue("name"))
	if err != nil {
		return nil, err
	}
	return nil, done(exportPath(v.PathValue("name"), job.ID), "export-started")
}

// segmentExport is what the page of an export shows.
type segmentExport struct {
	Now     time.Time
	Job     jobLine
	Path    string
	Segment string
	Back    string // the page of the segment
	Users   int64
	AsOf    time.Time
	Until   time.Time // the file is kept
	Gone    bool      // it is no longer kept
	TooMany bool      // for the console to send
	Command string
}

// Done reports whether there is a file.
func (e *segmentExport) Done() bool { return e.Job.State == api.JobDone }

// Most is how many users a file may have that the console sends.
func (*segmentExport) Most() int { return maxFile }

// findExport returns the export that an address names.
func findExport(v *visit) (api.SegmentExport, error) {
	job, err := v.engine.Segments().Export(v.Context(), v.PathValue("id"))
	if err == nil && job.Segment != v.PathValue("name") {
		err = httpapi.Errorf(http.StatusNotFound, "This segment has no such export")
	}
	return job, err
}

func loadSegmentExport(v *visit) (any, error) {
	v.title = "Export of " + shown(v.PathValue("name"))
	job, err := findExport(v)
	if err != nil {
		return nil, err
	}
	e := &segmentExport{
		Now: v.now(), Path: exportPath(job.Segment, job.ID), Segment: job.Segment, Back: segmentPath(job.Segment, ""),
		Command: exportCommand(job.Segment),
	}
	e.Job = newJob("", "Export of "+job.Segment, job.ID, job.State, 0, 0, job.StartedAt,
		job.FinishedAt).waits(job.Place).faults(0, job.Error)
	v.command = e.Command
	if job.Users != nil && job.AsOf != nil && job.KeptUntil != nil {
		e.Users, e.AsOf, e.Until = *job.Users, job.AsOf.Time, job.KeptUntil.Time
		e.Gone, e.TooMany = !e.Now.Before(e.Until), e.Users > maxFile
		v.made.add(call{Method: http.MethodGet, Path: "/1/segments/export/" + url.PathEscape(job.ID) + "/file"})
	}
	return e, nil
}

// errSent says that a page has written its answer: a file.
var errSent = errors.New("the answer is sent")

// sendSegmentFile sends the file of an export.
func sendSegmentFile(v *visit) (any, error) {
	job, err := findExport(v)
	if err != nil {
		return nil, err
	}
	if job.Users == nil {
		return nil, httpapi.Errorf(http.StatusConflict, "The export is not complete: there is no file yet")
	}
	if *job.Users > maxFile {
		return nil, httpapi.Errorf(http.StatusConflict,
			"The console sends files of at most %s users. This command writes larger ones: %s", number(maxFile),
			exportCommand(job.Segment))
	}
	var file bytes.Buffer // so that a file that is cut off is not sent
	if err := v.engine.Segments().File(v.Context(), job.ID, *job.Users, &file); err != nil {
		return nil, err
	}
	h := v.w.Header()
	h.Set("Content-Type", "application/x-ndjson; charset=utf-8")
	h.Set("Content-Disposition", `attachment; filename="`+job.Segment+`.ndjson"`)
	h.Set("Content-Length", strconv.Itoa(file.Len()))
	_, _ = file.WriteTo(v.w) // the client may be gone
	return nil, errSent
}
