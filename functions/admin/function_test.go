package admin_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/functions/admin"
	"github.com/affinityengine/affinity/functions/imports"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/local/functiontest"
)

func TestRecomputes(t *testing.T) {
	h := admin.New(functiontest.Start(t).Backends.ForAdmin())
	functiontest.Check(t, h,
		functiontest.Ask("", "GET", "/1/recomputes", "", 401, "Invalid credentials"),
		functiontest.Ask("recommendation", "GET", "/1/recomputes", "", 403, "Method not allowed with this API key"),
		functiontest.Ask("admin", "PUT", "/1/recomputes", "", 405, "Method Not Allowed"),
		functiontest.Ask("admin", "GET", "/1/recompute", "", 404, "Path not supported"),
		functiontest.Ask("admin", "GET", "/1/recomputes", "", 200, `{"recomputes":[]}`),
		functiontest.Ask("admin", "GET", "/1/recomputes/x", "", 404, `No recompute \"x\"`),
		functiontest.Ask("admin", "POST", "/1/recomputes/x/cancel", "", 404, `No recompute \"x\"`),
		functiontest.Ask("admin", "POST", "/1/recomputes", "{", 400, "Bad Request"),
		functiontest.Ask("admin", "POST", "/1/recomputes", `{"onlystale":1}`, 422, "The body must be empty or an object"),
		functiontest.Ask("admin", "POST", "/1/recomputes", strings.Repeat(" ", api.MaxAdminBody+1), 413, "Request Entity Too Large"),
		functiontest.Ask("admin", "POST", "/1/recomputes", `{"onlyStale":true}`, 200, `"trigger":"manual","retentionDays":0,"onlyStale":true`),
		functiontest.Ask("admin", "POST", "/1/recomputes", `{"fold":true}`, 200, `"onlyStale":false,"maintain":false,"fold":true`),
		functiontest.Ask("admin", "POST", "/1/recomputes", `{"fold":1}`, 422, "no other keys than onlyStale, fold and full, each true or false"),
		functiontest.Ask("admin", "POST", "/1/recomputes", `{"full":true}`, 200, `"onlyStale":false,"maintain":true`),
		functiontest.Ask("admin", "POST", "/1/recomputes", `{"full":true,"onlyStale":true}`, 422, "onlyStale and full cannot both be true"),
		functiontest.Ask("admin", "GET", "/1/recomputes", "", 200, `"id":"manual-`),
	)
}

func TestReenrichments(t *testing.T) {
	h := admin.New(functiontest.Start(t).Backends.ForAdmin())
	functiontest.Check(t, h,
		functiontest.Ask("search", "POST", "/1/reenrich", "", 403, "Method not allowed with this API key"),
		functiontest.Ask("admin", "GET", "/1/reenrich", "", 200, `{"reenrichments":[]}`),
		functiontest.Ask("admin", "GET", "/1/reenrich/x", "", 404, `No re-enrichment \"x\"`),
		functiontest.Ask("admin", "POST", "/1/reenrich", `[]`, 422, "The body must be empty or an object"),
		functiontest.Ask("admin", "POST", "/1/reenrich", `{"dryRun":true}`, 200, `"dryRun":true,"shards":`),
		functiontest.Ask("admin", "POST", "/1/reenrich/x/cancel", "", 404, `No re-enrichment \"x\"`),
	)
}

func TestAudits(t *testing.T) {
	h := admin.New(functiontest.Start(t).Backends.ForAdmin())
	functiontest.Check(t, h,
		functiontest.Ask("search", "POST", "/1/audits", "", 403, "Method not allowed with this API key"),
		functiontest.Ask("admin", "POST", "/1/audits", "{", 400, "Bad Request"),
		functiontest.Ask("admin", "POST", "/1/audits", `{"sample":0}`, 422, "sample must be an integer from 1 to 10000"),
		functiontest.Ask("admin", "POST", "/1/audits", "", 200, `{"sampled":0,"compared":0,"stored":0,"events":0,"byScorer":0,"differing":0,"differences":[]}`),
	)
}

func TestSchema(t *testing.T) {
	h := admin.New(functiontest.Start(t).Backends.ForAdmin())
	functiontest.Check(t, h,
		functiontest.Ask("search", "GET", "/1/schema", "", 403, "Method not allowed with this API key"),
		functiontest.Ask("admin", "GET", "/1/schema", "", 200, `{"read":"wide","written":["wide"],"encoding":"compact","move":null,"settlesInMs":`),
		functiontest.Ask("admin", "POST", "/1/schema/verify", "", 409, "There is nothing to verify yet"),
		functiontest.Ask("admin", "POST", "/1/schema/verify", `{"x":1}`, 422, "The body must be empty or an object without keys"),
		functiontest.Ask("admin", "POST", "/1/schema/start", `{"to":"tall"}`, 422, `to: schema \"tall\" does not exist`),
		functiontest.Ask("admin", "POST", "/1/schema/start", `{"to":"narrow"}`, 200, `"from":"wide","to":"narrow","phase":"dual"`),
		functiontest.Ask("admin", "POST", "/1/schema/backfill", `{"rate":1000001}`, 422, "rate must be an integer from 0"),
	)
}

// One user's profile is computed, stored and answered. Nothing else may stand in the
// body, and no job starts.
func TestRefreshOneUser(t *testing.T) {
	s := functiontest.Start(t)
	h := admin.New(s.Backends.ForAdmin())
	const line = `{"eventType":"view","eventName":"Seen","userToken":"ann","index":"i","filters":["color:Red"],"timestamp":%d}`
	functiontest.Check(t, imports.New(s.Backends.ForImports()),
		functiontest.Ask("admin", "POST", "/1/events/import", fmt.Sprintf(line, time.Now().UnixMilli()), 200, ""))
	path, long := "/1/recomputes", strings.Repeat("u", 130)
	functiontest.Check(t, h,
		functiontest.Ask("recommendation", "POST", path, `{"userToken":"ann"}`, 403, "Method not allowed with this API key"),
		functiontest.Ask("admin", "POST", path, `{"userToken":"ann"}`, 200, `{"userToken":"ann","lastEventAt":`),
		functiontest.Ask("admin", "POST", path, `{"userToken":"ann"}`, 200, `"source":"computed","total":`),
		functiontest.Ask("admin", "POST", path, `{"userToken":"bob"}`, 404, `No profile: user token \"bob\" has no event within the retention`),
		functiontest.Ask("admin", "POST", path, `{"userToken":""}`, 422, "userToken must contain only"),
		functiontest.Ask("admin", "POST", path, `{"userToken":"a,b"}`, 422, "userToken must contain only"),
		functiontest.Ask("admin", "POST", path, `{"userToken":"`+long+`"}`, 422, "userToken must contain only"),
		functiontest.Ask("admin", "POST", path, `{"userToken":null}`, 422, "userToken must be a text"),
		functiontest.Ask("admin", "POST", path, `{"userToken":7}`, 422, "each true or false, or userToken"),
		functiontest.Ask("admin", "POST", path, `{"userToken":"ann","full":true}`, 422, "userToken must be the only key"),
		functiontest.Ask("admin", "POST", path, `{"userToken":"ann","limit":3}`, 422, "each true or false, or userToken"),
		functiontest.Ask("admin", "GET", path, "", 200, `{"recomputes":[]}`),
	)
	if _, err := s.Backends.Profiles.OptOut(t.Context(), functiontest.App, "ann"); err != nil {
		t.Fatal(err)
	}
	functiontest.Check(t, h, functiontest.Ask("admin", "POST", path, `{"userToken":"ann"}`, 404, "No profile"))
}

// noIndex is a store of jobs whose index over all apps is still being built.
type noIndex struct{ job.Jobs }

func (noIndex) Before(context.Context, string, time.Time) (int, error) {
	return 0, errors.New("the index is being built")
}

// Without its place a job is answered all the same.
func TestJobWithoutPlace(t *testing.T) {
	s := functiontest.Start(t)
	h := admin.New(s.Backends.ForAdmin())
	start := func() string {
		t.Helper()
		status, answer := functiontest.Call(h, "admin", "POST", "/1/reenrich", "")
		if status != 200 || !strings.Contains(answer, `"dryRun":false`) {
			t.Fatal(status, answer)
		}
		return answer
	}
	if answer := start(); strings.Contains(answer, `"state":"planning"`) && !strings.Contains(answer, `"jobsBefore":0`) {
		t.Errorf("%s, want its place", answer)
	}
	s.Backends.Crowd.Jobs = noIndex{s.Backends.Crowd.Jobs}
	if answer := start(); strings.Contains(answer, "jobsBefore") {
		t.Errorf("%s, want no place", answer)
	}
}
