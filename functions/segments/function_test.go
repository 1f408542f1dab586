package segments_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/functions/segments"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/local/functiontest"
	"github.com/affinityengine/affinity/shared/local/must"
)

func TestRequests(t *testing.T) {
	s := functiontest.Start(t)
	h := segments.New(s.Backends.ForSegments())
	const where = `{"where":{"filter":"color:Red"}}`
	functiontest.Check(t, h,
		functiontest.Ask("", "GET", "/1/segments", "", 401, "Invalid credentials"),
		functiontest.Ask("search", "GET", "/1/segments", "", 403, "Method not allowed with this API key"),
		functiontest.Ask("recommendation", "GET", "/1/segments", "", 200, `{"segments":[],"lists":null,"builds":[]}`),
		functiontest.Ask("recommendation", "POST", "/1/segments/query", where, 403, "Method not allowed with this API key"),
		functiontest.Ask("admin", "POST", "/1/segments/query", where, 409, "Segments are off for this app"),
		functiontest.Ask("recommendation", "GET", "/1/values?facet=color", "", 409, "Segments are off for this app"),
		functiontest.Ask("admin", "POST", "/1/segments/refresh", "", 409, "Segments are off for this app"),
		functiontest.Ask("admin", "GET", "/1/segments/refresh/x", "", 404, `No build \"x\"`),
		functiontest.Ask("admin", "GET", "/1/segments/export/x", "", 404, `No export \"x\"`),
		functiontest.Ask("admin", "POST", "/1/segments/red/export", "", 404, "Segment does not exist"),
		functiontest.Ask("admin", "GET", "/1/recomputes", "", 404, "Path not supported"),
	)
}

// Without its place a build is answered all the same.
func TestBuildWithoutPlace(t *testing.T) {
	s := functiontest.Start(t)
	must.Succeed(t, s.Backends.Config.SetSegments(t.Context(), functiontest.App, true))
	b := s.Backends.ForSegments()
	refresh := func() string { return functiontest.Do(t, segments.New(b), "admin", "POST", "/1/segments/refresh", "") }
	if answer := refresh(); strings.Contains(answer, `"state":"planning"`) && !strings.Contains(answer, `"jobsBefore":0`) {
		t.Errorf("%s, want its place", answer)
	}
	b.Before = func(context.Context, job.Job) (int, error) { return 0, errors.New("the index is being built") }
	if answer := refresh(); strings.Contains(answer, "jobsBefore") {
		t.Errorf("%s, want no place", answer)
	}
}
