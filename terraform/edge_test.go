package terraform_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestEdgeAndLocalRoutesMatch compares the paths of the load balancer with those of
// the local stack.
func TestEdgeAndLocalRoutesMatch(t *testing.T) {
	deployed, local := edgeRoutes(t), stackRoutes(t)
	if !maps.Equal(deployed, local) {
		t.Errorf("modules/edge/variables.tf has the routes %v, but the local stack has %v", deployed, local)
	}
	if len(local) < 10 {
		t.Errorf("found only %d routes, so functions/console/api.go has another form", len(local))
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

// stackRoutes returns the local stack's function of each path prefix: that of the public
// functions that the console calls too, and of those that only the stack serves.
func stackRoutes(t *testing.T) map[string]string {
	t.Helper()
	routes := prefixes(t, "../functions/console/api.go", "Routes")
	maps.Copy(routes, prefixes(t, "../shared/local/stack/functions.go", "publicFunctions"))
	delete(routes, "/console") // deployed, it is no route: its host serves nothing else
	return routes
}

// prefixes returns the function of each path prefix in a function's entries
// {Prefix: "/1/x", Handler: api.Function} or {Prefix: "/x", Handler: function.New(b)}.
func prefixes(t *testing.T, path, within string) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(file.Decls, func(d ast.Decl) bool {
		fn, ok := d.(*ast.FuncDecl)
		return ok && fn.Name.Name == within
	})
	if at < 0 {
		t.Fatalf("%s has no %s", path, within)
	}
	routes := map[string]string{}
	made := map[string]string{} // packages of the handlers that variables hold
	ast.Inspect(file.Decls[at], func(n ast.Node) bool {
		if set, ok := n.(*ast.AssignStmt); ok && len(set.Lhs) == 1 {
			if variable, ok := set.Lhs[0].(*ast.Ident); ok {
				made[variable.Name] = maker(set.Rhs[0])
			}
		}
		entry, ok := n.(*ast.CompositeLit)
		if !ok || len(entry.Elts) != 2 {
			return true
		}
		prefix, ok := entry.Elts[0].(*ast.KeyValueExpr)
		handler, second := entry.Elts[1].(*ast.KeyValueExpr)
		if !ok || !second || literal(prefix.Value) == "" {
			return true
		}
		switch h := handler.Value.(type) {
		case *ast.SelectorExpr: // of API
			routes[literal(prefix.Value)] = strings.ToLower(h.Sel.Name)
		case *ast.Ident:
			if pkg := made[h.Name]; pkg != "" {
				routes[literal(prefix.Value)] = pkg
			}
		}
		return true
	})
	return routes
}

// maker returns the package whose New makes a handler, "" if none does.
func maker(e ast.Expr) string {
	if call, ok := e.(*ast.CallExpr); ok {
		if made, ok := call.Fun.(*ast.SelectorExpr); ok && made.Sel.Name == "New" {
			if pkg, ok := made.X.(*ast.Ident); ok {
				return pkg.Name
			}
		}
	}
	return ""
}
