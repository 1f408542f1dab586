//go:build unix

package main

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// image is what the Dockerfile makes: the files of its last stage, in a folder, and
// how they are started.
type image struct {
	root                        string
	entrypoint, command, health []string
	workdir, volume, port       string
}

// built runs the steps of the Dockerfile without Docker. The stages start from empty
// folders, and RUN uses this machine's Go in place of an image's.
func built(t *testing.T) image {
	t.Helper()
	text, err := os.ReadFile("Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	var made image
	stages := map[string]string{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, rest, _ := strings.Cut(line, " ")
		words := strings.Fields(rest)
		switch name {
		case "FROM":
			made = image{root: t.TempDir(), workdir: "/"}
			if i := slices.Index(words, "AS"); i > 0 {
				stages[words[i+1]] = made.root
			}
		case "WORKDIR":
			made.workdir = rest
			if err := os.MkdirAll(filepath.Join(made.root, rest), 0o755); err != nil {
				t.Fatal(err)
			}
		case "COPY":
			made.copy(t, stages, words)
		case "RUN":
			made.run(t, rest)
		case "VOLUME":
			made.volume = rest
		case "EXPOSE":
			made.port = rest
		case "HEALTHCHECK":
			made.health = list(t, rest[strings.Index(rest, "CMD ")+len("CMD "):])
		case "ENTRYPOINT":
			made.entrypoint = list(t, rest)
		case "CMD":
			made.command = list(t, rest)
		case "ARG", "LABEL":
		case "ENV":
			key, value, _ := strings.Cut(rest, "=")
			t.Setenv(key, value)
		default:
			t.Fatalf("the test does not know %s", line)
		}
	}
	hosts := filepath.Join(made.root, "etc", "hosts") // every container has one
	if err := os.MkdirAll(filepath.Dir(hosts), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(hosts, []byte("127.0.0.1 localhost\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return made
}

// list decodes an argument list.
func list(t *testing.T, text string) (words []string) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &words); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return words
}

// copy does one COPY: of the context, or of a file or folder of another stage.
func (m image) copy(t *testing.T, stages map[string]string, words []string) {
	t.Helper()
	if slices.Equal(words, []string{".", "."}) {
		for _, name := range dockerContext(t) {
			copyFile(t, filepath.Join("../..", name), filepath.Join(m.root, m.workdir, name))
		}
		return
	}
	stage, owned := "", false
	for strings.HasPrefix(words[0], "--") {
		if from, ok := strings.CutPrefix(words[0], "--from="); ok {
			stage = stages[from]
		}
		owned = owned || words[0] == "--chown=65532:65532"
		words = words[1:]
	}
	from, to := filepath.Join(stage, words[0]), filepath.Join(m.root, words[1])
	err := filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := filepath.Join(to, strings.TrimPrefix(path, from))
		if entry.IsDir() {
			err = os.MkdirAll(target, 0o755)
		} else {
			copyFile(t, path, target)
		}
		if err == nil && owned && os.Getuid() == 0 {
			err = os.Chown(target, nonroot, nonroot)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

var mount = regexp.MustCompile(`--mount=\S+ `)

// run does one RUN. The paths of the image are below its folder.
func (m image) run(t *testing.T, command string) {
	t.Helper()
	command = strings.ReplaceAll(mount.ReplaceAllString(command, ""), " /out", " "+m.root+"/out")
	cmd := exec.CommandContext(t.Context(), "sh", "-ec", command)
	cmd.Dir, cmd.Env = filepath.Join(m.root, m.workdir), append(os.Environ(), "GOFLAGS=", "GOWORK=off", "GOPROXY=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
}

// dockerContext returns the files of the checkout that .dockerignore leaves in. It
// knows the patterns of that file: *, !NAME and **/PATTERN.
func dockerContext(t *testing.T) (names []string) {
	t.Helper()
	text, err := os.ReadFile("../../.dockerignore")
	if err != nil {
		t.Fatal(err)
	}
	var kept, left []string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "!"):
			kept = append(kept, line[1:])
		case strings.HasPrefix(line, "**/"):
			left = append(left, line[3:])
		case line != "" && line != "*" && !strings.HasPrefix(line, "#"):
			t.Fatalf(".dockerignore: the test does not know %q", line)
		}
	}
	all := run(t, "../..", nil, "git", "ls-files", "--cached", "--others", "--exclude-standard")
	for name := range strings.Lines(all) {
		parts := strings.Split(strings.TrimSpace(name), "/")
		ignored := slices.ContainsFunc(parts, func(part string) bool {
			return slices.ContainsFunc(left, func(pattern string) bool { ok, _ := filepath.Match(pattern, part); return ok })
		})
		if slices.Contains(kept, parts[0]) && !ignored {
			names = append(names, strings.TrimSpace(name))
		}
	}
	return names
}
