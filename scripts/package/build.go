package main

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// The folder to which the Go buildpack of Cloud Functions moves the sources, the
// folder of the program that it adds, and that program.
const (
	sourceDir  = "serverless_function_source_code"
	programDir = "functions.local/app"
	program    = `package main

import (
	"log"
	"net/http"
	"os"

	_ %q

	"github.com/GoogleCloudPlatform/functions-framework-go/funcframework"
)

func main() {
	http.HandleFunc("/robots.txt", http.NotFound)
	http.HandleFunc("/favicon.ico", http.NotFound)
	port := os.Getenv("PORT")
	if port == "" {
		port = "8080"
	}
	if err := funcframework.Start(port); err != nil {
		log.Fatalf("Function failed to start: %%v\n", err)
	}
}
`
)

// build builds a zip as the Go buildpack of Cloud Functions does, in an empty
// folder, and returns the path of the program.
func build(ctx context.Context, data []byte, dir string) (string, error) {
	source := filepath.Join(dir, sourceDir)
	if err := unpack(data, source); err != nil {
		return "", fmt.Errorf("unpack: %w", err)
	}
	if err := rootPackage(source); err != nil {
		return "", err
	}
	module, err := output(goCommand(ctx, source, "list", "-m"))
	if err != nil {
		return "", err
	}
	importPath := strings.TrimSpace(string(module))
	if strings.ContainsAny(importPath, " \n") {
		return "", fmt.Errorf("the zip must hold one module, and no go.work: %q", importPath)
	}
	if first, _, _ := strings.Cut(importPath, "/"); !strings.Contains(first, ".") {
		return "", fmt.Errorf("the first part of the module's path must contain a dot: %s", importPath)
	}
	app := filepath.Join(source, filepath.FromSlash(programDir))
	if err := os.MkdirAll(app, 0o755); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(app, "main.go"), fmt.Appendf(nil, program, importPath), 0o644); err != nil {
		return "", err
	}
	if _, err := output(goCommand(ctx, source, "mod", "tidy")); err != nil {
		return "", err
	}
	path := filepath.Join(dir, "main")
	_, err = output(goCommand(ctx, source, "build", "-o", path, app))
	return path, err
}

// goCommand returns a go command that runs in a folder outside of any workspace.
func goCommand(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(cmd.Environ(), "GOWORK=")
	return cmd
}

func unpack(data []byte, dir string) error {
	r, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return err
	}
	for _, f := range r.File {
		if !filepath.IsLocal(f.Name) {
			return fmt.Errorf("%q lies outside of the zip", f.Name)
		}
		if strings.HasSuffix(f.Name, "/") { // a folder, in an archive of Git's
			continue
		}
		path := filepath.Join(dir, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		in, err := f.Open()
		if err != nil {
			return err
		}
		content, err := io.ReadAll(in)
		if err := errors.Join(err, in.Close()); err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
		if err := os.WriteFile(path, content, f.Mode()); err != nil {
			return err
		}
	}
	return nil
}

// rootPackage checks that the files at the root of the sources are one package that
// imports the framework.
func rootPackage(dir string) error {
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return err
	}
	var names, imports []string
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		names = append(names, file.Name.Name)
		for _, spec := range file.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			imports = append(imports, name)
		}
	}
	slices.Sort(names)
	switch names = slices.Compact(names); {
	case len(names) == 0:
		return errors.New("unable to find Go package: the zip has no Go file at its root")
	case len(names) > 1:
		return fmt.Errorf("multiple packages in user code directory: %s", strings.Join(names, ", "))
	case names[0] == "main":
		return errors.New("the package at the root is main, which cannot be imported")
	case !slices.Contains(imports, "github.com/GoogleCloudPlatform/functions-framework-go/functions"):
		return errors.New("the package at the root does not import the framework's functions: its functions would " +
			"not be registered")
	}
	return nil
}
