package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"google.golang.org/api/run/v2"

	"github.com/affinityengine/affinity/shared/local/must"
)

var ingest = image{
	uri:    "europe-west1-docker.pkg.dev/my-project/affinity/ingest:abc",
	source: "gs://my-project-affinity-source/ingest-abc.zip", target: "Ingest",
	base:      "europe-west1-docker.pkg.dev/serverless-runtimes/google-24/runtimes/go126",
	account:   "projects/my-project/serviceAccounts/fn-build@my-project.iam.gserviceaccount.com",
	variables: map[string]string{"GOFLAGS": "-tags=disable_grpc_modules"},
}

// answers are what Google says to requests, by method and path. Each request takes the first answer that is left.
func answers(t *testing.T, by map[string][]string) (g *google, bodies map[string]string) {
	t.Helper()
	bodies = map[string]string{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := r.Method + " " + r.URL.Path
		list := by[key]
		if len(list) == 0 {
			t.Errorf("unexpected request %s", key)
			w.WriteHeader(http.StatusNotImplemented)
			return
		}
		var body strings.Builder
		if err := r.Write(&body); err != nil {
			t.Error(err)
		}
		_, bodies[key], _ = strings.Cut(body.String(), "\r\n\r\n")
		if by[key] = list[1:]; list[0] == "" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_, _ = w.Write([]byte(list[0]))
	}))
	t.Cleanup(s.Close)
	t.Setenv("GOOGLE_OAUTH_ACCESS_TOKEN", "token")
	for _, e := range [][2]string{{"ARTIFACT_REGISTRY", "v1/"}, {"CLOUD_RUN_V2", "v2/"}, {"CLOUD_BUILD", "v1/"}} {
		t.Setenv("GOOGLE_"+e[0]+"_CUSTOM_ENDPOINT", s.URL+"/"+e[1])
	}
	g, err := dial(t.Context())
	must.Succeed(t, err)
	g.every, g.tries = time.Millisecond, 2
	return g, bodies
}

const (
	tag    = "GET /v1/projects/my-project/locations/europe-west1/repositories/affinity/packages/ingest/tags/abc"
	submit = "POST /v2/projects/my-project/locations/europe-west1/builds:submit"
	ask    = "GET /v1/operations/build/my-project/1"
)

func TestAnImageIsBuiltAsAFunction(t *testing.T) {
	g, bodies := answers(t, map[string][]string{
		tag:    {""},
		submit: {"", `{"buildOperation": {"name": "operations/build/my-project/1"}}`}, // the account is new at first
		ask:    {`{"done": false}`, `{"done": true, "response": {}}`},
	})
	must.Succeed(t, g.provide(t.Context(), ingest))
	var got run.GoogleCloudRunV2SubmitBuildRequest
	must.Succeed(t, json.Unmarshal([]byte(bodies[submit]), &got))
	if got.ImageUri != ingest.uri || got.ServiceAccount != ingest.account || got.StorageSource.Bucket != "my-project-affinity-source" ||
		got.StorageSource.Object != "ingest-abc.zip" {
		t.Errorf("the build is %s", bodies[submit])
	}
	if b := got.BuildpackBuild; b.FunctionTarget != "Ingest" || b.BaseImage != ingest.base || !b.EnableAutomaticUpdates ||
		b.EnvironmentVariables["GOFLAGS"] != "-tags=disable_grpc_modules" {
		t.Errorf("the build is %s", bodies[submit])
	}
}

// An earlier zip needs no build as long as the repository has its image.
func TestAnImageThatIsThereIsNotBuilt(t *testing.T) {
	g, _ := answers(t, map[string][]string{tag: {`{"name": "abc"}`}})
	must.Succeed(t, g.provide(t.Context(), ingest))
}

func TestFaultsOfABuild(t *testing.T) {
	submitted := []string{`{"buildOperation": {"name": "operations/build/my-project/1"}}`}
	for want, by := range map[string]map[string][]string{
		"look for the image":                            {tag: {`{`}},
		"submit the build":                              {tag: {""}, submit: {"", ""}},
		"ask for the build":                             {tag: {""}, submit: submitted, ask: {""}},
		"failed: no Go file; its log is in Cloud Build": {tag: {""}, submit: submitted, ask: {`{"done": true, "error": {"message": "no Go file"}}`}},
	} {
		g, _ := answers(t, by)
		if err := g.provide(t.Context(), ingest); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	for want, wrong := range map[string]func(*image){
		"--uri ingest: must be":     func(i *image) { i.uri = "ingest" },
		"--source a/b: must be gs:": func(i *image) { i.source = "a/b" },
		"--source gs://a: must be":  func(i *image) { i.source = "gs://a" },
	} {
		g, _ := answers(t, nil)
		i := ingest
		wrong(&i)
		if err := g.provide(t.Context(), i); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
