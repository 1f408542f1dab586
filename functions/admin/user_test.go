package admin_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/functions/admin"
	"github.com/affinityengine/affinity/functions/imports"
	"github.com/affinityengine/affinity/shared/local/functiontest"
)

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
