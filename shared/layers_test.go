// Package shared holds no code. Its one test checks which package may import
// which: the table below is the map of the engine, from the ground up.
package shared_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// layers says what each package may import: packages of this module, and of the
// libraries below those that lead out of the process. A package may import only
// packages above its own line, so there are no cycles between layers either.
var layers = []struct {
	pkg, imports, libraries string
}{
	// Domain: what events, strategies and profiles are. Nothing here reaches a
	// network, not even through another package.
	{"terraform", "", ""}, // names and schemas that the deployment and the code share
	{"shared/fault", "", ""},
	{"shared/deadline", "", ""},
	{"shared/event", "fault", ""},
	{"shared/usage", "deadline", ""},
	{"shared/strategy", "event fault", ""},
	{"shared/catalog", "event fault", ""},
	{"shared/crowd", "event", ""},
	{"shared/vocabulary", "event", ""},
	{"shared/affinity", "event strategy", ""},
	{"shared/segment", "affinity event fault strategy", ""},
	{"shared/history", "affinity event", ""},
	{"shared/schema", "affinity event", ""},
	{"shared/explain", "affinity event schema strategy", ""},
	{"shared/ranking", "affinity event strategy", ""},
	{"shared/preview", "affinity ranking strategy", ""},
	{"shared/feed", "catalog fault ranking strategy", ""},
	{"shared/boost", "affinity fault", ""},
	{"shared/boost/simulate", "", ""},
	{"shared/api", "catalog event strategy", ""},
	{"shared/track", "api event fault", ""},
	{"shared/backtest", "affinity api crowd event fault ranking strategy", ""},
	{"shared/tune", "api backtest event fault strategy", ""},
	{"shared/limit", "deadline", ""},
	{"shared/config", "catalog fault limit schema strategy", ""},
	{"shared/auditlog", "config deadline limit", ""},
	{"shared/bus", "event", ""},

	// Edges: each leads to one service outside of the process.
	{"shared/admission", "", ""},
	{"shared/telemetry", "", "http"},
	{"shared/telemetry/export", "telemetry", ""},
	{"shared/telemetry/clients", "telemetry", ""},
	{"shared/auth", "config fault limit", "http"},
	{"shared/httpapi", "admission deadline fault limit telemetry", "http"},
	{"shared/client", "api fault", "http"},
	{"shared/config/kmscipher", "config", "kms http"},
	{"shared/config/configdb", "catalog config limit schema strategy", "firestore grpc"},
	{"shared/openapi/internal/tree", "", ""},
	{"shared/openapi", "httpapi openapi/internal/tree", "http"},
	{"shared/bus/pubsub", "bus config telemetry telemetry/clients", "pubsub grpc"},
	{"shared/queue", "", ""},
	{"shared/queue/taskqueue", "config queue telemetry telemetry/clients", "tasks grpc"},
	{"shared/purge", "config event queue", ""},
	{"shared/imported", "config queue", ""},
	{"shared/banded", "config queue", ""},
	{"shared/marked", "config event queue", ""},

	// Engine: it reaches Bigtable through store, and nothing else does.
	{"shared/store/rowstream", "", "bigtable grpc"},
	{"shared/store", "affinity auditlog catalog crowd deadline event history schema segment store/rowstream telemetry/clients terraform usage", "bigtable grpc"},
	{"shared/refused", "deadline store", ""},
	{"shared/sampled", "deadline schema store", ""},
	{"shared/enrich", "admission affinity bus catalog config event history schema store", ""},
	{"shared/dictionary", "affinity history", ""},
	{"shared/recent", "", ""},
	{"shared/profile", "admission affinity config deadline dictionary event history recent store", ""},
	{"shared/profile/view", "affinity api config event profile strategy", ""},
	{"shared/rerank", "admission affinity catalog config crowd deadline event fault profile ranking store strategy", ""},
	{"shared/segment/query", "admission affinity config event fault profile segment store strategy", ""},
	{"shared/feed/page", "admission catalog config deadline event feed ranking rerank store", ""},
	{"shared/export", "affinity api event fault schema store", ""},
	{"shared/apply", "admission bus config deadline enrich event history profile schema store", ""},
	{"shared/archive", "admission affinity api bus config enrich event export fault profile store", ""},
	{"shared/audit", "admission affinity config event history queue schema store strategy telemetry", ""},

	// Jobs: work over all users of an app.
	{"shared/job", "affinity config queue", ""},
	{"shared/job/jobdb", "config config/configdb job", "firestore grpc"},
	{"shared/job/recompute", "config job profile store", ""},
	{"shared/job/crowdbuild", "affinity catalog config crowd event job profile store", ""},
	{"shared/job/segmentexport", "api config fault job segment segment/query store", ""},
	{"shared/job/segmentbuild", "admission config job profile queue segment store", ""},
	{"shared/job/daterows", "catalog config event job store", ""},
	{"shared/job/backtests", "affinity api backtest catalog config event fault job profile store strategy tune", ""},
	{"shared/job/reenrich", "admission affinity banded bus config enrich event job profile queue schema store", ""},
	{"shared/job/migration", "affinity config event history job schema store", ""},
	{"shared/job/deletion", "config job store", ""},
	{"shared/job/relocation", "config job profile store", ""},

	// What functions are made of.
	{"shared/function", "deadline httpapi telemetry", "http"},
	{"shared/backend", "auditlog config config/configdb deadline function httpapi limit store telemetry telemetry/clients telemetry/export usage", "firestore grpc http"},
	{"shared/backend/jobrunner", "backend job job/jobdb queue", ""},
	{"shared/backend/jobs", "backend config enrich job job/backtests job/crowdbuild job/daterows job/migration job/recompute job/reenrich job/relocation job/segmentbuild job/segmentexport profile segment/query", ""},

	// Functions decode, call and encode. None reaches a service by itself.
	{"functions/ingest", "admission api auth backend bus bus/pubsub config/kmscipher enrich event fault function httpapi limit refused store track usage", "http"},
	{"functions/imports", "admission affinity api archive auditlog auth backend config enrich event export function httpapi imported limit profile purge queue queue/taskqueue refused store usage", "http"},
	{"functions/profiles", "admission affinity api auditlog auth backend config event explain config/kmscipher function history httpapi limit profile profile/view purge queue queue/taskqueue sampled segment store strategy", "http"},
	{"functions/rank", "admission api auditlog auth backend backend/jobrunner boost catalog config config/kmscipher event fault feed feed/page function httpapi job job/daterows limit profile queue queue/taskqueue ranking rerank store strategy", "http"},
	{"functions/strategies", "admission affinity api auditlog auth backend backend/jobrunner config event function httpapi job job/recompute limit preview profile queue queue/taskqueue ranking store strategy", "http"},
	{"functions/catalog", "admission api auditlog auth backend banded catalog config event function httpapi limit queue queue/taskqueue store", "http"},
	{"functions/recomputes", "admission affinity api audit auditlog auth backend backend/jobrunner backend/jobs backtest config crowd event export fault function history httpapi job job/backtests job/crowdbuild job/migration job/recompute job/reenrich job/segmentbuild job/segmentexport limit profile profile/view queue queue/taskqueue schema segment segment/query store strategy tune usage", "http"},
	{"functions/docs", "function httpapi openapi", "http"},
	// console answers with pages: it makes the requests of the public functions, within its process.
	{"functions/console", "api auth backend bus/pubsub catalog client enrich event fault function functions/catalog functions/imports functions/ingest functions/profiles functions/rank functions/recomputes functions/strategies httpapi job profile queue/taskqueue refused strategy usage vocabulary", "http"},
	{"functions/process", "admission apply backend bus bus/pubsub enrich function httpapi marked profile queue/taskqueue refused sampled telemetry", "http"},
	{"functions/worker", "audit backend backend/jobrunner backend/jobs banded bus/pubsub config config/configdb function httpapi imported job job/crowdbuild job/deletion job/recompute job/reenrich job/segmentbuild marked profile purge queue queue/taskqueue store", "http"},

	// Never deployed: tests and the engine on one machine. Only the scripts may
	// import these.
	{"shared/local/disk", "config", anything},
	{"shared/local/rows", "local/disk", anything},
	{"shared/local/emulator", "config local/disk local/rows", anything},
	{"shared/local/ports", "", ""},
	{"shared/local/gcloudtest", "local/ports", anything},
	{"shared/local/race", "", ""},
	{"shared/local/testmain", "local/race", ""},
	{"shared/local/seal", "config", ""},
	{"shared/local/realdata", "catalog event strategy", ""},
	{"shared/local/operator", "api auditlog client config fault httpapi job job/deletion job/relocation limit schema usage", "http"},
	{"shared/local/stack", anything, anything},
	{"shared/local/functiontest", anything, anything},
	{"shared/local/apicheck", "openapi", anything},
	{"shared/openapi/spec", "openapi/internal/tree", anything},
	{"shared/affinity/affinitytest", "affinity event strategy", ""},
	{"shared/boost/boosttest", "boost boost/simulate", ""},
	{"shared/store/storetest", "local/disk local/emulator local/rows local/testmain store", anything},
	{"shared/config/configtest", "catalog config event fault limit schema strategy", "grpc"},
	{"shared/job/jobtest", "config event job queue strategy", "grpc"},
}

// anything stands for imports that are not restricted.
const anything = "*"

// libraries lead out of the process.
var libraries = map[string]string{
	"bigtable":  "cloud.google.com/go/bigtable",
	"firestore": "cloud.google.com/go/firestore",
	"pubsub":    "cloud.google.com/go/pubsub",
	"tasks":     "cloud.google.com/go/cloudtasks",
	"grpc":      "google.golang.org/grpc",
	"http":      "net/http",
	"kms":       "google.golang.org/api/cloudkms",
}

// domain are the packages whose dependencies, too, stay within the process.
var domain = []string{
	"shared/fault", "shared/deadline", "shared/event", "shared/usage", "shared/strategy", "shared/catalog", "shared/crowd", "shared/vocabulary", "shared/affinity", "shared/segment", "shared/history", "shared/schema",
	"shared/explain", "shared/preview", "shared/ranking", "shared/feed", "shared/boost", "shared/boost/simulate", "shared/backtest", "shared/tune", "shared/api", "shared/track", "shared/limit", "shared/config", "shared/auditlog", "shared/bus",
}

// all are the packages under shared/ that every function on the data links.
const all = "admission affinity auditlog backend catalog config config/configdb crowd deadline event fault function history httpapi limit schema segment store store/rowstream strategy telemetry telemetry/clients telemetry/export usage"

// links are the packages under shared/ that a function's zip holds. A function
// is deployed again when one of them changes.
var links = map[string]string{
	"ingest":     all + " api auth bus bus/pubsub enrich refused track config/kmscipher",
	"imports":    all + " api archive auth bus enrich export imported profile purge queue queue/taskqueue refused recent dictionary",
	"profiles":   all + " api auth explain profile profile/view purge queue queue/taskqueue config/kmscipher recent dictionary sampled",
	"rank":       all + " api auth backend/jobrunner boost config/kmscipher feed feed/page job job/daterows job/jobdb profile queue queue/taskqueue ranking rerank recent dictionary",
	"strategies": all + " api auth backend/jobrunner job job/jobdb job/recompute preview profile queue queue/taskqueue ranking recent dictionary",
	"catalog":    all + " api auth banded queue queue/taskqueue",
	"docs":       "admission deadline fault function httpapi limit openapi openapi/internal/tree telemetry",
	"console":    all + " api archive audit auth backend/jobrunner backend/jobs backtest banded boost bus bus/pubsub client config/kmscipher dictionary enrich explain export feed feed/page imported job job/backtests job/crowdbuild job/daterows job/jobdb job/migration job/recompute job/reenrich job/relocation job/segmentbuild job/segmentexport preview profile profile/view purge queue queue/taskqueue ranking recent refused rerank sampled segment/query track tune vocabulary",
	"process":    all + " apply bus bus/pubsub enrich marked profile queue queue/taskqueue refused recent dictionary sampled",
	"recomputes": all + " api auth audit backend/jobrunner backend/jobs backtest banded bus enrich export job job/backtests job/crowdbuild job/daterows job/jobdb job/migration job/recompute job/reenrich job/relocation job/segmentbuild job/segmentexport profile profile/view segment/query queue queue/taskqueue ranking tune recent dictionary",
	"worker":     all + " api audit backend/jobrunner backend/jobs backtest banded bus bus/pubsub enrich imported marked job job/backtests job/crowdbuild job/daterows job/deletion job/jobdb job/migration job/recompute job/reenrich job/relocation job/segmentbuild job/segmentexport profile segment/query purge queue queue/taskqueue ranking tune recent dictionary",
}

const module = "github.com/affinityengine/affinity/"

// listed is what go list says of a package; Deps are all packages that it
// links.
type listed struct {
	ImportPath    string
	Imports, Deps []string
}

func list(t *testing.T) map[string]listed {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports,Deps", "./...")
	cmd.Dir = ".."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	packages := map[string]listed{}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatalf("decode the output of go list: %v", err)
		}
		packages[strings.TrimPrefix(p.ImportPath, module)] = p
	}
}

// library is the name of the library in the list above that a package is part
// of.
func library(path string) string {
	for name, prefix := range libraries {
		if path == prefix || strings.HasPrefix(path, prefix+"/") {
			return name
		}
	}
	return ""
}

func TestLayers(t *testing.T) {
	packages, seen := list(t), map[string]bool{}
	for _, layer := range layers {
		seen[layer.pkg] = true
		p, ok := packages[layer.pkg]
		if !ok {
			t.Errorf("%s is in the table, but does not exist", layer.pkg)
		}
		for _, path := range p.Imports {
			name, own := strings.CutPrefix(path, module)
			switch {
			case own && layer.imports != anything && !slices.Contains(strings.Fields(layer.imports), strings.TrimPrefix(name, "shared/")):
				t.Errorf("%s must not import %s", layer.pkg, name)
			case own && !seen[name]:
				t.Errorf("%s imports %s, which is above it", layer.pkg, name)
			case !own && library(path) != "" && layer.libraries != anything && !slices.Contains(strings.Fields(layer.libraries), library(path)):
				t.Errorf("%s must not import %s", layer.pkg, path)
			}
		}
	}
	for name := range packages {
		if !seen[name] && (strings.HasPrefix(name, "shared/") || strings.HasPrefix(name, "functions/")) {
			t.Errorf("%s is not in the table", name)
		}
	}
}

func TestDomainStaysInProcess(t *testing.T) {
	packages := list(t)
	for _, name := range domain {
		for _, path := range packages[name].Deps {
			if library(path) != "" || strings.HasPrefix(path, "cloud.google.com/") {
				t.Errorf("%s depends on %s", name, path)
			}
		}
	}
}

func TestFunctionsLinkWhatTheyUse(t *testing.T) {
	want, got := map[string][]string{}, map[string][]string{}
	for function, linked := range links {
		want[function] = slices.Sorted(slices.Values(strings.Fields(linked)))
	}
	for name, p := range list(t) {
		function, ok := strings.CutPrefix(name, "functions/")
		if !ok {
			continue
		}
		var linked []string
		for _, path := range p.Deps {
			if shared, ok := strings.CutPrefix(path, module+"shared/"); ok {
				linked = append(linked, shared)
			}
		}
		got[function] = slices.Sorted(slices.Values(linked))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("packages under shared/ (-allowed +linked):\n%s", diff)
	}
}

// Code that is only for one machine is in no function.
func TestLocalIsNotDeployed(t *testing.T) {
	for name, p := range list(t) {
		if strings.HasPrefix(name, "scripts/") || strings.HasPrefix(name, "shared/local/") || name == "shared/store/storetest" {
			continue
		}
		for _, path := range p.Deps {
			if strings.HasPrefix(path, module+"shared/local/") || strings.HasPrefix(path, module+"scripts/") {
				t.Errorf("%s depends on %s", name, strings.TrimPrefix(path, module))
			}
		}
	}
}
