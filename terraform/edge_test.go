package terraform_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"regexp"
	"slices"
	"testing"
)

// TestEdgeAndLocalRoutesMatch compares the paths of the load balancer with those of
// the local stack.
func TestEdgeAndLocalRoutesMatch(t *testing.T) {
	deployed, local := edgeRoutes(t), stackRoutes(t)
	if !maps.Equal(deployed, local) {
		t.Errorf("modules/edge/variables.tf has the routes %v, but shared/local/stack/functions.go has %v", deployed, local)
	}
	if len(local) < 10 {
		t.Errorf("found only %d routes, so publicFunctions has another form", len(local))
	}
}

var (
	routesDefault = regexp.MustCompile(`(?s)variable "routes" \{.*?\n  default = \{\n(.*?)\n  \}\n`)
	routesRow     = regexp.MustCompile(`(?m)^    (\w+) += \[(.+)\]$`)
	quoted        = regexp.MustCompile(`"([^"]+)"`)
)

// edgeRoutes returns the deployed function of each path prefix.
func edgeRoutes(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("modules/edge/variables.tf")
	if err != nil {
		t.Fatal(err)
	}
	block := routesDefault.FindSubmatch(text)
	if block == nil {
		t.Fatal("modules/edge/variables.tf has no default of routes in the form that this test reads")
	}
	routes := map[string]string{}
	for _, row := range routesRow.FindAllSubmatch(block[1], -1) {
		for _, path := range quoted.FindAllSubmatch(row[2], -1) {
			routes[string(path[1])] = string(row[1])
		}
	}
	return routes
}

// stackRoutes returns the local stack's function of each path prefix: its
// publicFunctions has an entry {"/1/x", pkg.New(b)} for each.
func stackRoutes(t *testing.T) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../shared/local/stack/functions.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(file.Decls, func(d ast.Decl) bool {
		fn, ok := d.(*ast.FuncDecl)
		return ok && fn.Name.Name == "publicFunctions"
	})
	if at < 0 {
		t.Fatal("shared/local/stack has no publicFunctions")
	}
	routes := map[string]string{}
	ast.Inspect(file.Decls[at], func(n ast.Node) bool {
		entry, ok := n.(*ast.CompositeLit)
		if !ok || len(entry.Elts) != 2 || literal(entry.Elts[0]) == "" {
			return true
		}
		if call, ok := entry.Elts[1].(*ast.CallExpr); ok {
			if made, ok := call.Fun.(*ast.SelectorExpr); ok && made.Sel.Name == "New" {
				if pkg, ok := made.X.(*ast.Ident); ok {
					routes[literal(entry.Elts[0])] = pkg.Name
				}
			}
		}
		return true
	})
	return routes
}
