package main

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/affinityengine/affinity/scripts/release/spdx"
)

// rootFile is the package at the root of a function's sources, where the build
// looks for it. It imports the function's package, which registers the function.
const rootFile = `// Package function is the root package of a function's build.
package function

import (
	_ %q

	_ "github.com/GoogleCloudPlatform/functions-framework-go/funcframework"
	_ "github.com/GoogleCloudPlatform/functions-framework-go/functions"
)
`

// bundle is a zip, and the modules that the function links.
type bundle struct {
	data    []byte
	modules []*debug.Module
}

// pack returns the zips of functions from the module at root, in their order.
func pack(ctx context.Context, root string, functions ...string) ([]bundle, error) {
	sources, err := sourcesOf(ctx, root, functions)
	if err != nil {
		return nil, err
	}
	zips := make([]bundle, len(functions))
	for i, function := range functions {
		s, ok := sources["functions/"+function]
		if !ok {
			return nil, fmt.Errorf("functions/%s: go list does not list it", function)
		}
		var terms []spdx.Terms // without Go, which the build of the function adds
		for _, m := range s.modules {
			terms = append(terms, spdx.Terms{Of: m.Path, Dir: m.Dir})
			zips[i].modules = append(zips[i].modules, &debug.Module{Path: m.Path, Version: m.Version, Sum: m.Sum})
		}
		licenses, err := spdx.Licenses("The function "+function+" links", terms)
		if err != nil {
			return nil, err
		}
		files := map[string][]byte{"function.go": fmt.Appendf(nil, rootFile, s.importPath), spdx.LicensesName: licenses}
		for _, path := range append(s.files, "go.mod", "go.sum", "LICENSE") {
			if files[path], err = os.ReadFile(filepath.Join(root, filepath.FromSlash(path))); err != nil {
				return nil, err
			}
		}
		if zips[i].data, err = archive(files); err != nil {
			return nil, fmt.Errorf("package %s: %w", function, err)
		}
	}
	return zips, nil
}

// source is a package of the module, the files from which the platform builds it, as
// paths below the module's root, its own and those of what it links, and the other
// modules that it links, by path.
type source struct {
	importPath string
	files      []string
	modules    []module
}

type module struct {
	Main                    bool
	Path, Version, Sum, Dir string
}

// sourcesOf returns the packages that functions link, by folder. One go list for
// all functions takes as long as one for a single function.
func sourcesOf(ctx context.Context, root string, functions []string) (map[string]source, error) {
	args := []string{"list", "-deps", "-json=ImportPath,Dir,Module,GoFiles,SFiles,EmbedFiles,Deps"}
	for _, function := range functions {
		args = append(args, "./functions/"+function)
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = root
	// The choice of files must not depend on this machine.
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0",
		"GOFLAGS=-tags=disable_grpc_modules", "GOWORK=off")
	out, err := output(cmd)
	if err != nil {
		return nil, err
	}
	byFolder, own := map[string]source{}, map[string][]string{} // files of a package itself, by import path
	modules := map[string]module{}                              // of packages of other modules
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath, Dir                   string
			Module                            *module
			GoFiles, SFiles, EmbedFiles, Deps []string
		}
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return byFolder, nil
		} else if err != nil {
			return nil, fmt.Errorf("decode what go list says: %w", err)
		}
		if p.Module == nil {
			continue
		}
		if !p.Module.Main {
			modules[p.ImportPath] = *p.Module
			continue
		}
		dir, err := filepath.Rel(root, p.Dir)
		if err != nil {
			return nil, err
		}
		for _, name := range slices.Concat(p.GoFiles, p.SFiles, p.EmbedFiles) {
			own[p.ImportPath] = append(own[p.ImportPath], filepath.ToSlash(filepath.Join(dir, name)))
		}
		s, linked := source{importPath: p.ImportPath, files: slices.Clone(own[p.ImportPath])}, map[string]module{}
		for _, dep := range p.Deps { // listed before
			s.files = append(s.files, own[dep]...)
			if m, ok := modules[dep]; ok {
				linked[m.Path] = m
			}
		}
		for _, path := range slices.Sorted(maps.Keys(linked)) {
			s.modules = append(s.modules, linked[path])
		}
		byFolder[filepath.ToSlash(dir)] = s
	}
}

// archive returns a zip of files by their paths. Its bytes depend only on the
// files: they are sorted, have a fixed time, and are not compressed, since the
// result of compression depends on the version of Go.
func archive(files map[string][]byte) ([]byte, error) {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, path := range slices.Sorted(maps.Keys(files)) {
		data := files[path]
		header := &zip.FileHeader{
			Name: path, Method: zip.Store,
			//lint:ignore SA1019 CreateRaw writes no other time. This is 1980-01-01.
			ModifiedDate: 1<<5 | 1,
			CRC32:        crc32.ChecksumIEEE(data), CompressedSize64: uint64(len(data)), UncompressedSize64: uint64(len(data)),
		}
		header.SetMode(0o644)
		f, err := w.CreateRaw(header)
		if err != nil {
			return nil, fmt.Errorf("write %s: %w", path, err)
		}
		if _, err := f.Write(data); err != nil {
			return nil, fmt.Errorf("write %s: %w", path, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// moduleRoot returns the folder of the module that the command runs in.
func moduleRoot(ctx context.Context) (string, error) {
	out, err := output(exec.CommandContext(ctx, "go", "env", "GOMOD"))
	if err != nil {
		return "", err
	}
	file := strings.TrimSpace(string(out))
	if file == "" || file == os.DevNull {
		return "", errors.New("this is not a folder of a Go module: run it in the checkout")
	}
	return filepath.Dir(file), nil
}

// output runs a command. The error holds what the command wrote to its standard
// error.
func output(cmd *exec.Cmd) ([]byte, error) {
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, bytes.TrimSpace(said.Bytes()))
	}
	return out, nil
}
