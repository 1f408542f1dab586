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

// counted is modules/monitoring/metrics.json: which log lines are counted, and
// which of their fields.
type counted struct {
	Jobs    []string     `json:"jobs"`
	Metrics []lineMetric `json:"metrics"`
}

// lineMetric is a metric of lines. <job> in its message stands for each job.
type lineMetric struct {
	Name    string            `json:"name"`
	Message string            `json:"message"`
	Where   map[string]string `json:"where"`  // values that fields must have
	Value   string            `json:"value"`  // a field that is a number
	Unit    string            `json:"unit"`   // of Value
	Labels  []string          `json:"labels"` // fields
	Help    string            `json:"help"`
}

// logLine is a call that logs: its fields, and by which function of slog each is
// made.
type logLine struct {
	at     string
	fields map[string]string
}

// TestLogMetricsMeetTheCode holds what is counted to the lines that the functions
// write.
func TestLogMetricsMeetTheCode(t *testing.T) {
	var c counted
	readJSON(t, "modules/monitoring/metrics.json", &c)
	lines, jobs := deployedLines(t)
	for _, m := range c.Metrics {
		if fault := m.meets(lines); fault != nil {
			t.Errorf("modules/monitoring/metrics.json: %v", fault)
		}
	}
	if slices.Sort(c.Jobs); !slices.Equal(c.Jobs, jobs) {
		t.Errorf("modules/monitoring/metrics.json names the jobs %s, the code %s", c.Jobs, jobs)
	}
	if len(c.Metrics) < 8 || len(lines) < 20 || len(jobs) < 3 {
		t.Errorf("found %d metrics, %d lines and %d jobs: what is looked for has another form", len(c.Metrics), len(lines), len(jobs))
	}
}

func TestLogMetricsThatMeetNothing(t *testing.T) {
	lines, _ := deployedLines(t)
	good := lineMetric{Message: "events applied", Value: "lagMs", Labels: []string{"app"}}
	if fault := good.meets(lines); fault != nil {
		t.Fatal(fault)
	}
	for name, bad := range map[string]lineMetric{
		"a line that nobody writes":  {Message: "events were applied"},
		"a job's line without a job": {Message: "recompute ended"},
		"a field that is not there":  {Message: "events applied", Labels: []string{"user"}},
		"a value that is no number":  {Message: "events applied", Value: "app"},
		"a state that is none":       {Message: "<job> ended", Where: map[string]string{"state": "broken"}},
		"a condition on no field":    {Message: "<job> ended", Where: map[string]string{"outcome": "failed"}},
	} {
		if bad.meets(lines) == nil {
			t.Errorf("%s was not noticed", name)
		}
	}
}

// meets says what is wrong with a metric, going by the lines that there are.
func (m lineMetric) meets(lines map[string][]logLine) error {
	if len(lines[m.Message]) == 0 {
		return fmt.Errorf("%s: no line says %q", m.Name, m.Message)
	}
	fields := slices.Concat(m.Labels, slices.Collect(maps.Keys(m.Where)))
	for _, line := range lines[m.Message] {
		for _, field := range fields {
			if line.fields[field] == "" {
				return fmt.Errorf("%s: the line at %s has no field %q", m.Name, line.at, field)
			}
		}
		if m.Value != "" && !slices.Contains([]string{"Int", "Int64", "Uint64", "Float64"}, line.fields[m.Value]) {
			return fmt.Errorf("%s: the line at %s has no number %q", m.Name, line.at, m.Value)
		}
	}
	if state, there := m.Where["state"]; there && (!job.State(state).Ended() || state != string(job.Failed)) {
		return fmt.Errorf("%s: a job does not end as %q", m.Name, state)
	}
	return nil
}

// deployedLines are the lines that deployed code logs, by their message, and the
// names of the jobs that <job> stands for in them.
func deployedLines(t *testing.T) (lines map[string][]logLine, jobs []string) {
	t.Helper()
	lines = map[string][]logLine{}
	set := token.NewFileSet()
	for _, root := range []string{"../functions", "../shared"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			// What stands in for the cloud is not deployed.
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

// logCall is the message and the fields of a call of LogAttrs, "" for any other.
// A message that begins with the name of a job begins with <job>.
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

// jobNames are the names that a function gives to a job.Runner that it is given.
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

// literal is a string that stands in the code, "" for anything else.
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
