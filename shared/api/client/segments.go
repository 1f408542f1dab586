package client

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/affinityengine/affinity/shared/api"
)

func segmentPath(name string) string { return "/1/segments/" + url.PathEscape(name) }

// Query returns a page of the users who meet a condition. The key needs the
// permission admin or, for a count alone (limit 0), recommendation.
func (c Segments) Query(ctx context.Context, query api.SegmentQuery) (api.SegmentPage, error) {
	var answer api.SegmentPage
	err := c.call(ctx, always, http.MethodPost, "/1/segments/query", query, &answer)
	return answer, err
}

// Histogram returns how the scores of a value are distributed over its holders.
// halfLife is one of the strategy's as a strategy writes it; "" is its first. The key
// needs the permission recommendation.
func (c Segments) Histogram(ctx context.Context, facet, value, halfLife string) (api.SegmentHistogram, error) {
	query := url.Values{"facet": {facet}, "value": {value}}
	if halfLife != "" {
		query.Set("halfLife", halfLife)
	}
	var answer api.SegmentHistogram
	err := c.call(ctx, always, http.MethodGet, "/1/segments/histogram?"+query.Encode(), nil, &answer)
	return answer, err
}

// Values returns the values of a facet that most users have, at most limit, 0 for the
// engine's default. With a sample of more than 0 users it counts their events too. The
// key needs the permission recommendation.
func (c Segments) Values(ctx context.Context, facet string, limit, sample int) (api.Values, error) {
	query := url.Values{"facet": {facet}}
	if sample > 0 {
		query.Set("sample", strconv.Itoa(sample))
	}
	if limit > 0 {
		query.Set("limit", strconv.Itoa(limit))
	}
	var answer api.Values
	err := c.call(ctx, always, http.MethodGet, "/1/values?"+query.Encode(), nil, &answer)
	return answer, err
}

// Save saves a condition under a name. With create it refuses to replace a
// segment: the error is then an *api.Error with status 409. Requires a key with the permission
// recommendation, as for all saved segments.
func (c Segments) Save(ctx context.Context, name string, where api.SegmentCondition, create bool) (api.Segment, error) {
	path, when := segmentPath(name), always
	if create {
		path, when = path+"?create=true", refused
	}
	var answer api.Segment
	err := c.call(ctx, when, http.MethodPut, path, api.SegmentRequest{Where: where}, &answer)
	return answer, err
}

// Get returns a saved segment with its sizes. If it does not exist, the error is
// an *api.Error with status 404.
func (c Segments) Get(ctx context.Context, name string) (api.Segment, error) {
	var answer api.Segment
	err := c.call(ctx, always, http.MethodGet, segmentPath(name), nil, &answer)
	return answer, err
}

// List returns the saved segments of an app, and what queries read.
func (c Segments) List(ctx context.Context) (api.Segments, error) {
	var answer api.Segments
	err := c.call(ctx, always, http.MethodGet, "/1/segments", nil, &answer)
	return answer, err
}

// Delete removes a saved segment. If it does not exist, the error is an
// *api.Error with status 404.
func (c Segments) Delete(ctx context.Context, name string) (api.DeletedSegment, error) {
	var answer api.DeletedSegment
	err := c.call(ctx, always, http.MethodDelete, segmentPath(name), nil, &answer)
	return answer, err
}

// Refresh starts a job that builds the lists that queries read. The key needs
// the permission admin.
func (c Segments) Refresh(ctx context.Context) (api.SegmentBuild, error) {
	var answer api.SegmentBuild
	err := c.call(ctx, refused, http.MethodPost, "/1/segments/refresh", nil, &answer)
	return answer, err
}

// StartExport starts a job that writes the users of a saved segment to a file. The
// key needs the permission admin, as for all methods of exports.
func (c Segments) StartExport(ctx context.Context, name string) (api.SegmentExport, error) {
	var answer api.SegmentExport
	err := c.call(ctx, refused, http.MethodPost, segmentPath(name)+"/export", nil, &answer)
	return answer, err
}

func exportPath(id string) string { return "/1/segments/export/" + url.PathEscape(id) }

// Export returns an export. If it does not exist, the error is an *api.Error
// with status 404.
func (c Segments) Export(ctx context.Context, id string) (api.SegmentExport, error) {
	var answer api.SegmentExport
	err := c.call(ctx, always, http.MethodGet, exportPath(id), nil, &answer)
	return answer, err
}

// File writes the file of an export to w, a line of api.SegmentUser for each of
// so many users, while it arrives. It returns ErrCut if lines are missing: w then holds
// what has arrived. It does not repeat the request.
func (c Segments) File(ctx context.Context, id string, users int64, w io.Writer) error {
	body, err := c.stream(ctx, exportPath(id)+"/file")
	if err != nil {
		return err
	}
	defer body.Close()
	lines := &lineCounter{w: w}
	switch _, err := io.Copy(lines, body); {
	case lines.failed != nil:
		return fmt.Errorf("write the export: %w", lines.failed)
	case err != nil:
		return fmt.Errorf("%w: %w", ErrCut, err)
	case lines.n != users:
		return fmt.Errorf("%w: %d of %d users arrived", ErrCut, lines.n, users)
	}
	return nil
}

// lineCounter counts the lines that it passes on.
type lineCounter struct {
	w      io.Writer
	n      int64
	failed error // of w
}

func (l *lineCounter) Write(b []byte) (n int, err error) {
	l.n += int64(bytes.Count(b, []byte("\n")))
	n, l.failed = l.w.Write(b)
	return n, l.failed
}
