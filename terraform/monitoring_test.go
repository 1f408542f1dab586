package terraform_test

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/shared/job"
)

// metricsFile is modules/monitoring/metrics.json: the metrics that Cloud Monitoring
// derives from log lines.
type metricsFile struct {
	Jobs    []string     `json:"jobs"`
	Metrics []lineMetric `json:"metrics"`
}

// lineMetric is a metric of log lines. <job> in its message means each job.
type lineMetric struct {
	Name    string            `json:"name"`
	Message string            `json:"message"`
	Where   map[string]string `json:"where"`  // required values of fields
	Value   string            `json:"value"`  // numeric field to measure
	Unit    string            `json:"unit"`   // unit of Value
	Labels  []string          `json:"labels"` // fields that become labels
	Bounds  []float64         `json:"bounds"` // of the buckets of Value; none: powers of two
	Every   int               `json:"every"`  // one in how many has a line; 0: each
	Help    string            `json:"help"`
}

// logLine is a call that logs: its position, and the slog function that makes each
// of its fields.
type logLine struct {
	at     string
	fields map[string]string
}

// TestLogMetricsMatchCode checks that the code logs every line and field that a
// metric reads.
func TestLogMetricsMatchCode(t *testing.T) {
	var file metricsFile
	readJSON(t, "modules/monitoring/metrics.json", &file)
	lines, jobs := deployedLines(t)
	for _, m := range file.Metrics {
		if fault := m.check(lines); fault != nil {
			t.Errorf("modules/monitoring/metrics.json: %v", fault)
		}
	}
	if slices.Sort(file.Jobs); !slices.Equal(file.Jobs, jobs) {
		t.Errorf("modules/monitoring/metrics.json names the jobs %s, but the code names %s", file.Jobs, jobs)
	}
	if len(file.Metrics) < 8 || len(lines) < 20 || len(jobs) < 3 {
		t.Errorf("found only %d metrics, %d lines and %d jobs, so the file or the code has another form", len(file.Metrics), len(lines), len(jobs))
	}
}

func TestLogMetricFaultsAreFound(t *testing.T) {
	lines, _ := deployedLines(t)
	good := lineMetric{Message: "events applied", Value: "lagMs", Labels: []string{"app"}}
	if fault := good.check(lines); fault != nil {
		t.Fatal(fault)
	}
	for name, bad := range map[string]lineMetric{
		"unknown message":           {Message: "events were applied"},
		"job's message without job": {Message: "recompute ended"},
		"unknown label":             {Message: "events applied", Labels: []string{"user"}},
		"value not a number":        {Message: "events applied", Value: "app"},
		"unknown state":             {Message: "<job> ended", Where: map[string]string{"state": "broken"}},
		"condition on no field":     {Message: "<job> ended", Where: map[string]string{"outcome": "failed"}},
	} {
		if bad.check(lines) == nil {
			t.Errorf("%s: got no fault", name)
		}
	}
}

// check returns the first fault of a metric: a message, field or state that the
// lines of the code do not have.
func (m lineMetric) check(lines map[string][]logLine) error {
	if len(lines[m.Message]) == 0 {
		return fmt.Errorf("%s: no line has the message %q", m.Name, m.Message)
	}
	fields := slices.Concat(m.Labels, slices.Collect(maps.Keys(m.Where)))
	for _, line := range lines[m.Message] {
		for _, field := range fields {
			if line.fields[field] == "" {
				return fmt.Errorf("%s: the line at %s has no field %q", m.Name, line.at, field)
			}
		}
		if m.Value != "" && !slices.Contains([]string{"Int", "Int64", "Uint64", "Float64"}, line.fields[m.Value]) {
			return fmt.Errorf("%s: the line at %s has no numeric field %q", m.Name, line.at, m.Value)
		}
	}
	if state, there := m.Where["state"]; there && (!job.State(state).Ended() || state != string(job.Failed)) {
		return fmt.Errorf("%s: the state %q is not the one of a failed job", m.Name, state)
	}
	return nil
}

// deployedLines returns the lines that deployed code logs, by message, and the names
// of the jobs, which replace <job> in a message.
func deployedLines(t *testing.T) (lines map[string][]logLine, jobs []string) {
	t.Helper()
	lines = map[string][]logLine{}
	set := token.NewFileSet()
	for _, root := range []string{"../functions", "../shared"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			// Emulators, the local stack and test helpers are not deployed.
			if err == nil && d.IsDir() && (d.Name() == "emulator" || d.Name() == "stack" || strings.HasSuffix(d.Name(), "test")) {
				return fs.SkipDir
			}
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.CallExpr:
					if message, fields := logCall(n); message != "" {
						lines[message] = append(lines[message], logLine{set.Position(n.Pos()).String(), fields})
					}
				case *ast.FuncDecl:
					jobs = append(jobs, jobNames(n)...)
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(jobs)
	return lines, jobs
}

// logCall returns the message and the fields of a call of LogAttrs, and "" for any
// other call. If the code puts a job's name before the message, the result has <job>.
func logCall(call *ast.CallExpr) (message string, fields map[string]string) {
	if fn, ok := call.Fun.(*ast.SelectorExpr); !ok || fn.Sel.Name != "LogAttrs" || len(call.Args) < 3 {
		return "", nil
	}
	switch m := call.Args[2].(type) {
	case *ast.BasicLit:
		message = literal(m)
	case *ast.BinaryExpr:
		if name, ok := m.X.(*ast.SelectorExpr); ok && name.Sel.Name == "Name" && literal(m.Y) != "" {
			message = "<job>" + literal(m.Y)
		}
	}
	fields = map[string]string{}
	for _, arg := range call.Args[3:] {
		attr, ok := arg.(*ast.CallExpr)
		if !ok || len(attr.Args) == 0 {
			continue
		}
		if made, ok := attr.Fun.(*ast.SelectorExpr); ok && literal(attr.Args[0]) != "" {
			fields[literal(attr.Args[0])] = made.Sel.Name
		}
	}
	return message, fields
}

// jobNames returns the names that a function assigns to its job.Runner parameter.
func jobNames(fn *ast.FuncDecl) (names []string) {
	for _, param := range fn.Type.Params.List {
		kind, ok := param.Type.(*ast.SelectorExpr)
		if !ok || len(param.Names) != 1 || kind.Sel.Name != "Runner" {
			continue
		}
		if pkg, ok := kind.X.(*ast.Ident); !ok || pkg.Name != "job" {
			continue
		}
		ast.Inspect(fn.Body, func(n ast.Node) bool {
			set, ok := n.(*ast.AssignStmt)
			if !ok || len(set.Lhs) != len(set.Rhs) {
				return true
			}
			for i, to := range set.Lhs {
				field, ok := to.(*ast.SelectorExpr)
				if !ok || field.Sel.Name != "Name" || literal(set.Rhs[i]) == "" {
					continue
				}
				if runner, ok := field.X.(*ast.Ident); ok && runner.Name == param.Names[0].Name {
					names = append(names, literal(set.Rhs[i]))
				}
			}
			return true
		})
	}
	return names
}

// literal returns the value of a string literal, and "" for any other expression.
func literal(e ast.Expr) string {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return ""
	}
	text, err := strconv.Unquote(lit.Value)
	if err != nil {
		return ""
	}
	return text
}

func readJSON(t *testing.T, path string, v any) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	decoder := json.NewDecoder(file)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(v); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}
