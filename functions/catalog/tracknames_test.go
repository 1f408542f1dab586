package catalog_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/functions/catalog"
	"github.com/affinityengine/affinity/shared/app/auditlog"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/functiontest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/web/auth"
)

// A change names the names that it concerns, and is recorded. What it breaks is not.
func TestTrackNames(t *testing.T) {
	s := functiontest.Start(t)
	const path = "/1/track-names"
	var many []string
	for i := range 200 {
		many = append(many, fmt.Sprintf(`"Name %d":"view"`, i))
	}
	must.Succeed(t, s.Backends.Config.PutKey(t.Context(), functiontest.App,
		config.Key{Hash: auth.Hash("one"), ACL: []string{auth.Settings}, Indexes: []string{"shoes"}}))
	functiontest.Check(t, catalog.New(s.Backends.ForCatalog()),
		functiontest.Ask("", "GET", path, "", 401, "Invalid credentials"),
		functiontest.Ask("search", "GET", path, "", 403, "Method not allowed with this API key"),
		functiontest.Ask("recommendation", "PUT", path, `{"names":{}}`, 403, "Method not allowed with this API key"),
		functiontest.Ask("one", "PUT", path, `{"names":{}}`, 403, "restricted to indexes"),
		functiontest.Ask("settings", "GET", path, "", 200, `{"names":{}}`),
		functiontest.Ask("settings", "GET", path+"?name=A", "", 422, "Unknown query option"),
		functiontest.Ask("settings", "POST", path, `{"names":{}}`, 405, "Method Not Allowed"),
		functiontest.Ask("settings", "PUT", path, `{`, 400, "the body is not valid JSON"),
		functiontest.Ask("settings", "PUT", path, ``, 400, "the body is not valid JSON"),
		functiontest.Ask("settings", "PUT", path, `{}`, 422, `The body must be {\"names\":`),
		functiontest.Ask("settings", "PUT", path, `{"names":null}`, 422, `The body must be {\"names\":`),
		functiontest.Ask("settings", "PUT", path, `{"names":["A"]}`, 422, `The body must be {\"names\":`),
		functiontest.Ask("settings", "PUT", path, `{"names":{"A":1}}`, 422, `The body must be {\"names\":`),
		functiontest.Ask("settings", "PUT", path, `{"names":{},"name":"A"}`, 422, `The body must be {\"names\":`),
		functiontest.Ask("settings", "PUT", path, `{"names":{"A":"buy"}}`, 422, `names: the type of \"A\" must be view, click or conversion, got \"buy\"`),
		functiontest.Ask("settings", "PUT", path, `{"names":{" A":"view"}}`, 422, `names: \" A\" must have 1 to 64 visible ASCII characters, with single spaces between words`),
		functiontest.Ask("settings", "PUT", path, `{"names":{"`+strings.Repeat("n", 65)+`":"view"}}`, 422, "must have 1 to 64 visible ASCII characters"),
		functiontest.Ask("settings", "PUT", path, `{"names":{"`+strings.Repeat("n", 100_000)+`":"view"}}`, 413, "Request Entity Too Large"),
		functiontest.Ask("settings", "PUT", path, `{"names":{"Recipe Saved":"conversion","Old":"view"}}`, 200, `{"names":{"Old":"view","Recipe Saved":"conversion"}}`),
		functiontest.Ask("settings", "PUT", path, `{"names":{"Recipe Opened":"view","Old":null,"Never":null}}`, 200, `{"names":{"Recipe Opened":"view","Recipe Saved":"conversion"}}`),
		functiontest.Ask("settings", "PUT", path, `{"names":{`+strings.Join(many, ",")+`}}`, 422, "names: an app may give 200 names a type, and these are 202"),
		functiontest.Ask("settings", "GET", path, "", 200, `{"names":{"Recipe Opened":"view","Recipe Saved":"conversion"}}`),
	)
	entries, _, err := auditlog.Read(t.Context(), s.Backends.Store.AuditLog, functiontest.App, auditlog.Query{Limit: 10})
	must.Succeed(t, err)
	var details []string
	for _, e := range entries {
		details = append(details, fmt.Sprintf("%s %s: %.60s", e.Action, e.Outcome, e.Detail))
	}
	want := []string{"settings.set failed: trackNames Name 0=view, Name 1=view, Name 10=view, Name 100=",
		"settings.set done: trackNames Never=, Old=, Recipe Opened=view", "settings.set done: trackNames Old=view, Recipe Saved=conversion"}
	if strings.Join(details, "\n") != strings.Join(want, "\n") {
		t.Errorf("the audit log says\n%s\nwant\n%s", strings.Join(details, "\n"), strings.Join(want, "\n"))
	}
}
