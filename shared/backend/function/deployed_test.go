package function_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caarlos0/env/v11"
	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/functions/admin"
	"github.com/affinityengine/affinity/functions/catalog"
	"github.com/affinityengine/affinity/functions/console"
	"github.com/affinityengine/affinity/functions/docs"
	"github.com/affinityengine/affinity/functions/imports"
	"github.com/affinityengine/affinity/functions/ingest"
	"github.com/affinityengine/affinity/functions/process"
	"github.com/affinityengine/affinity/functions/profiles"
	"github.com/affinityengine/affinity/functions/rank"
	"github.com/affinityengine/affinity/functions/segments"
	"github.com/affinityengine/affinity/functions/strategies"
	"github.com/affinityengine/affinity/functions/worker"
	"github.com/affinityengine/affinity/shared/backend/function"
	"github.com/affinityengine/affinity/shared/event/bus"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/race"
	"github.com/affinityengine/affinity/shared/queue"
	"github.com/affinityengine/affinity/shared/queue/pubsub"
	"github.com/affinityengine/affinity/shared/store"
	"github.com/affinityengine/affinity/terraform"
)

// tuning are variables whose defaults suit the deployment, which does not set them.
var tuning = []string{"BIGTABLE_FILTER_COLUMNS", "JOB_SHARD_USERS", "JOB_BUDGET", "JOB_ATTEMPTS", "JOB_CONCURRENCY"}

// locationSecret goes to those functions alone that may look at users.
const locationSecret = "LOCATION_SECRET"

const functionsDir = "../../../functions"

func deployment(t *testing.T) terraform.Deployment {
	t.Helper()
	d, err := terraform.ReadDeployment()
	must.Succeed(t, err)
	return d
}

// functions.json deploys every package under functions/, each under the entry
// point that it registers.
func TestDeployedFunctions(t *testing.T) {
	got := map[string]string{}
	for _, fn := range deployment(t).Functions {
		got[fn.Name] = fn.EntryPoint
	}
	if diff := cmp.Diff(entryPoints(t), got); diff != "" {
		t.Errorf("entry points (-in the code +deployed):\n%s", diff)
	}
}

// A function ends a request when the platform would, so that the client reads why, and a
// local engine ends it at the same time.
func TestDeployedTimeouts(t *testing.T) {
	text, err := os.ReadFile("../../../terraform/sizes.tf")
	must.Succeed(t, err)
	got := map[string]time.Duration{}
	for _, m := range regexp.MustCompile(`(?m)^    (\S+) +=.* timeout_seconds = (\d+)`).FindAllStringSubmatch(string(text), -1) {
		seconds, err := strconv.Atoi(m[2])
		must.Succeed(t, err)
		got[m[1]] = time.Duration(seconds) * time.Second
	}
	want := map[string]time.Duration{
		"catalog": catalog.Timeout, "console": console.Timeout, "docs": docs.Timeout, "imports": imports.Timeout, "ingest": ingest.Timeout,
		"process": process.Timeout, "process-slow": process.Timeout, "profiles": profiles.Timeout, "rank": rank.Timeout,
		"admin": admin.Timeout, "segments": segments.Timeout, "strategies": strategies.Timeout, "worker": worker.Timeout,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("timeouts (-in the code +deployed):\n%s", diff)
	}
}

// The deployment sets the variables that a function reads, and no others. Those of
// OpenTelemetry are the operator's, for all functions: var.telemetry.
func TestDeployedVariables(t *testing.T) {
	race.Skip(t, "it reads source code")
	code := entryPoints(t)
	for _, fn := range deployment(t).Functions {
		params, err := function.Variables(code[fn.Name])
		must.Succeed(t, err)
		want := getenvs(t, dependencies(t, fn.Name)...)
		for _, p := range params {
			if p.Key == locationSecret && !slices.Contains(append(fn.Access.Reads, fn.Access.Writes...), store.TableUsers) &&
				!slices.Contains(fn.Access.Writes, "*") {
				continue // it has no use for where users live
			}
			if !slices.Contains(tuning, p.Key) {
				want = append(want, p.Key)
			} else if !p.HasDefaultValue || p.Required {
				t.Errorf("%s has no default, and the deployment does not set it", p.Key)
			}
		}
		want = slices.DeleteFunc(want, func(name string) bool { return strings.HasPrefix(name, "OTEL_") })
		if slices.Contains(want, locationSecret) != slices.Contains(fn.Secrets, locationSecret) {
			t.Errorf("%s: secrets %v", fn.Name, fn.Secrets) // no plain variable
		}
		slices.Sort(want)
		got := slices.Sorted(slices.Values(fn.Variables()))
		if diff := cmp.Diff(slices.Compact(want), got); diff != "" {
			t.Errorf("variables of %s (-read +set):\n%s", fn.Name, diff)
		}
	}
}

// A function links another one, whose entry point is then in its process too, only if
// both are public: a private one must not be reachable where clients are.
func TestPublicFunctionsLinkNoPrivateOnes(t *testing.T) {
	kinds := map[string]terraform.Kind{}
	for _, fn := range deployment(t).Functions {
		kinds[fn.Name] = fn.Kind
	}
	linking := 0
	for name, kind := range kinds {
		for _, dir := range dependencies(t, name) {
			if filepath.Base(filepath.Dir(dir)) != "functions" || filepath.Base(dir) == name {
				continue
			}
			linking++
			if other := filepath.Base(dir); kind != terraform.Public || kinds[other] != terraform.Public {
				t.Errorf("%s (%s) links %s (%s)", name, kind, other, kinds[other])
			}
		}
	}
	if linking < 7 {
		t.Errorf("functions link %d others, so this test looks in the wrong folders", linking)
	}
}

// The table of functions/README.md and functions.json agree on who calls what.
func TestDeployedKinds(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(functionsDir, "README.md"))
	must.Succeed(t, err)
	want, got := map[string]terraform.Kind{}, map[string]terraform.Kind{}
	functions := false // the table has begun
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) == 6 && strings.TrimSpace(cells[1]) == "function" {
			functions = true
			continue
		}
		if functions = functions && len(cells) == 6; !functions || strings.HasPrefix(cells[1], "---") {
			continue
		}
		name, caller, private := strings.TrimSpace(cells[1]), cells[2], strings.Contains(cells[4], "private: IAM")
		if name == "" {
			continue
		}
		switch {
		case !private:
			want[name] = terraform.Public
		case strings.Contains(caller, "Pub/Sub"):
			want[name] = terraform.OfPubSub
		case strings.Contains(caller, "Cloud Tasks"):
			want[name] = terraform.OfTasks
		case strings.Contains(caller, "Cloud Scheduler"):
			want[name] = terraform.OfScheduler
		}
	}
	for _, fn := range deployment(t).Functions {
		got[fn.Name] = fn.Kind
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("kinds (-README +deployed):\n%s", diff)
	}
}

// The code uses the names of the topics, subscriptions and queue that Terraform
// creates.
func TestDeployedNames(t *testing.T) {
	d := deployment(t)
	want := terraform.Topics{
		Events:      terraform.Topic{Name: bus.EventsTopic, Subscription: bus.EventsSubscription},
		SlowEvents:  terraform.Topic{Name: bus.SlowTopic, Subscription: bus.SlowSubscription},
		DeadLetters: terraform.Topic{Name: bus.DeadLetterTopic, Subscription: bus.DeadLetterSubscription},
		Warehouse:   bus.WarehouseTopic,
	}
	if diff := cmp.Diff(want, d.Topics); diff != "" {
		t.Errorf("topics (-in the code +deployed):\n%s", diff)
	}
	if d.Queue != queue.ID {
		t.Errorf("queue %q is deployed, the code says %q", d.Queue, queue.ID)
	}
	if d.PurgeQueue != queue.PurgesID {
		t.Errorf("queue %q of purges is deployed, the code says %q", d.PurgeQueue, queue.PurgesID)
	}
	params, err := env.GetFieldParams(new(pubsub.Config))
	must.Succeed(t, err)
	defaults := map[string]string{}
	for _, p := range params {
		defaults[p.Key] = p.DefaultValue
	}
	if got := defaults["PUBSUB_EVENTS_TOPIC"]; got != d.Topics.Events.Name {
		t.Errorf("default of the topic of events: %q", got)
	}
	if got := defaults["PUBSUB_DEAD_LETTER_TOPIC"]; got != d.Topics.DeadLetters.Name {
		t.Errorf("default of the topic of dead letters: %q", got)
	}
}

// entryPoints are the entry points that the packages under functions/ register,
// by the package's name.
func entryPoints(t *testing.T) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(functionsDir)
	must.Succeed(t, err)
	found := map[string]string{}
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		var names []string
		calls(t, filepath.Join(functionsDir, entry.Name()), "function", func(called string, call *ast.CallExpr) {
			if called == "AtExit" {
				return
			}
			literal, ok := call.Args[0].(*ast.BasicLit)
			if called != "Register" || !ok {
				t.Fatalf(`functions/%s: want function.Register("Name", open)`, entry.Name())
			}
			name, err := strconv.Unquote(literal.Value)
			must.Succeed(t, err)
			names = append(names, name)
		})
		if len(names) != 1 {
			t.Fatalf("functions/%s registers %d functions, want one", entry.Name(), len(names))
		}
		found[entry.Name()] = names[0]
	}
	return found
}

// getenvs are the variables that the packages in some folders read directly.
func getenvs(t *testing.T, dirs ...string) []string {
	t.Helper()
	var names []string
	for _, dir := range dirs {
		calls(t, dir, "os", func(name string, call *ast.CallExpr) {
			if name != "Getenv" && name != "LookupEnv" {
				return
			}
			literal, ok := call.Args[0].(*ast.BasicLit)
			if !ok {
				t.Fatalf("%s reads a variable whose name is not a literal", dir)
			}
			variable, err := strconv.Unquote(literal.Value)
			must.Succeed(t, err)
			names = append(names, variable)
		})
	}
	return names
}

// calls passes each call of a function of package pkg in a folder to found.
func calls(t *testing.T, dir, pkg string, found func(name string, call *ast.CallExpr)) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no Go in %s: %v", dir, err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		must.Succeed(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if selector, ok := call.Fun.(*ast.SelectorExpr); ok && fmt.Sprint(selector.X) == pkg {
				found(selector.Sel.Name, call)
			}
			return true
		})
	}
}

// linked are the import paths that each package of this module links, and itself, by its import path, and the
// folder of each. One go list for all packages takes as long as one for a single function.
var linked = sync.OnceValues(func() (deps map[string][]string, err error) {
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Deps " "}}`, functionsDir+"/...").Output()
	deps = map[string][]string{}
	for line := range strings.Lines(string(out)) {
		paths := strings.Fields(line)
		deps[path.Base(paths[0])] = paths
	}
	return deps, err
})

// dependencies are the folders of this module's packages that a function links.
func dependencies(t *testing.T, name string) (dirs []string) {
	t.Helper()
	deps, err := linked()
	must.Succeed(t, err)
	for _, pkg := range deps[name] {
		if dir, ours := strings.CutPrefix(pkg, "github.com/affinityengine/affinity/"); ours {
			dirs = append(dirs, filepath.Join(functionsDir, "..", dir))
		}
	}
	return dirs
}
