package shared_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const (
	// maxMethods is how many exported methods a type may have. One with more is two: split it by
	// what its methods are about, as package store is by table.
	maxMethods = 45
	// maxInterface is how many methods an interface may have, with those that it embeds. A
	// consumer names the methods that it uses, and a double of it is short.
	maxInterface = 15
)

var positions = token.NewFileSet()

// parsed returns the files of the module that nobody generated, by path.
var parsed = sync.OnceValues(func() (map[string]*ast.File, error) {
	files := map[string]*ast.File{}
	return files, filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		file, err := parser.ParseFile(positions, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err == nil && !ast.IsGenerated(file) {
			files[path] = file
		}
		return err
	})
})

func TestTypesAreSmall(t *testing.T) {
	files, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	methods := map[string]int{} // by folder and type
	for path, file := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
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
			if name, ok := generic(receiver).(*ast.Ident); ok {
				methods[filepath.Dir(path)+"."+name.Name]++
			}
		}
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

// generic returns the type of an instance of it.
func generic(e ast.Expr) ast.Expr {
	switch e := e.(type) {
	case *ast.IndexExpr:
		return e.X
	case *ast.IndexListExpr:
		return e.X
	}
	return e
}

func TestInterfacesAreSmall(t *testing.T) {
	files, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	types := named{}
	for path, file := range files {
		for _, d := range file.Decls {
			if d, ok := d.(*ast.GenDecl); ok && d.Tok == token.TYPE {
				for _, s := range d.Specs {
					s := s.(*ast.TypeSpec)
					types[packageOf(path, file)+"."+s.Name.Name] = written{path, file, s.Type}
				}
			}
		}
	}
	embeds := map[string]bool{}
	if types.methods(types["../shared/job/kinds/migration.Config"], embeds); !embeds["UpdateLog"] || !embeds["App"] {
		t.Fatalf("migration.Config has methods %v, want its own and those of config.Source", embeds)
	}
	for path, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			if i, ok := n.(*ast.InterfaceType); ok {
				all := map[string]bool{}
				if types.methods(written{path, file, i}, all); len(all) > maxInterface {
					t.Errorf("%s: an interface has %d methods, want at most %d: %v",
						positions.Position(i.Pos()), len(all), maxInterface, slices.Sorted(maps.Keys(all)))
				}
			}
			return true
		})
	}
}

// named are the types of the module by package and name.
type named map[string]written

// written is a type as a file writes it.
type written struct {
	path string
	file *ast.File
	as   ast.Expr
}

// packageOf returns the folder of a file, and for tests outside of the package another name.
func packageOf(path string, file *ast.File) string {
	if strings.HasSuffix(file.Name.Name, "_test") {
		return filepath.Dir(path) + " tests"
	}
	return filepath.Dir(path)
}

// methods adds the methods of an interface to all, and those of the interfaces of this module
// that it embeds.
func (n named) methods(w written, all map[string]bool) {
	switch e := generic(w.as).(type) {
	case *ast.InterfaceType:
		for _, m := range e.Methods.List {
			for _, name := range m.Names {
				all[name.Name] = true
			}
			if len(m.Names) == 0 {
				n.methods(written{w.path, w.file, m.Type}, all)
			}
		}
	case *ast.Ident:
		n.methods(n[packageOf(w.path, w.file)+"."+e.Name], all)
	case *ast.SelectorExpr:
		for _, i := range w.file.Imports {
			from, _ := strconv.Unquote(i.Path.Value)
			name := path.Base(from)
			if i.Name != nil {
				name = i.Name.Name
			}
			if in, ok := strings.CutPrefix(from, module); ok && e.X.(*ast.Ident).Name == name {
				n.methods(n["../"+in+"."+e.Sel.Name], all)
			}
		}
	}
}

// maxLong is how many lines of code, tests aside, may be longer than 120 columns: texts that
// people read or copy as one line.
const maxLong = 300

func TestLinesAreShort(t *testing.T) {
	var long []string
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for i, line := range strings.Split(string(text), "\n") {
			if len(line) > 120 {
				long = append(long, fmt.Sprintf("%s:%d", path, i+1))
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(long) > maxLong {
		t.Errorf("%d lines have more than 120 columns, want at most %d: %v", len(long), maxLong, long)
	}
}
