package imports_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/functions/catalog"
	"github.com/affinityengine/affinity/functions/imports"
	"github.com/affinityengine/affinity/functions/profiles"
	"github.com/affinityengine/affinity/shared/admission"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/intake/enrich"
	"github.com/affinityengine/affinity/shared/local/functiontest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/store"
	"github.com/affinityengine/affinity/shared/web/auth"
)

// The engine reads the times of history in all forms, and replaces none by its clock.
func TestTimesOfHistory(t *testing.T) {
	s := functiontest.Start(t)
	h := imports.New(s.Backends.ForImports())
	at := s.Backends.Now().Add(-time.Hour).UTC().Truncate(time.Second)
	line := func(timestamp any) string {
		value, err := json.Marshal(timestamp)
		must.Succeed(t, err)
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
	must.Succeed(t, err)
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
	must.Succeed(t, err)
	p, err := s.Backends.Profiles.Read(t.Context(), app, "ann", 0)
	if err != nil || !p.Known || p.LastEventAt != 1500000000000 {
		t.Errorf("the profile %+v, %v does not count the event", p, err)
	}
}

// The answer names the objects that the catalog does not hold, by index, and finds one in
// another index that the key may read.
func TestUnknownObjectsAreNamed(t *testing.T) {
	s := functiontest.Start(t)
	h, objects := imports.New(s.Backends.ForImports()), catalog.New(s.Backends.ForCatalog())
	must.Succeed(t, s.Backends.Config.PutKey(t.Context(), functiontest.App, config.Key{Hash: auth.Hash("of products"), ACL: auth.All, Indexes: []string{"products"}}))
	for index, id := range map[string]string{"shop": "s2", "products": "known"} {
		functiontest.Do(t, objects, "addObject", "POST", "/1/indexes/"+index+"/batch", `{"requests":[{"action":"addObject","body":{"objectID":"`+id+`","color":"Red"}}]}`)
	}
	line := func(more string) string {
		return `{"eventType":"view","eventName":"Seen","userToken":"ann","timestamp":1500000000000,` + more + "}\n"
	}
	three := line(`"objectIDs":["s1"]`) + line(`"objectIDs":["known","s2","s1"]`) + line(`"objectIDs":["known"]`) + line(`"filters":["color:Red"]`) + line(`"objectIDs":["s1"],"positions":[1]`)
	other := line(`"index":"shop","objectIDs":["s2"]`) + line(`"index":"shop","objectIDs":["known"]`)
	const path = "/1/events/import?index=products"
	functiontest.Check(t, h,
		functiontest.Ask("admin", "POST", path, line(`"objectIDs":["known"]`), 200, `"outsideRetention":0,"refused":[]}`),
		functiontest.Ask("admin", "POST", path, three+other, 200, `"unknownObjects":[{"index":"products","events":2,"objectIDs":["s1","s2"],"elsewhere":{"objectID":"s2","index":"shop"}},`+
			`{"index":"shop","events":1,"objectIDs":["known"],"elsewhere":{"objectID":"known","index":"products"}}],"refused":[`),
		functiontest.Ask("of products", "POST", path, three, 200, `"unknownObjects":[{"index":"products","events":2,"objectIDs":["s1","s2"]}],`),
	)
	var many, indexes strings.Builder
	for i := range 2 * api.MaxUnknownObjects {
		many.WriteString(line(fmt.Sprintf(`"objectIDs":["m%d"]`, i%(api.MaxUnknownObjects+1))))
		indexes.WriteString(line(fmt.Sprintf(`"index":"i%d","objectIDs":["m"]`, i)))
	}
	got := functiontest.Answer[api.ImportAnswer](t, h, "admin", "POST", path, many.String())
	if u := got.UnknownObjects[0]; u.Events != 2*api.MaxUnknownObjects || len(u.ObjectIDs) != api.MaxUnknownObjects || !u.More {
		t.Errorf("%d events name %d objects, more: %t", u.Events, len(u.ObjectIDs), u.More)
	}
	got = functiontest.Answer[api.ImportAnswer](t, h, "admin", "POST", path, indexes.String())
	if n := len(got.UnknownObjects); n != api.MaxUnknownIndexes {
		t.Errorf("%d indexes are named", n)
	}
}

// crowded is a catalog of objects with very many filters. It calls read before each
// reading.
type crowded struct{ read func(context.Context) error }

func (c crowded) ScanFilters(ctx context.Context, _ string, refs []store.ObjectRef, fn func(store.ObjectRef, store.ObjectFilters) error) error {
	if err := c.read(ctx); err != nil {
		return err
	}
	var f store.ObjectFilters
	for i := range 1000 {
		f.Filters = append(f.Filters, event.Filter{Facet: "f", Value: fmt.Sprintf("%063d", i)})
	}
	for _, ref := range refs {
		if err := fn(ref, f); err != nil {
			return err
		}
	}
	return nil
}

func (crowded) ScanRecords(context.Context, string, []store.ObjectRef, func(store.ObjectRef, []byte) error) error {
	return errors.New("no object is stale")
}

// An import in two parts has taken its memory when it writes the first. So it ends
// although others then fill the process. Sent again, its events without a timestamp
// would count twice.
func TestPartlyWrittenImportEnds(t *testing.T) {
	const lines = 80 // cost 9 MB
	s := functiontest.Start(t)
	b := s.Backends.ForImports()
	app, err := b.Config.App(t.Context(), functiontest.App)
	must.Succeed(t, err)
	written := func(ctx context.Context) (n int, err error) {
		err = b.Store.Events.Log(app.ID, app.Log).Read(ctx, []store.UserRange{{User: "ann", To: history.End}}, func(string, store.LogRow) error { n++; return nil })
		return n, err
	}
	other, leave := admission.Process().EnterFor(t.Context(), 0)
	defer leave()
	full := false
	b.Enricher = enrich.New(crowded{func(ctx context.Context) error {
		n, err := written(ctx)
		if n > 0 && !full {
			full = true
			for range 2 { // the first bytes leave a quarter free
				for size := int64(1) << 39; size > 0; size /= 2 {
					_ = admission.Take(other, size)
				}
			}
		}
		return err
	}}, b.CachedConfig)
	line := `{"eventType":"view","eventName":"Seen","index":"i","userToken":"ann","objectIDs":["1"]}` + "\n"
	functiontest.Check(t, imports.New(b), functiontest.Ask("admin", "POST", "/1/events/import", strings.Repeat(line, lines), 200, fmt.Sprintf(`{"accepted":%d,`, lines)))
	if n, err := written(t.Context()); n != lines || !full || err != nil {
		t.Errorf("%d events in the log, %v, the process was full: %v; want %d", n, err, full, lines)
	}
}
