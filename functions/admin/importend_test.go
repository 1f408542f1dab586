package admin_test

import (
	"testing"
	"time"

	"github.com/affinityengine/affinity/functions/admin"
	"github.com/affinityengine/affinity/shared/local/functiontest"
	"github.com/affinityengine/affinity/shared/local/must"
)

func TestEndOfImport(t *testing.T) {
	s := functiontest.Start(t)
	b := s.Backends.ForAdmin()
	h := admin.New(b)
	const path = "/1/imports/end"
	functiontest.Check(t, h,
		functiontest.Ask("", "POST", path, "", 401, "Invalid credentials"),
		functiontest.Ask("addObject", "POST", path, "", 403, "Method not allowed with this API key"),
		functiontest.Ask("admin", "GET", path, "", 405, "Method Not Allowed"),
		functiontest.Ask("admin", "POST", path, "", 200, `{"at":null,"recompute":null,"crowd":null,"waiting":false}`),
		functiontest.Ask("admin", "POST", path, "{", 400, "Bad Request"),
		functiontest.Ask("admin", "POST", path, `{"at":"now"}`, 422, "The body must be empty or an object with no other key than at"),
		functiontest.Ask("admin", "POST", path, `{"id":"a"}`, 422, "The body must be empty or an object with no other key than at"),
		functiontest.Ask("admin", "POST", path, `{"at":"2026-11-20T12:00:00.000Z"}`, 422, "at must be that of an earlier answer"),
	)
	last := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	must.Succeed(t, b.Store.Crowd.NoteImport(t.Context(), functiontest.App, "", last))
	functiontest.Check(t, h,
		functiontest.Ask("admin", "POST", path, `{"at":"2026-11-20T12:00:00.001Z"}`, 422, "at must be that of an earlier answer"),
		functiontest.Ask("admin", "POST", path, `{"at":"1969-11-20T12:00:00.000Z"}`, 422, "at must be that of an earlier answer"),
		functiontest.Ask("admin", "POST", path, `{"at":null}`, 200, `{"at":"2026-11-20T12:00:00.000Z","recompute":{"id":"import-1795176000000","state":"planning"`),
		functiontest.Ask("admin", "POST", path, `{"at":"2026-11-20T13:00:00+01:00"}`, 200, `"crowd":null,"waiting":false}`), // no objects
	)
	if jobs, err := b.Recompute.List(t.Context(), functiontest.App, 10); err != nil || len(jobs) != 1 {
		t.Errorf("%d recomputes, %v; want one", len(jobs), err)
	}
}
