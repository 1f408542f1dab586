package profiles_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/functions/imports"
	"github.com/affinityengine/affinity/functions/profiles"
	"github.com/affinityengine/affinity/shared/local/functiontest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/queue"
)

func TestOptOuts(t *testing.T) {
	s := functiontest.Start(t)
	tasks := &tasks{}
	b := s.Backends.ForProfiles()
	b.Queue = tasks
	h := profiles.New(b)
	const (
		key  = "deleteObject"
		path = "/1/optouts/ann"
		line = `{"eventType":"view","eventName":"Seen","index":"i","userToken":"ann","timestamp":1500000000000,"filters":["color:Red"]}`
		in   = `{"userToken":"ann","optedOut":false,"eventTypes":[]`
		out  = `{"userToken":"ann","optedOut":true,"eventTypes":["view","click","conversion"],"deletedUntil":"`
		form = `Bad Request: want {\"eventTypes\":[\"view\"]} or no body`
	)
	imported := func(want string) {
		t.Helper()
		status, answer := functiontest.Call(imports.New(s.Backends.ForImports()), "admin", "POST", "/1/events/import", line)
		if status != http.StatusOK || !strings.Contains(answer, want) {
			t.Fatalf("%d %s, want %s", status, answer, want)
		}
	}
	imported(`"optedOut":0`)
	functiontest.Check(t, h,
		functiontest.Ask("", "GET", path, "", 401, "Invalid credentials"),
		functiontest.Ask("recommendation", "GET", path, "", 403, "Method not allowed with this API key"),
		functiontest.Ask("recommendation", "PUT", path, "", 403, ""),
		functiontest.Ask("recommendation", "DELETE", path, "", 403, ""),
		functiontest.Ask(key, "POST", path, "", 405, ""),
		functiontest.Ask(key, "PUT", "/1/optouts/a%20b", "", 422, "UserToken must contain only"),
		functiontest.Ask(key, "PUT", path+"?eventTypes=view", "", 422, `Unknown query option \"eventTypes\"`),
		functiontest.Ask(key, "PUT", path, "[]", 400, form),
		functiontest.Ask(key, "PUT", path, "null", 400, form),
		functiontest.Ask(key, "PUT", path, `{"eventTypes":"view"}`, 400, form),
		functiontest.Ask(key, "PUT", path, `{"eventTypes":["instantsearch"]}`, 422, "eventTypes may hold view, click and conversion"),
		functiontest.Ask(key, "PUT", path, `{"eventTypes":[""]}`, 422, "eventTypes may hold"),
		functiontest.Ask(key, "PUT", path, `{"types":["view"]}`, 422, "Unknown key: the body takes eventTypes"),
		functiontest.Ask(key, "GET", path, "", 200, in+`}`),
		functiontest.Ask(key, "DELETE", path, "", 200, in+`}`), // nothing to do
		functiontest.Ask("recommendation", "GET", "/1/profiles/ann", "", 200, ""),
	)
	if len(tasks.created) > 0 {
		t.Errorf("tasks %v, want none", tasks.created)
	}
	tasks.err = errors.New("away")
	functiontest.Check(t, h, functiontest.Ask(key, "PUT", path, "", 500, ""))
	tasks.err = nil
	functiontest.Check(t, h,
		functiontest.Ask(key, "PUT", path, "{}", 200, out),
		functiontest.Ask(key, "GET", path, "", 200, out),
	)
	if len(tasks.created) != 1 {
		t.Errorf("tasks %v, want a purge", tasks.created)
	}
	imported(`"optedOut":1`)
	const r = "recommendation"
	functiontest.Check(t, h,
		functiontest.Ask(r, "GET", "/1/profiles/ann", "", 404, "No profile"),
		functiontest.Ask(r, "GET", "/1/profiles/ann?consistency=strong", "", 404, "No profile"),
		functiontest.Ask(r, "GET", "/1/profiles/personalization/ann", "", 404, "No profile"),
		functiontest.Ask(r, "POST", "/1/profiles/batch", `{"userTokens":["ann"]}`, 200, `"profiles":[],"notFound":["ann"]`),
		functiontest.Ask(r, "GET", "/1/explain/ann", "", 200, "the user has opted out: none of their events count"),
		functiontest.Ask(key, "PUT", path, `{"eventTypes":["view","click"]}`, 200, `"optedOut":true,"eventTypes":["view","click"],"deletedUntil":"`),
		functiontest.Ask(r, "GET", "/1/explain/ann", "", 200, "which do not count: view, click"),
		functiontest.Ask(key, "PUT", path, `{"eventTypes":[]}`, 200, out),
		functiontest.Ask(key, "DELETE", path, "", 200, in+`,"deletedUntil":"`),
		functiontest.Ask(r, "GET", "/1/profiles/ann", "", 404, "No profile"),
	)
	if n := len(tasks.created); n != 4 {
		t.Errorf("%d purges, want one for each change", n)
	}
	must.Succeed(t, s.Backends.Refused.Flush(t.Context()))
	_, counts, err := s.Backends.Store.Refused.ReadRefused(t.Context(), functiontest.App, s.Backends.Now())
	if err != nil || counts["The user has opted out of this type of event"] != 1 {
		t.Errorf("refused %v, %v; want the imported event", counts, err)
	}
}

// tasks is a queue that keeps the names of its tasks.
type tasks struct {
	created []string
	err     error
}

func (q *tasks) Create(_ context.Context, t queue.Task) error {
	if q.err != nil {
		return q.err
	}
	q.created = append(q.created, t.Name)
	return nil
}
