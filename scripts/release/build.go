package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/affinityengine/affinity/scripts/release/spdx"
)

// tool is the package of the command line tool.
const tool = "./scripts/affinity"

// builder builds the archives of one version.
type builder struct {
	root, scratch string // the module, and a folder for binaries
	version       string
	at            time.Time         // of every file
	completion    map[string][]byte // scripts by their names in the archive
}

// release builds the tool for one platform and returns its archive and its SPDX
// list by their names.
func (b *builder) release(ctx context.Context, platform string) (map[string][]byte, error) {
	goos, goarch, ok := strings.Cut(platform, "/")
	if !ok || !slices.Contains(platforms, platform) {
		return nil, fmt.Errorf("not a platform of a release: these are %s", strings.Join(platforms, ", "))
	}
	path, err := b.build(ctx, goos, goarch)
	if err != nil {
		return nil, err
	}
	binary, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	info, err := buildinfo.Read(bytes.NewReader(binary))
	if err != nil {
		return nil, fmt.Errorf("read what the binary was built from: %w", err)
	}
	licenses, err := b.licenses(ctx, info)
	if err != nil {
		return nil, err
	}
	own, err := os.ReadFile(filepath.Join(b.root, "LICENSE"))
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("affinity_%s_%s_%s", b.version, goos, goarch)
	files := map[string]file{
		filepath.Base(path): {binary, true},
		"LICENSE":           {own, false},
		spdx.LicensesName:   {licenses, false},
	}
	for script, text := range b.completion {
		files["completions/"+script] = file{text, false}
	}
	packed, archive := name+".tar.gz", tarball
	if goos == "windows" {
		packed, archive = name+".zip", zipped
	}
	data, err := archive(name, files, b.at)
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", packed, err)
	}
	list, err := spdx.List(spdx.Source{File: packed, SHA256: sha256Of(data), Version: b.version, Commit: revision(info),
		At: b.at, Go: info.GoVersion, Modules: info.Deps})
	if err != nil {
		return nil, err
	}
	made := map[string][]byte{packed: data, name + ".spdx.json": list}
	if goos == "linux" {
		made[fmt.Sprintf("affinity_%s_%s.deb", debVersion(b.version), goarch)], err = deb(b.version, goarch, files, b.at)
	}
	return made, err
}

// build builds the tool for a platform and returns the path of the binary. It
// depends on the commit and on Go, and neither on this folder nor on the
// environment.
func (b *builder) build(ctx context.Context, goos, goarch string) (string, error) {
	path := filepath.Join(b.scratch, goos+"-"+goarch, "affinity")
	if goos == "windows" {
		path += ".exe"
	}
	if _, err := os.Stat(path); err == nil { // built for its completions
		return path, nil
	}
	_, err := output(ctx, b.root, []string{"GOOS=" + goos, "GOARCH=" + goarch, "CGO_ENABLED=0", "GOAMD64=v1",
		"GOARM64=v8.0",
		"GOFLAGS=", "GOEXPERIMENT=", "GOWORK=off"},
		"go", "build", "-trimpath", "-tags=disable_grpc_modules", "-buildvcs=true", "-ldflags=-s -w", "-o", path, tool)
	return path, err
}

// shells are those that the tool writes completions for, with the name by which
// each looks for the script.
var shells = map[string]string{"bash": "affinity.bash", "zsh": "_affinity", "fish": "affinity.fish",
	"powershell": "affinity.ps1"}

// completions asks the tool, built for this machine, for its completion scripts.
func (b *builder) completions(ctx context.Context) error {
	path, err := b.build(ctx, runtime.GOOS, runtime.GOARCH)
	if err != nil {
		return err
	}
	b.completion = map[string][]byte{}
	for shell, name := range shells {
		if b.completion[name], err = output(ctx, "", nil, path, "completion", shell); err != nil {
			return err
		}
	}
	return nil
}

// licenses returns the licences and notices of Go and of every module that the
// binary links.
func (b *builder) licenses(ctx context.Context, info *buildinfo.BuildInfo) ([]byte, error) {
	goroot, err := output(ctx, b.root, nil, "go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	terms := []spdx.Terms{{Of: "Go " + info.GoVersion, Dir: strings.TrimSpace(string(goroot))}}
	args := []string{"list", "-m", "-f", "{{.Path}}\t{{.Dir}}"}
	for _, dep := range info.Deps {
		args = append(args, dep.Path)
	}
	list, err := output(ctx, b.root, []string{"GOFLAGS=-mod=readonly", "GOWORK=off"}, "go", args...)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(list)) {
		module, dir, _ := strings.Cut(strings.TrimSpace(line), "\t")
		terms = append(terms, spdx.Terms{Of: module, Dir: dir})
	}
	return spdx.Licenses("affinity "+b.version+" links Go and", terms)
}

// revision returns the commit of a binary, "" if it names none.
func revision(info *buildinfo.BuildInfo) string {
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return ""
}

func sha256Of(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// checksums returns the sums of files as sha256sum prints and checks them.
func checksums(sums map[string]string) []byte {
	var out bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		fmt.Fprintf(&out, "%s  %s\n", sums[name], name)
	}
	return out.Bytes()
}
