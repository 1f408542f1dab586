package backend_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/caarlos0/env/v11"
	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/backend"
	"github.com/affinityengine/affinity/shared/bus"
	"github.com/affinityengine/affinity/shared/queue"
	"github.com/affinityengine/affinity/terraform"
)

// tuning are variables with a default that suits, so that the deployment sets none of them.
var tuning = []string{"BIGTABLE_FILTER_COLUMNS", "RECOMPUTE_SHARD_USERS", "RECOMPUTE_BUDGET", "RECOMPUTE_ATTEMPTS"}

const functionsDir = "../../functions"

func deployment(t *testing.T) terraform.Deployment {
	t.Helper()
	d, err := terraform.ReadDeployment()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// registered is what the package of a function registers.
type registered struct {
	EntryPoint string
	Need       backend.Need
}

// What functions.json says is deployed are the packages there are, each under the
// name that it registers.
func TestDeployedFunctions(t *testing.T) {
	want, got := map[string]string{}, map[string]string{}
	for name, r := range packages(t) {
		want[name] = r.EntryPoint
	}
	for _, fn := range deployment(t).Functions {
		got[fn.Name] = fn.EntryPoint
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("entry points (-in the code +deployed):\n%s", diff)
	}
}

// The deployment sets for each function the variables that it reads, and no others.
func TestDeployedVariables(t *testing.T) {
	shared := getenvs(t, dependencies(t)...)
	code := packages(t)
	for _, fn := range deployment(t).Functions {
		params, err := code[fn.Name].Need.Variables()
		if err != nil {
			t.Fatal(err)
		}
		want := append(getenvs(t, filepath.Join(functionsDir, fn.Name)), shared...)
		for _, p := range params {
			switch {
			case slices.Contains(tuning, p.Key):
				if !p.HasDefaultValue || p.Required {
					t.Errorf("%s has no default, and the deployment does not set it", p.Key)
				}
			case p.Key == "CUSTOMER_HOSTS" && fn.Kind != terraform.Public: // nobody comes to it by a customer's host
			default:
				want = append(want, p.Key)
			}
		}
		slices.Sort(want)
		got := slices.Sorted(slices.Values(fn.Env))
		if diff := cmp.Diff(slices.Compact(want), got); diff != "" {
			t.Errorf("variables of %s (-read +set):\n%s", fn.Name, diff)
		}
	}
}

// The table of functions/README.md and functions.json agree on who calls what.
func TestDeployedKinds(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(functionsDir, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	want, got := map[string]terraform.Kind{}, map[string]terraform.Kind{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 6 || strings.HasPrefix(cells[1], "---") {
			continue
		}
		name, caller, private := strings.TrimSpace(cells[1]), cells[2], strings.Contains(cells[4], "private: IAM")
		if name == "" || name == "function" {
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

// The topics, subscriptions and the queue are called in the code what they are
// called where they are made.
func TestDeployedNames(t *testing.T) {
	d := deployment(t)
	want := terraform.Topics{
		Events:      terraform.Topic{Name: bus.EventsTopic, Subscription: bus.EventsSubscription},
		DeadLetters: terraform.Topic{Name: bus.DeadLetterTopic, Subscription: bus.DeadLetterSubscription},
	}
	if diff := cmp.Diff(want, d.Topics); diff != "" {
		t.Errorf("topics (-in the code +deployed):\n%s", diff)
	}
	if d.Queue != queue.ID {
		t.Errorf("queue %q is deployed, the code says %q", d.Queue, queue.ID)
	}
	params, err := env.GetFieldParams(new(bus.Config))
	if err != nil {
		t.Fatal(err)
	}
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

// packages reads what each package of a function registers.
func packages(t *testing.T) map[string]registered {
	t.Helper()
	entries, err := os.ReadDir(functionsDir)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]registered{}
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		var list []registered
		calls(t, filepath.Join(functionsDir, entry.Name()), "functions", func(_ string, call *ast.CallExpr) {
			r, err := registration(call)
			if err != nil {
				t.Fatalf("functions/%s: %v", entry.Name(), err)
			}
			list = append(list, r)
		})
		if len(list) != 1 {
			t.Fatalf("functions/%s registers %d functions, want one", entry.Name(), len(list))
		}
		found[entry.Name()] = list[0]
	}
	return found
}

// registration reads functions.HTTP("Name", backend.Function(backend.Need{Bus: true}, New).ServeHTTP).
func registration(call *ast.CallExpr) (registered, error) {
	var r registered
	bad := func(what string) (registered, error) {
		return r, errors.New(what + ": want functions.HTTP(\"Name\", backend.Function(backend.Need{...}, New).ServeHTTP)")
	}
	name, ok := call.Args[0].(*ast.BasicLit)
	if !ok || len(call.Args) != 2 {
		return bad("no name")
	}
	var err error
	if r.EntryPoint, err = strconv.Unquote(name.Value); err != nil {
		return r, err
	}
	var need *ast.CompositeLit
	ast.Inspect(call.Args[1], func(n ast.Node) bool {
		if lit, ok := n.(*ast.CompositeLit); ok && need == nil {
			need = lit
		}
		return true
	})
	if need == nil {
		return bad("no need")
	}
	for _, e := range need.Elts {
		kv, ok := e.(*ast.KeyValueExpr)
		if !ok || fmt.Sprint(kv.Value) != "true" {
			return bad("a need that is not true")
		}
		switch fmt.Sprint(kv.Key) {
		case "Bus":
			r.Need.Bus = true
		case "Queue":
			r.Need.Queue = true
		default:
			return bad("an unknown need")
		}
	}
	return r, nil
}

// getenvs are the variables that the packages of some folders read by themselves.
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
				t.Fatalf("%s reads a variable whose name is no literal", dir)
			}
			variable, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, variable)
		})
	}
	return names
}

// calls finds all calls of functions of a package, by its name, in a folder.
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
		if err != nil {
			t.Fatal(err)
		}
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

// dependencies are the folders of this module's packages that every function is made of.
func dependencies(t *testing.T) []string {
	t.Helper()
	out, err := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{if .Main}}{{$.Dir}}{{end}}{{end}}", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(out))
}
