// Package shared holds no code. Its one test checks which package may import
// which: the table below is the map of the engine, from the ground up.
package shared_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// layers says what each package may import: packages of this module, and of the
// libraries below those that lead out of the process. A package may import only
// packages above its own line, so there are no cycles between layers either.
var layers = []layer{
	// Ground: what a request may say, how long it may last, what it may hold, what it reports;
	// and the names and schemas that the deployment and the code share.
	{"terraform", "", ""}, // names and schemas that the deployment and the code share
	{"shared/fault", "", ""},
	{"shared/deadline", "", ""},
	{"shared/admission", "", ""},
	{"shared/cache", "deadline", ""},
	{"shared/wire", "", ""},
	{"shared/telemetry", "", "http"},
	{"shared/telemetry/export", "telemetry", ""},

	// Domain: what events, objects, strategies, profiles, orders and apps are. Only the parts that
	// domain does not list below reach a network.
	{"shared/event", "fault", ""},
	{"shared/event/bus", "event", ""},
	{"shared/catalog", "event fault", ""},
	{"shared/catalog/vocabulary", "event", ""},
	{"shared/catalog/where", "event fault", ""},
	{"shared/score/strategy", "event fault", ""},
	{"shared/score/affinity", "event score/strategy wire", ""},
	{"shared/score/schema", "score/affinity event", ""},
	{"shared/score/consent", "score/affinity event fault", ""},
	{"shared/score/experiment", "fault", ""},
	{"shared/score/history", "score/affinity event score/schema wire", ""},
	{"shared/score/explain", "score/affinity event score/schema score/strategy", ""},
	{"shared/api", "catalog event score/strategy", ""},
	{"shared/api/track", "api event fault", ""},
	{"shared/api/client", "api fault", "http"},
	{"shared/api/checkup", "api event", ""},
	{"shared/rank/crowd", "event wire", ""},
	{"shared/rank/segment", "score/affinity event fault score/strategy wire", ""},
	{"shared/rank/ranking", "score/affinity event score/strategy", ""},
	{"shared/rank/recommend", "event rank/crowd rank/ranking", ""},
	{"shared/rank/feed", "catalog fault rank/ranking score/strategy wire", ""},
	{"shared/rank/boost", "score/affinity fault", ""},
	{"shared/app/usage", "deadline cache event", ""},
	{"shared/app/limit", "deadline cache", ""},
	{"shared/app/documents", "", ""},
	{"shared/app/documents/documentdb", "app/documents", "firestore grpc"},
	{"shared/app/config", "app/documents score/experiment score/consent catalog fault app/limit score/schema score/strategy cache", ""},
	{"shared/app/auditlog", "score/experiment score/consent app/config deadline app/limit score/schema", ""},
	{"shared/app/config/kmscipher", "app/config", "kms http"},
	{"shared/judge/price", "", ""},
	{"shared/judge/lift", "api", ""},
	{"shared/judge/preview", "score/affinity judge/price rank/ranking score/strategy", ""},
	{"shared/judge/backtest", "score/affinity api rank/crowd event fault rank/ranking score/strategy", ""},
	{"shared/judge/rankers", "judge/backtest", ""},
	{"shared/judge/suggest", "api event fault score/strategy", ""},
	{"shared/judge/tune", "api judge/backtest fault judge/suggest score/strategy", ""},

	// Engine: it reaches Bigtable through store, and nothing else does. Edges lie between: queue
	// leads to Pub/Sub and Cloud Tasks, web to HTTP.
	{"shared/store/rowstream", "", "bigtable grpc"},
	{"shared/store", "score/affinity catalog deadline event score/experiment score/schema rank/segment store/rowstream terraform app/usage wire", "bigtable grpc"},
	{"shared/queue/pubsub", "event/bus app/config telemetry", "pubsub grpc"},
	{"shared/queue", "", ""},
	{"shared/queue/taskqueue", "app/config queue telemetry", "tasks grpc"},
	{"shared/web/auth", "app/config fault app/limit", "http"},
	{"shared/web/httpapi", "admission deadline fault app/limit telemetry", "http"},
	{"shared/web/clientscript", "web/httpapi", "http"},
	{"shared/web/markdown", "", ""},
	{"shared/web/openapi/internal/tree", "", ""},
	{"shared/web/openapi", "web/markdown web/openapi/internal/tree", ""},
	{"shared/web/openapi/spec", "web/openapi/internal/tree", anything},
	{"shared/profile/dictionary", "score/affinity score/history cache", ""},
	{"shared/profile/links", "score/affinity event wire", ""},
	{"shared/profile/location", "app/config cache store", ""},
	{"shared/profile", "admission score/affinity score/experiment app/config cache score/consent deadline profile/dictionary event score/history profile/links profile/location store wire", ""},
	{"shared/profile/view", "score/affinity api app/config event profile profile/links score/strategy", ""},
	{"shared/intake/refused", "store app/usage cache", ""},
	{"shared/intake/recent", "score/consent score/schema store cache", ""},
	{"shared/intake/enrich", "admission score/affinity score/consent event/bus catalog app/config event score/schema store cache", ""},
	{"shared/intake/warehouse", "score/affinity score/consent event score/schema", ""},
	{"shared/intake/warehouse/outbox", "score/affinity score/consent app/config intake/warehouse store", ""},
	{"shared/intake/export", "score/affinity score/consent api intake/enrich event fault profile/links score/schema store", ""},
	{"shared/intake/apply", "admission score/consent event/bus app/config deadline intake/enrich event profile score/schema store", ""},
	{"shared/intake/archive", "admission score/affinity api event/bus app/config intake/enrich event intake/export fault profile store", ""},
	{"shared/serve/ranker", "score/experiment catalog/where rank/recommend score/consent admission score/affinity catalog app/config rank/crowd deadline event fault profile rank/ranking store score/strategy cache", ""},
	{"shared/serve/query", "score/experiment score/consent cache admission score/affinity app/config event fault profile rank/segment store score/strategy", ""},
	{"shared/serve/page", "score/experiment score/consent admission catalog app/config event rank/feed rank/ranking serve/ranker store cache", ""},
	{"shared/job/tasks/purge", "app/config event queue", ""},
	{"shared/job/tasks/afterimport", "app/config queue", ""},
	{"shared/job/tasks/bands", "app/config queue", ""},
	{"shared/job/tasks/night", "app/config queue", ""},
	{"shared/job/tasks/relocate", "app/config event queue", ""},
	{"shared/job/tasks/refresh", "app/config event queue", ""},
	{"shared/job/audit", "score/consent admission score/affinity app/config event score/history profile/links queue score/schema store score/strategy telemetry wire", ""},
	{"shared/job", "app/documents score/affinity app/config queue", ""},
	{"shared/job/kinds/recompute", "app/config job profile store", ""},
	{"shared/job/kinds/crowdbuild", "event score/consent score/affinity catalog app/config rank/crowd job profile store wire", ""},
	{"shared/job/kinds/segmentexport", "score/consent api app/config fault job rank/segment serve/query store", ""},
	{"shared/job/kinds/segmentbuild", "score/consent admission app/config job profile queue rank/segment store wire", ""},
	{"shared/job/kinds/daterows", "catalog app/config event job store", ""},
	{"shared/job/kinds/backtests", "score/affinity api judge/backtest catalog app/config event fault job profile store score/strategy judge/tune", ""},
	{"shared/job/kinds/residents", "app/config job profile store", ""},
	{"shared/job/kinds/linkpreview", "score/affinity api app/config fault score/history job judge/preview profile profile/links profile/view serve/ranker score/schema store", ""},
	{"shared/job/kinds/reports", "score/affinity score/experiment app/config event fault job judge/lift profile score/schema store", ""},
	{"shared/job/kinds/reenrich", "admission job/tasks/bands event/bus app/config intake/enrich event job profile queue score/schema store", ""},
	{"shared/job/kinds/migration", "score/affinity app/config score/history job score/schema store", ""},
	{"shared/job/kinds/deletion", "app/config job store", ""},
	{"shared/job/kinds/move", "app/config job profile store", ""},

	// What functions are made of.
	{"shared/backend/function", "deadline web/httpapi telemetry", "http"},
	{"shared/backend", "app/documents app/config app/documents/documentdb deadline backend/function web/httpapi app/limit store telemetry telemetry/export app/usage profile/location", "firestore grpc"},
	{"shared/backend/jobrunner", "backend job queue", ""},
	{"shared/backend/answers", "api app/auditlog backend job serve/query web/httpapi", "http"},
	{"shared/backend/segmentjobs", "app/config backend job job/kinds/segmentbuild job/kinds/segmentexport profile serve/query", ""},
	{"shared/backend/jobs", "backend backend/jobrunner backend/segmentjobs app/config intake/enrich job job/kinds/backtests job/kinds/crowdbuild job/kinds/daterows job/kinds/linkpreview job/kinds/migration job/kinds/recompute job/kinds/reenrich job/kinds/reports job/kinds/residents job/kinds/move profile queue", ""},

	// Functions decode, call and encode. None reaches a service by itself.
	{"functions/ingest", "app/config admission api web/auth backend cache event/bus queue/pubsub app/config/kmscipher intake/enrich event fault backend/function web/httpapi app/limit intake/refused store api/track app/usage", "http"},
	{"functions/imports", "admission score/affinity score/consent api intake/archive app/auditlog web/auth backend cache app/config intake/enrich event event/bus intake/export backend/function web/httpapi job/tasks/afterimport app/limit profile profile/links job/tasks/purge queue queue/pubsub queue/taskqueue intake/refused intake/warehouse/outbox store app/usage", "http"},
	{"functions/profiles", "score/consent admission score/affinity api app/auditlog web/auth backend app/config event score/explain app/config/kmscipher backend/function score/history web/httpapi app/limit profile profile/links profile/view job/tasks/purge job/tasks/relocate queue queue/taskqueue intake/recent rank/segment store score/strategy cache", "http"},
	{"functions/rank", "score/experiment catalog/where rank/recommend score/consent admission api app/auditlog web/auth backend backend/jobrunner rank/boost catalog app/config app/config/kmscipher event fault rank/feed serve/page backend/function web/httpapi job job/kinds/daterows app/limit profile queue queue/taskqueue rank/ranking serve/ranker score/strategy", "http"},
	{"functions/strategies", "admission score/affinity api app/auditlog web/auth backend backend/jobrunner app/config event backend/function web/httpapi job job/kinds/recompute app/limit judge/preview judge/suggest profile queue queue/taskqueue serve/ranker store score/strategy app/usage", "http"},
	{"functions/catalog", "admission api app/auditlog web/auth backend job/tasks/afterimport job/tasks/bands catalog app/config event backend/function web/httpapi app/limit queue queue/taskqueue store", "http"},
	{"functions/admin", "score/experiment score/consent admission score/affinity api job/audit app/auditlog web/auth backend backend/answers backend/jobs judge/backtest app/config rank/crowd event intake/export fault backend/function score/history web/httpapi job job/kinds/backtests job/kinds/crowdbuild job/kinds/linkpreview job/kinds/migration job/kinds/recompute job/kinds/reenrich job/kinds/reports app/limit profile profile/view queue queue/taskqueue score/schema serve/query store score/strategy judge/tune app/usage wire", "http"},
	{"functions/segments", "admission api app/auditlog web/auth backend backend/answers backend/jobrunner backend/segmentjobs app/config fault backend/function web/httpapi job job/kinds/segmentbuild job/kinds/segmentexport app/limit profile queue/taskqueue rank/segment serve/query score/strategy", "http"},
	{"functions/docs", "api backend/function web/clientscript web/httpapi web/markdown web/openapi", "http"},
	// console answers with pages: it makes the requests of the public functions, within its process.
	{"functions/console", "api/checkup api web/auth backend backend/jobs queue/pubsub intake/warehouse/outbox catalog api/client intake/enrich event fault backend/function functions/admin functions/catalog functions/imports functions/ingest functions/profiles functions/rank functions/segments functions/strategies web/clientscript web/httpapi job judge/lift profile profile/links queue/taskqueue intake/refused score/strategy catalog/vocabulary cache", "http"},
	{"functions/process", "admission intake/apply backend event/bus queue/pubsub intake/enrich backend/function web/httpapi job/tasks/refresh profile queue/taskqueue intake/refused intake/recent intake/warehouse/outbox telemetry", "http"},
	{"functions/worker", "score/consent job/audit backend backend/jobrunner backend/jobs job/tasks/bands queue/pubsub app/config backend/function web/httpapi intake/warehouse/outbox job/tasks/afterimport job job/kinds/crowdbuild job/kinds/deletion job/kinds/recompute job/kinds/reenrich job/kinds/segmentbuild job/tasks/night job/tasks/refresh job/tasks/relocate profile job/tasks/purge queue queue/taskqueue store", "http"},

	// Never deployed: tests and the engine on one machine. Only the scripts may import these.
	{"shared/local/simulate", "", ""},
	{"shared/local/power", "", anything},
	{"shared/local/disk", "app/documents", anything},
	{"shared/local/rows", "local/disk", anything},
	{"shared/local/backup", "local/disk", ""},
	{"shared/local/emulator", "app/documents local/disk local/rows", anything},
	{"shared/local/ports", "", ""},
	{"shared/local/must", "", ""},
	{"shared/local/gcloudtest", "local/must local/ports", anything},
	{"shared/local/chromium", "local/must", ""},
	{"shared/local/cpu", "", ""},
	{"shared/local/race", "", ""},
	{"shared/local/testmain", "local/race", ""},
	{"shared/local/seal", "app/config", ""},
	{"shared/local/realdata", "catalog event score/strategy", ""},
	{"shared/local/operator", "score/experiment score/consent api app/auditlog api/client app/config fault web/httpapi job job/kinds/deletion job/kinds/move app/limit score/schema app/usage", "http"},
	{"shared/local/stack", anything, anything},
	{"shared/local/functiontest", anything, anything},
	{"shared/local/apicheck", "web/openapi", anything},
	{"shared/local/affinitytest", "score/affinity event score/strategy", ""},
	{"shared/local/boosttest", "rank/boost local/simulate", ""},
	{"shared/local/storetest", "local/cpu local/disk local/emulator local/must local/rows local/testmain store", anything},
	{"shared/local/configtest", "app/documents score/experiment score/consent catalog app/config event fault app/limit score/schema score/strategy", "grpc"},
	{"shared/local/jobtest", "app/documents app/config event job local/must queue score/strategy", "grpc"},
}

type layer struct {
	pkg, imports, libraries string
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
	"parquet":   "github.com/parquet-go/parquet-go",
}

// domain are the packages whose dependencies, too, stay within the process.
var domain = []string{
	"shared/fault", "shared/deadline", "shared/event", "shared/app/usage", "shared/score/strategy", "shared/catalog", "shared/rank/crowd", "shared/catalog/vocabulary", "shared/catalog/where", "shared/score/affinity", "shared/rank/segment", "shared/score/history", "shared/score/schema",
	"shared/score/experiment", "shared/score/consent", "shared/score/explain", "shared/judge/preview", "shared/judge/price", "shared/judge/lift", "shared/rank/ranking", "shared/rank/recommend", "shared/rank/feed", "shared/rank/boost", "shared/local/simulate", "shared/judge/backtest", "shared/judge/rankers", "shared/judge/suggest", "shared/judge/tune", "shared/api", "shared/api/track", "shared/api/checkup", "shared/app/limit", "shared/app/documents", "shared/app/config", "shared/app/auditlog", "shared/event/bus", "shared/intake/warehouse", "shared/profile/links",
}

// all are the packages under shared/ that every function on the data links.
const all = "wire score/experiment admission app/documents cache score/affinity score/consent backend catalog app/config app/documents/documentdb deadline event fault backend/function web/httpapi app/limit score/schema rank/segment store store/rowstream score/strategy telemetry telemetry/export app/usage profile/location"

// links are the packages under shared/ that a function's zip holds. A function
// is deployed again when one of them changes.
var links = map[string]string{
	"ingest":     all + " api web/auth event/bus queue/pubsub intake/enrich intake/refused api/track app/config/kmscipher",
	"imports":    all + " app/auditlog score/history api intake/archive web/auth event/bus intake/enrich intake/export job/tasks/afterimport profile job/tasks/purge queue queue/pubsub queue/taskqueue intake/refused intake/warehouse intake/warehouse/outbox profile/links profile/dictionary",
	"profiles":   all + " app/auditlog score/history api web/auth score/explain profile profile/view job/tasks/purge queue queue/taskqueue app/config/kmscipher profile/links profile/dictionary intake/recent job/tasks/relocate",
	"rank":       all + " catalog/where rank/recommend app/auditlog score/history rank/crowd api web/auth backend/jobrunner rank/boost app/config/kmscipher rank/feed serve/page job job/kinds/daterows profile queue queue/taskqueue rank/ranking serve/ranker profile/links profile/dictionary",
	"segments":   all + " app/auditlog score/history api web/auth backend/answers backend/jobrunner backend/segmentjobs job job/kinds/segmentbuild job/kinds/segmentexport profile serve/query queue queue/taskqueue profile/links profile/dictionary",
	"strategies": all + " catalog/where rank/recommend app/auditlog score/history rank/crowd api web/auth backend/jobrunner job job/kinds/recompute judge/preview judge/price judge/suggest profile queue queue/taskqueue rank/ranking serve/ranker profile/links profile/dictionary",
	"catalog":    all + " app/auditlog api web/auth job/tasks/afterimport job/tasks/bands queue queue/taskqueue",
	"docs":       "admission api catalog deadline event score/strategy cache fault backend/function web/clientscript web/httpapi app/limit web/markdown web/openapi web/openapi/internal/tree telemetry",
	"console":    all + " catalog/where rank/recommend app/auditlog score/history rank/crowd intake/warehouse intake/warehouse/outbox api intake/archive job/audit web/auth web/clientscript backend/answers backend/jobrunner backend/jobs backend/segmentjobs judge/backtest job/tasks/bands rank/boost event/bus queue/pubsub api/client app/config/kmscipher profile/dictionary profile/links intake/enrich score/explain intake/export rank/feed serve/page job/tasks/afterimport job job/kinds/backtests job/kinds/crowdbuild job/kinds/daterows job/kinds/linkpreview job/kinds/migration job/kinds/recompute job/kinds/reenrich job/kinds/reports job/kinds/residents job/kinds/move job/kinds/segmentbuild job/kinds/segmentexport judge/lift judge/preview judge/price profile profile/view job/tasks/purge queue queue/taskqueue rank/ranking intake/refused serve/ranker intake/recent serve/query api/track api/checkup judge/suggest judge/tune catalog/vocabulary job/tasks/relocate",
	"process":    all + " score/history intake/warehouse intake/warehouse/outbox intake/apply event/bus queue/pubsub intake/enrich job/tasks/refresh profile queue queue/taskqueue intake/refused profile/links profile/dictionary intake/recent",
	"admin":      all + " catalog/where rank/recommend app/auditlog score/history rank/crowd api web/auth job/audit backend/answers backend/jobrunner backend/jobs backend/segmentjobs judge/backtest judge/lift judge/preview judge/price serve/ranker job/tasks/bands event/bus intake/enrich intake/export job job/kinds/backtests job/kinds/crowdbuild job/kinds/daterows job/kinds/linkpreview job/kinds/migration job/kinds/recompute job/kinds/reenrich job/kinds/reports job/kinds/residents job/kinds/move job/kinds/segmentbuild job/kinds/segmentexport profile profile/view serve/query queue queue/taskqueue rank/ranking judge/suggest judge/tune profile/links profile/dictionary",
	"worker":     all + " catalog/where rank/recommend score/history rank/crowd intake/warehouse intake/warehouse/outbox api job/audit backend/jobrunner backend/jobs backend/segmentjobs judge/backtest judge/lift judge/preview judge/price serve/ranker job/tasks/bands event/bus queue/pubsub intake/enrich job/tasks/afterimport job/tasks/night job/tasks/refresh job job/kinds/backtests job/kinds/crowdbuild job/kinds/daterows job/kinds/deletion job/kinds/linkpreview job/kinds/migration job/kinds/recompute job/kinds/reenrich job/kinds/reports job/kinds/residents job/kinds/move job/kinds/segmentbuild job/kinds/segmentexport profile profile/view serve/query job/tasks/purge queue queue/taskqueue rank/ranking judge/suggest judge/tune profile/links profile/dictionary job/tasks/relocate",
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

// A library's generic type in a struct is compiled by each package that uses the struct. So a
// type of this module holds it behind an interface.
func TestLibrariesAreCompiledOnce(t *testing.T) {
	compiled := func(pkg string) []byte {
		file, err := exec.Command("go", "list", "-export", "-f", "{{.Export}}", module+pkg).Output()
		if err != nil {
			t.Fatalf("go list: %v", err)
		}
		object, err := os.ReadFile(string(bytes.TrimSpace(file)))
		if err != nil {
			t.Fatal(err)
		}
		return object
	}
	everything := compiled("shared/local/functiontest") // it uses types of nearly all packages
	for method, home := range map[string]string{
		"shared/cache.(*reads[":          "shared/app/config",
		"otter/v2.(*Cache[":              "shared/cache",
		"pebble/v2/internal/manifest.(*": "shared/local/disk",
	} {
		if !bytes.Contains(compiled(home), []byte(method)) {
			t.Errorf("%s does not hold %s: look for another name", home, method)
		}
		if bytes.Contains(everything, []byte(method)) {
			t.Errorf("shared/local/functiontest has compiled %s: a struct holds it by its own type", method)
		}
	}
}

// Code that is only for one machine is in no function.
func TestLocalIsNotDeployed(t *testing.T) {
	for name, p := range list(t) {
		if strings.HasPrefix(name, "scripts/") || strings.HasPrefix(name, "shared/local/") {
			continue
		}
		for _, path := range p.Deps {
			if strings.HasPrefix(path, module+"shared/local/") || strings.HasPrefix(path, module+"scripts/") {
				t.Errorf("%s depends on %s", name, strings.TrimPrefix(path, module))
			}
		}
	}
}
