package shared_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestExportedNamesAreUsed finds names of the packages below shared that no other package uses:
// they need no capital letter. A type may be used by what mentions it, as a result of a
// function. Package api and the client are for users.
func TestExportedNamesAreUsed(t *testing.T) {
	declared := map[string]map[string]bool{} // by package: the names, and whether one is used
	mentioned := map[string]map[string]bool{}
	type use struct{ pkg, name string }
	used := map[use]bool{}
	err := filepath.WalkDir("..", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(file, ".go") {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		pkg := path.Join(module, filepath.ToSlash(filepath.Dir(file))[len(".."):])
		imports := map[string]string{}
		for _, i := range parsed.Imports {
			at, _ := strconv.Unquote(i.Path.Value)
			name := path.Base(at)
			if i.Name != nil {
				name = i.Name.Name
			}
			imports[name] = at
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := s.X.(*ast.Ident); ok && imports[x.Name] != "" {
				used[use{imports[x.Name], s.Sel.Name}] = true
			}
			return true
		})
		if strings.HasSuffix(file, "_test.go") || !strings.HasPrefix(pkg, module+"shared/") {
			return nil
		}
		if declared[pkg] == nil {
			declared[pkg], mentioned[pkg] = map[string]bool{}, map[string]bool{}
		}
		exported(parsed, declared[pkg], mentioned[pkg])
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if !declared[module+"shared/profile"]["New"] || !used[use{module + "shared/profile", "New"}] {
		t.Fatal("profile.New is not found: look for another path")
	}
	for _, pkg := range slices.Sorted(maps.Keys(declared)) {
		if pkg == module+"shared/api" || pkg == module+"shared/api/client" {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(declared[pkg])) {
			if !used[use{pkg, name}] && !mentioned[pkg][name] {
				t.Errorf("%s.%s is used by no other package", strings.TrimPrefix(pkg, module), name)
			}
		}
	}
}

// exported adds the exported names that a file declares, and the names that the declarations
// of exported ones mention.
func exported(file *ast.File, names, mentioned map[string]bool) {
	mention := func(nodes ...ast.Node) {
		for _, n := range nodes {
			ast.Inspect(n, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok {
					mentioned[id.Name] = true
				}
				return true
			})
		}
	}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() {
				mention(d.Type)
				if d.Recv == nil {
					names[d.Name.Name] = true
				}
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					if s.Name.IsExported() {
						names[s.Name.Name] = true
						mention(s.Type)
					}
				case *ast.ValueSpec:
					for _, n := range s.Names {
						if n.IsExported() {
							names[n.Name] = true
						}
					}
					if s.Type != nil {
						mention(s.Type)
					}
					for _, v := range s.Values { // whose type arguments are parts of a type
						if call, ok := v.(*ast.CallExpr); ok {
							mention(call.Fun)
						}
					}
				}
			}
		}
	}
}
