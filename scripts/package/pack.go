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
	"slices"
	"strings"
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

// pack returns the zip of one function from the module at root.
func pack(ctx context.Context, root, function string) ([]byte, error) {
	importPath, paths, err := sources(ctx, root, "./functions/"+function)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{"function.go": fmt.Appendf(nil, rootFile, importPath)}
	for _, path := range append(paths, "go.mod", "go.sum") {
		if files[path], err = os.ReadFile(filepath.Join(root, filepath.FromSlash(path))); err != nil {
			return nil, err
		}
	}
	return archive(files)
}

// sources returns the files of the module from which the platform builds a package,
// as paths below root, and the package's import path.
func sources(ctx context.Context, root, pkg string) (importPath string, paths []string, err error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-deps", "-json=ImportPath,Dir,Module,GoFiles,SFiles,EmbedFiles", pkg)
	cmd.Dir = root
	// The choice of files must not depend on this machine.
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off")
	out, err := output(cmd)
	if err != nil {
		return "", nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(out))
	for {
		var p struct {
			ImportPath, Dir             string
			Module                      *struct{ Main bool }
			GoFiles, SFiles, EmbedFiles []string
		}
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return importPath, paths, nil // the package itself comes last
		} else if err != nil {
			return "", nil, fmt.Errorf("decode what go list says: %w", err)
		}
		importPath = p.ImportPath
		if p.Module == nil || !p.Module.Main {
			continue
		}
		dir, err := filepath.Rel(root, p.Dir)
		if err != nil {
			return "", nil, err
		}
		for _, name := range slices.Concat(p.GoFiles, p.SFiles, p.EmbedFiles) {
			paths = append(paths, filepath.ToSlash(filepath.Join(dir, name)))
		}
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
