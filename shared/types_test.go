package shared_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// maxMethods is how many exported methods a type may have. One with more is two: split it by
// what its methods are about, as package store is by table.
const maxMethods = 45

func TestTypesAreSmall(t *testing.T) {
	methods := map[string]int{} // by folder and type
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv == nil || !f.Name.IsExported() {
				continue
			}
			receiver := f.Recv.List[0].Type
			if pointer, ok := receiver.(*ast.StarExpr); ok {
				receiver = pointer.X
			}
			if generic, ok := receiver.(*ast.IndexExpr); ok {
				receiver = generic.X
			}
			if name, ok := receiver.(*ast.Ident); ok {
				methods[filepath.Dir(path)+"."+name.Name]++
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if methods["../shared/profile.Engine"] == 0 {
		t.Fatalf("the engine has no methods among %d types: look for another path", len(methods))
	}
	for name, n := range methods {
		if n > maxMethods {
			t.Errorf("%s has %d exported methods, want at most %d", name, n, maxMethods)
		}
	}
}
