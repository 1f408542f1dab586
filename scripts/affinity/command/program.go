package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const modulePath = "github.com/affinityengine/affinity"

// FindProgram returns the path of a program that is not part of the tool, by the name of its binary and its folder
// in a checkout, and a function to call once it has ended. In a checkout it builds the program from the sources there.
// Elsewhere it looks beside this program and then on the PATH.
func FindProgram(ctx context.Context, binary, folder string) (name string, remove func(), err error) {
	if root := checkout(); root != "" {
		if tool, err := exec.LookPath("go"); err == nil {
			return buildProgram(ctx, tool, root, binary, folder)
		}
	}
	if self, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(self), binary)
		if name, err := exec.LookPath(beside); err == nil {
			return name, func() {}, nil
		}
	}
	if name, err := exec.LookPath(binary); err == nil {
		return name, func() {}, nil
	}
	return "", nil, fmt.Errorf("%s is a program of its own, and it was not found: run this command in a checkout of "+
		"Affinity, with Go installed; or build it there with `go build -o %[1]s ./%[2]s` and put it on the PATH or beside affinity", binary, folder)
}

// checkout is the root of the module that holds the working directory, "" if
// that is not Affinity's.
func checkout() string {
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	for {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil {
			if first, _, _ := strings.Cut(string(text), "\n"); strings.TrimSpace(first) == "module "+modulePath {
				return dir
			}
			return ""
		}
		if parent := filepath.Dir(dir); parent != dir && errors.Is(err, fs.ErrNotExist) {
			dir = parent
			continue
		}
		return ""
	}
}

// buildProgram builds a program into a directory that remove deletes. `go run` would do the same, but hides the
// program's exit code.
func buildProgram(ctx context.Context, goTool, root, binary, folder string) (name string, remove func(), err error) {
	dir, err := os.MkdirTemp("", binary)
	if err != nil {
		return "", nil, fmt.Errorf("build %s: %w", binary, err)
	}
	remove = func() { _ = os.RemoveAll(dir) } // the system clears what stays
	name = filepath.Join(dir, binary)
	cmd := exec.CommandContext(ctx, goTool, "build", "-o", name, "./"+folder)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		remove()
		return "", nil, fmt.Errorf("build %s (go build ./%s in %s): %w\n%s", binary, folder, root, err, out)
	}
	return name, remove, nil
}
