//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
)

const docsFolder = "../../functions/docs/"

// The pages about commands are what the commands say. -rewrite writes them.
func TestCommandPages(t *testing.T) {
	root := rootCommand(newProgram(nil, io.Discard, io.Discard))
	comparePages(t, commandPages(root))
}

// comparePages compares pages that are made with those of the folder, or writes them.
func comparePages(t *testing.T, pages map[string]string) {
	t.Helper()
	for name, want := range pages {
		if *rewrite {
			must(t, os.MkdirAll(filepath.Dir(docsFolder+name), 0o755))
			must(t, os.WriteFile(docsFolder+name, []byte(want), 0o600))
		}
		if got, err := os.ReadFile(docsFolder + name); err != nil || string(got) != want {
			t.Errorf("%s is out of date (%v): go test ./scripts/affinity -run %s -rewrite", name, err, t.Name())
		}
	}
}

// The page of the configuration has the settings of serve, and each variable of the functions with its comment.
func TestConfigurationPage(t *testing.T) {
	root := rootCommand(newProgram(nil, io.Discard, io.Discard))
	serve, _, err := root.Find([]string{"serve"})
	must(t, err)
	var b strings.Builder
	b.WriteString("# Configuration\n\n`go test ./scripts/affinity -run ConfigurationPage -rewrite` makes this page of the source.\n\n" +
		"## One machine\n\nThe settings of `affinity serve`: each is a flag, a line of the file of `--config`, and a variable of the environment. A flag\n" +
		"goes before its variable, and that before the file.\n\n| line of the file | variable | meaning | default |\n|---|---|---|---|\n")
	serve.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" || f.Name == "config" || f.Name == "check" {
			return
		}
		_, usage := pflag.UnquoteUsage(f)
		fmt.Fprintf(&b, "| `%s` | `AFFINITY_%s` | %s | %s |\n", f.Name,
			strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_")), cell(usage), shownDefault(f))
	})
	b.WriteString("\n## The deployed functions\n\nTerraform sets these variables; `functions.tf` and `functions.json` say which function has which.\n\n" +
		"| variable | meaning | default | read by |\n|---|---|---|---|\n")
	for _, v := range variables(t) {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", v.name, cell(v.meaning), cell(v.value), v.folder)
	}
	comparePages(t, map[string]string{"reference/configuration.md": b.String()})
}

// variable is a variable of the environment that a struct tag names.
type variable struct{ name, meaning, value, folder string }

// inspect visits the syntax of the functions and of the packages that they link, with the folder of each file.
func inspect(t *testing.T, visit func(folder string, n ast.Node)) {
	for _, root := range []string{"functions", "shared"} {
		must(t, filepath.WalkDir("../../"+root, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
			if err != nil {
				return err
			}
			folder := strings.TrimPrefix(filepath.ToSlash(filepath.Dir(path)), "../../")
			ast.Inspect(file, func(n ast.Node) bool {
				visit(folder, n)
				return true
			})
			return nil
		}))
	}
}

// variables are those of the functions, the best explained field of each.
func variables(t *testing.T) []variable {
	all := map[string]variable{}
	inspect(t, func(folder string, n ast.Node) {
		if f, ok := n.(*ast.Field); ok && f.Tag != nil && len(f.Names) == 1 {
			if v, ok := described(f, folder); ok && len(v.meaning) >= len(all[v.name].meaning) {
				all[v.name] = v
			}
		}
	})
	if len(all) < 30 {
		t.Errorf("%d variables found", len(all))
	}
	var list []variable
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list = append(list, all[name])
	}
	return list
}

func described(f *ast.Field, folder string) (variable, bool) {
	text, err := strconv.Unquote(f.Tag.Value)
	name, options, _ := strings.Cut(reflect.StructTag(text).Get("env"), ",")
	if err != nil || name == "" || name == "-" {
		return variable{}, false
	}
	v := variable{name: name, value: reflect.StructTag(text).Get("envDefault"), folder: folder}
	if v.value != "" {
		v.value = "`" + v.value + "`"
	} else if strings.Contains(options, "required") {
		v.value = "required"
	}
	v.meaning = strings.Join(strings.Fields(f.Doc.Text()+" "+f.Comment.Text()), " ")
	return v, true
}

// The page of the metrics has those that Prometheus or a collector gets, and those that Terraform makes of log lines.
func TestMetricsPage(t *testing.T) {
	measured := map[string]string{}
	inspect(t, func(_ string, n ast.Node) {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) < 2 {
			return
		}
		if name := literal(call.Args[0]); strings.HasPrefix(name, "affinity.") {
			for _, arg := range call.Args[1:] {
				if inner, ok := arg.(*ast.CallExpr); ok && len(inner.Args) == 1 {
					arg = inner.Args[0] // WithDescription
				}
				if text := literal(arg); len(text) > len(measured[name]) {
					measured[name] = text
				}
			}
		}
	})
	if len(measured) < 8 {
		t.Errorf("metrics found: %v", measured)
	}
	page := "# Metrics\n\n`go test ./scripts/affinity -run MetricsPage -rewrite` makes this page of the source.\n\n## Of the engine\n\n" +
		"`GET /metrics` of `affinity up` and of `serve` has them for Prometheus, with `_` in place of dots, and OpenTelemetry exports them:\n" +
		"[telemetry](../../../shared/telemetry/README.md).\n\n| metric | what it counts |\n|---|---|\n"
	for _, name := range slices.Sorted(maps.Keys(measured)) {
		page += "| `" + name + "` | " + cell(measured[name]) + " |\n"
	}
	page += "\n## Of a deployment\n\nTerraform makes them of log lines, below `logging.googleapis.com/user/` and `name_prefix`. " +
		"[Monitoring](../../../terraform/modules/monitoring/README.md)\nsays which alerts and objectives use them.\n\n" +
		"| metric | what it counts | unit | labels |\n|---|---|---|---|\n"
	var deployed struct {
		Metrics []struct {
			Name, Help, Unit string
			Labels           []string
		}
	}
	text, err := os.ReadFile("../../terraform/modules/monitoring/metrics.json")
	must(t, err)
	must(t, json.Unmarshal(text, &deployed))
	for _, m := range deployed.Metrics {
		page += fmt.Sprintf("| `%s` | %s | %s | %s |\n", m.Name, cell(m.Help), m.Unit, strings.Join(m.Labels, ", "))
	}
	comparePages(t, map[string]string{"reference/metrics.md": page})
}

// literal is the text of an expression of string literals, or "".
func literal(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		if err == nil && e.Kind == token.STRING {
			return text
		}
	case *ast.BinaryExpr:
		return literal(e.X) + literal(e.Y)
	}
	return ""
}

func TestDocsCommand(t *testing.T) {
	var out, faults bytes.Buffer
	if code := run(t.Context(), []string{"docs", "--check"}, nil, &out, &faults); code != cli.ExitOK ||
		!strings.Contains(out.String(), "pages are in order") {
		t.Errorf("docs --check exits with %d: %s%s", code, &out, &faults)
	}
	folder := filepath.Join(t.TempDir(), "pages")
	affinity(t, "", "docs", "--write", folder).wants(t, cli.ExitOK, "begin with "+filepath.Join(folder, "README.md"))
	for _, name := range []string{"README.md", "guides/quickstart.md", "design/rules.md"} {
		if _, err := os.Stat(filepath.Join(folder, name)); err != nil {
			t.Errorf("the folder lacks %s: %v", name, err)
		}
	}
	affinity(t, "", "docs", "--write", folder).wants(t, cli.ExitFailed, "write the documents: ")
	affinity(t, "", "docs").wants(t, cli.ExitUsage, "give --write DIR or --check")
}
