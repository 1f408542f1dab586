package imports_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/functions/imports"
	"github.com/affinityengine/affinity/functions/profiles"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/functiontest"
)

// The engine reads the times of history in all forms, and replaces none by its clock.
func TestTimesOfHistory(t *testing.T) {
	s := functiontest.Start(t)
	h := imports.New(s.Backends.ForImports())
	at := s.Backends.Now().Add(-time.Hour).UTC().Truncate(time.Second)
	line := func(timestamp any) string {
		value, err := json.Marshal(timestamp)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf(`{"eventType":"view","eventName":"Seen","userToken":"ann","timestamp":%s,"filters":["color:Red"]}`+"\n", value)
	}
	one := line(at.UnixMilli()) + line(at.Unix()) + line(at.UnixMicro()) + line(at.UnixNano()) + line(fmt.Sprint(at.UnixMicro())) +
		line(at.Format("2006-01-02 15:04:05")) + line(at.In(time.FixedZone("", -3*3600)).Format("2006-01-02 15:04:05 -07")) + line(at.Format(http.TimeFormat))
	ahead := s.Backends.Now().Add(48 * time.Hour)
	none := line(0) + line("1970-01-01T00:00:00Z") + line(at.Format("2006-01-02 15:04:05 EST")) + line("yesterday") + line(ahead) + line(true)
	var refused []string
	for i, reason := range []error{event.ErrTimeNumber, event.ErrTimeRange, event.ErrTimeZone, event.ErrTimeForm, event.ErrTimeAhead, event.ErrTimeForm} {
		refused = append(refused, fmt.Sprintf(`{"line":%d,"message":%q}`, i+9, reason))
	}
	functiontest.Check(t, h, functiontest.Ask("admin", "POST", "/1/events/import?index=shoes", one+none, 200,
		`{"accepted":8,"received":0,"deleted":0,"optedOut":0,"outsideRetention":0,"refused":[`+strings.Join(refused, ",")+`]}`))
	app, err := s.Backends.Config.App(t.Context(), functiontest.App)
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.Backends.Profiles.Read(t.Context(), app, "ann", 0)
	if err != nil || p.LastEventAt != at.UnixMilli() {
		t.Errorf("the profile %+v, %v is not of %s", p, err, at)
	}
	functiontest.Check(t, profiles.New(s.Backends.ForProfiles()), functiontest.Ask("recommendation", "GET", "/1/explain/ann", "", 200, `"accepted":1`))
}

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
		functiontest.Ask("admin", "POST", path+"?index=shoes", strings.Replace(line, "Red", "Caf\xe9", 1), 200, `"refused":[{"line":1,"message":"Bad Request: invalid UTF-8 at byte 104: it is probably WINDOWS-1252, which`),
		functiontest.Ask("admin", "POST", path, "{\"exportedEvent\":{\"filters\":[{\"facet\":\"Caf\xe9\"}]}}", 200, `"refused":[{"line":1,"message":"The line of an export is not valid UTF-8: it is probably WINDOWS-1252`),
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
