package profiles_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/functions/admin"
	"github.com/affinityengine/affinity/functions/imports"
	"github.com/affinityengine/affinity/functions/profiles"
	"github.com/affinityengine/affinity/functions/worker"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/job/tasks/purge"
	"github.com/affinityengine/affinity/shared/local/functiontest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/queue"
	"github.com/affinityengine/affinity/shared/score/consent"
	"github.com/affinityengine/affinity/shared/web/auth"
)

func setPurposes(t *testing.T, s *stack.Stack, purposes ...consent.Purpose) {
	t.Helper()
	_, err := s.Backends.CachedConfig.SetPurposes(t.Context(), functiontest.App, purposes)
	must.Succeed(t, err)
}

var (
	adsPurpose      = consent.Purpose{Name: "ads", Surfaces: []consent.Surface{consent.Export}}
	personalPurpose = consent.Purpose{Name: "personal", Default: true, Types: []event.Type{event.View},
		Surfaces: []consent.Surface{consent.Rank}}
)

func TestConsents(t *testing.T) {
	s := functiontest.Start(t)
	tasks := &tasks{}
	b := s.Backends.ForProfiles()
	b.Queue = tasks
	h := profiles.New(b)
	const (
		key     = "deleteObject"
		path    = "/1/consents/ann"
		initial = `{"userToken":"ann","purposes":[{"name":"ads","granted":false,"asked":false},{"name":"personal","granted":true,"asked":false}],`
		form    = `Bad Request: want {\"PURPOSE\":true} or false, of one purpose or more`
		none    = "app shop has no purposes: affinity app purposes"
		words   = `"words":"Answers leave out at once`
	)
	functiontest.Check(t, h,
		functiontest.Ask(key, "GET", path, "", 422, none),
		functiontest.Ask(key, "PUT", path, `{"ads":true}`, 422, none),
		functiontest.Ask(key, "DELETE", path, "", 422, none),
	)
	setPurposes(t, s, adsPurpose, personalPurpose)
	functiontest.Check(t, h,
		functiontest.Ask("", "GET", path, "", 401, "Invalid credentials"),
		functiontest.Ask("recommendation", "GET", path, "", 403, "Method not allowed with this API key"),
		functiontest.Ask("recommendation", "PUT", path, `{"ads":true}`, 403, ""),
		functiontest.Ask("search", "DELETE", path, "", 403, ""),
		functiontest.Ask(key, "POST", path, "", 405, ""),
		functiontest.Ask(key, "GET", "/1/consents/a%20b", "", 422, "UserToken must contain only"),
		functiontest.Ask(key, "PUT", path+"?ads=true", "", 422, `Unknown query option \"ads\"`),
		functiontest.Ask(key, "PUT", path, "", 400, form),
		functiontest.Ask(key, "PUT", path, "[]", 400, form),
		functiontest.Ask(key, "PUT", path, "{}", 400, form),
		functiontest.Ask(key, "PUT", path, `{"ads":true,"ads":false}`, 400, form),
		functiontest.Ask(key, "PUT", path, `{"mail":true}`, 422, `app shop has no purpose \"mail\": its purposes are ads, personal`),
		functiontest.Ask(key, "PUT", path, `{"ads":"yes"}`, 422, "ads must be true, granted, or false, withdrawn"),
		functiontest.Ask(key, "PUT", path, `{"ads":null}`, 422, "ads must be true"),
		functiontest.Ask(key, "GET", path, "", 200, initial+`"surfaces":{"boosts":"none","export":"none","feeds":"none","rank":"all","recommend":"none","segments":"none"}}`),
		functiontest.Ask(key, "DELETE", path, "", 200, initial),
	)
	if len(tasks.created) > 0 {
		t.Errorf("tasks %v, want none: nothing has changed", tasks.created)
	}
	tasks.err = errors.New("away")
	functiontest.Check(t, h, functiontest.Ask(key, "PUT", path, `{"personal":false}`, 500, ""))
	tasks.err = nil
	const withdrawn = `{"name":"ads","granted":false,"asked":false},{"name":"personal","granted":false,"asked":true,"since":"`
	functiontest.Check(t, h,
		functiontest.Ask(key, "PUT", path, `{"personal":false}`, 200, withdrawn), // the client asks again
		functiontest.Ask(key, "PUT", path, `{"personal":false}`, 200, words),
		functiontest.Ask(key, "GET", path, "", 200, withdrawn),
		functiontest.Ask(key, "GET", path, "", 200, `"rank":"none"`),
	)
	if len(tasks.created) != 2 {
		t.Errorf("tasks %v, want a purge for each request", tasks.created)
	}
	if _, answer := functiontest.Call(h, key, "GET", path, ""); strings.Contains(answer, "words") {
		t.Errorf("a request that changes nothing is answered %s", answer)
	}
	functiontest.Check(t, h,
		functiontest.Ask(key, "PUT", path, `{"ads":true,"personal":true}`, 200, `"rank":"part"`),
		functiontest.Ask(key, "DELETE", path, "", 200, `{"name":"ads","granted":false,"asked":false,"since":"`),
		functiontest.Ask(key, "GET", path, "", 200, `{"name":"personal","granted":true,"asked":false,"since":"`),
	)
}

// A secured key of a user reads and changes what that user has said, and nobody else's.
func TestConsentsUnderSecuredKey(t *testing.T) {
	s := functiontest.Start(t)
	setPurposes(t, s, adsPurpose, personalPurpose)
	page := config.Key{Hash: auth.Hash("page"), ACL: []string{auth.Search}, Indexes: []string{"i"}}
	must.Succeed(t, config.AddParent(t.Context(), s.Backends.Config, s.Backends.Cipher, functiontest.App, page, "page"))
	ann := client.SecuredKey("page", client.Secured{UserToken: "ann"})
	h := profiles.New(s.Backends.ForProfiles())
	functiontest.Check(t, h,
		functiontest.Ask(ann, "GET", "/1/consents/ann", "", 200, `"userToken":"ann"`),
		functiontest.Ask(ann, "PUT", "/1/consents/ann", `{"ads":true}`, 200, `{"name":"ads","granted":true,"asked":true,`),
		functiontest.Ask(ann, "DELETE", "/1/consents/ann", "", 200, `{"name":"ads","granted":false,"asked":false,`),
		functiontest.Ask(ann, "GET", "/1/consents/bob", "", 403, auth.ErrUser.Error()),
		functiontest.Ask(ann, "PUT", "/1/consents/bob", `{"ads":true}`, 403, auth.ErrUser.Error()),
		functiontest.Ask(ann, "DELETE", "/1/consents/bob", "", 403, auth.ErrUser.Error()),
		functiontest.Ask("page", "PUT", "/1/consents/ann", `{"ads":true}`, 403, "Method not allowed with this API key"),
		functiontest.Ask("deleteObject", "GET", "/1/consents/bob", "", 200, `{"name":"ads","granted":false,"asked":false}`),
	)
}

// A withdrawal leaves nothing in the log of what counts for no purpose, and the audit log says what was said.
func TestWithdrawalIsPurged(t *testing.T) {
	s := functiontest.Start(t)
	setPurposes(t, s, personalPurpose)
	kept := &bodies{}
	b := s.Backends.ForProfiles()
	b.Queue = kept
	const line = `{"eventType":"view","eventName":"Seen","index":"i","userToken":"ann","timestamp":1500000000000,"filters":["color:Red"]}`
	functiontest.Do(t, imports.New(s.Backends.ForImports()), "admin", "POST", "/1/events/import", line)
	h := profiles.New(b)
	functiontest.Check(t, h,
		functiontest.Ask("recommendation", "GET", "/1/profiles/ann", "", 200, ""),
		functiontest.Ask("deleteObject", "PUT", "/1/consents/ann", `{"personal":false}`, 200, ""),
		functiontest.Ask("recommendation", "GET", "/1/profiles/ann", "", 404, "No profile"),
	)
	if len(kept.tasks) != 1 {
		t.Fatalf("tasks %v, want a purge", kept.tasks)
	}
	w := worker.New(s.Backends.ForWorker())
	for _, want := range []string{`{"purged":1}`, `{"purged":0}`} { // the task is delivered twice
		functiontest.Check(t, w, functiontest.Ask("", "POST", purge.Kind.Path, string(kept.tasks[0].Body), 200, want))
	}
	functiontest.Check(t, h, functiontest.Ask("deleteObject", "DELETE", "/1/consents/ann", "", 200, ""))
	status, answer := functiontest.Call(admin.New(s.Backends.ForAdmin()), "admin", "GET", "/1/audit-log?userToken=ann", "")
	var log api.AuditLog
	if err := json.Unmarshal([]byte(answer), &log); err != nil || status != http.StatusOK || len(log.Entries) != 2 {
		t.Fatalf("%d %s, %v", status, answer, err)
	}
	if e := log.Entries; e[0].Action != "consent.forget" || e[1].Action != "consent.set" || e[1].Detail != "personal withdrawn" {
		t.Errorf("the audit log has %+v", e)
	}
}

// bodies is a queue that keeps its tasks.
type bodies struct{ tasks []queue.Task }

func (q *bodies) Create(_ context.Context, t queue.Task) error {
	q.tasks = append(q.tasks, t)
	return nil
}
