package imports_test

import (
	"strings"
	"testing"

	"github.com/affinityengine/affinity/functions/imports"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/local/functiontest"
)

func TestImports(t *testing.T) {
	s := functiontest.Start(t)
	h := imports.New(s.Backends.ForImports())
	const (
		path = "/1/events/import"
		line = `{"eventType":"view","eventName":"Seen","userToken":"ann","timestamp":1500000000000,"filters":["color:Red"]}`
	)
	functiontest.Check(t, h,
		functiontest.Ask("", "POST", path, line, 401, "Invalid credentials"),
		functiontest.Ask("search", "POST", path, line, 403, "Method not allowed with this API key"),
		functiontest.Ask("admin", "GET", path, "", 405, "Method Not Allowed"),
		functiontest.Ask("admin", "POST", path+"/more", line, 404, "Path not supported"),
		functiontest.Ask("admin", "POST", path, strings.Repeat("\n", api.MaxImportLines+1), 413, "Cannot process more than 5000 lines in a request"),
		functiontest.Ask("admin", "POST", path, strings.Repeat(" ", api.MaxImportBody+1), 413, "Request Entity Too Large"),
		functiontest.Ask("admin", "POST", path, line, 200, `"accepted":0,"received":0,"deleted":0,"optedOut":0,"outsideRetention":0,"refused":[{"line":1,"message":"The index field is required"}]`),
		functiontest.Ask("admin", "POST", path+"?receipts=dropped", line, 422, `receipts \"dropped\" must be kept, or missing`),
		functiontest.Ask("admin", "POST", path+"?index=shoes", "\n"+line+"\nbad\n", 200, `{"accepted":1,"received":0,"deleted":0,"optedOut":0,"outsideRetention":0,"refused":[{"line":3,`),
	)
	app, err := s.Backends.Config.App(t.Context(), functiontest.App)
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.Backends.Profiles.Read(t.Context(), app, "ann", 0)
	if err != nil || !p.Known || p.LastEventAt != 1500000000000 {
		t.Errorf("the profile %+v, %v does not count the event", p, err)
	}
}
