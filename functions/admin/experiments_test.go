package admin_test

import (
	"strings"
	"testing"

	"github.com/affinityengine/affinity/functions/admin"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/local/functiontest"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// An experiment begins, is refused, ends and is promoted; the audit log has the changes.
func TestExperiments(t *testing.T) {
	s := functiontest.Start(t)
	functiontest.SetStrategy(t, s, strategy.Strategy{PersonalizationImpact: 20})
	functiontest.SetStrategy(t, s, strategy.Strategy{PersonalizationImpact: 80})
	h := admin.New(s.Backends.ForAdmin())
	const key, path = "settings", "/1/experiments/x"
	arms := `"arms":[{"name":"less","strategy":1,"weight":0.5},{"name":"more","strategy":2,"weight":0.5}]`
	valid := `{` + arms + `,"metric":"clicks"}`
	functiontest.Check(t, h,
		functiontest.Ask("search", "GET", path, "", 403, ""),
		functiontest.Ask("search", "PUT", path, valid, 403, ""),
		functiontest.Ask(key, "GET", "/1/experiments", "", 200, `{"experiments":[]}`),
		functiontest.Ask(key, "GET", path, "", 404, "Experiment does not exist"),
		functiontest.Ask(key, "POST", path+"/stop", "", 404, "Experiment does not exist"),
		functiontest.Ask(key, "POST", path+"/promote", `{"arm":"more"}`, 404, "Experiment does not exist"),
		functiontest.Ask(key, "POST", path+"/promote", `{"arm":""}`, 400, `want {\"arm\"`),
		functiontest.Ask(key, "PUT", path, "{", 400, "Bad Request: want"),
		functiontest.Ask(key, "PUT", path, `{"arms":[],"metric":"clicks","size":1}`, 422, "Unknown key"),
		functiontest.Ask(key, "PUT", path, `{"arms":[],"metric":"clicks"}`, 422, "0 arms: must be 2 to 10"),
		functiontest.Ask(key, "PUT", path, strings.Repeat(" ", api.MaxExperimentBody+1), 413, "Request Entity Too Large"),
		functiontest.Ask(key, "PUT", "/1/experiments/holdout", valid, 422, "choose another one"),
		functiontest.Ask(key, "PUT", path, `{`+arms+`,"metric":"clicks","startAt":"2999-01-01T00:00:00Z"}`, 200, `"state":"planned"`),
		functiontest.Ask(key, "PUT", path, `{`+arms+`,"metric":"clicks","startAt":"2999-01-01T00:00:00Z","endAt":"2998-01-01T00:00:00Z"}`, 422, "must be after startAt"),
		functiontest.Ask(key, "PUT", "/1/experiments/y", valid, 422, "stop that first"),
		functiontest.Ask(key, "POST", path+"/stop", "", 200, `"state":"ended"`),
		functiontest.Ask(key, "PUT", path, valid, 422, "give the next one another name"),
		functiontest.Ask(key, "PUT", "/1/experiments/y", `{`+arms+`,"metric":"clicks","coverage":0.5}`, 200, `"state":"running"`),
		functiontest.Ask(key, "GET", "/1/experiments", "", 200, `"coverage":0.5,"seed":"y"`),
		functiontest.Ask(key, "POST", "/1/experiments/y/promote", `{"arm":"most"}`, 422, `it has no arm \"most\"`),
		functiontest.Ask(key, "POST", "/1/experiments/y/promote", `{"arm":"less"}`, 200, `"promoted":"less"`),
		functiontest.Ask("admin", "GET", "/1/audit-log?action=experiment.set", "", 200, `\"seed\":\"y\"`),
		functiontest.Ask("admin", "GET", "/1/audit-log?action=experiment.stop", "", 200, `"subject":"x"`),
		functiontest.Ask("admin", "GET", "/1/audit-log?action=experiment.promote", "", 200, "arm less, strategy version 3"),
	)
}
