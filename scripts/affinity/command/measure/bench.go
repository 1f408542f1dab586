package measure

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
)

// The benchmarks' program: the name of its binary, and its package in a
// checkout.
const (
	benchProgram = "affinity-bench"
	benchPackage = modulePath + "/scripts/bench"
	modulePath   = "github.com/affinityengine/affinity"
)

// errNoBench says how to get the benchmarks' program.
var errNoBench = errors.New("the benchmarks are a program of their own, and it was not found: run this " +
	"command in a checkout of Affinity, with Go installed; " +
	"or build it there with `go build -o " + benchProgram + " ./scripts/bench` and put it on the PATH or beside affinity")

// Bench returns the command bench.
func Bench(t *command.Tool) *cobra.Command {
	return &cobra.Command{
		Use:   "bench",
		Short: "Measure recomputes, schemas of the log and reads on this machine",
		// All arguments are the other program's, --help too.
		DisableFlagParsing: true,
		RunE:               func(cmd *cobra.Command, args []string) error { return runBench(cmd.Context(), t, args) },
	}
}

// runBench runs the benchmarks' program with these arguments and exits as it does.
func runBench(ctx context.Context, t *command.Tool, args []string) error {
	name, remove, err := findBench(ctx)
	if err != nil {
		return err
	}
	defer remove()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = t.In, t.Out, t.Err
	// The terminal sends Ctrl-C to both programs. Another signal from here would
	// be the second, which ends the other without its cleanup.
	cmd.Cancel, cmd.WaitDelay = func() error { return nil }, 5*time.Second
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() > 0 {
		return cli.SilentError(exit.ExitCode())
	}
	if err != nil {
		return fmt.Errorf("run %s: %w", name, err)
	}
	return nil
}

// findBench returns the path of the benchmarks' program, and a function to call
// once it has ended. In a checkout it builds the program from the sources there.
// Elsewhere it looks beside this program and then on the PATH.
func findBench(ctx context.Context) (name string, remove func(), err error) {
	if root := checkout(); root != "" {
		if tool, err := exec.LookPath("go"); err == nil {
			return buildBench(ctx, tool, root)
		}
	}
	if self, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(self), benchProgram)
		if name, err := exec.LookPath(beside); err == nil {
			return name, func() {}, nil
		}
	}
	if name, err := exec.LookPath(benchProgram); err == nil {
		return name, func() {}, nil
	}
	return "", nil, errNoBench
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

// buildBench builds the program into a directory that remove deletes. `go run`
// would do the same, but hides the program's exit code.
func buildBench(ctx context.Context, goTool, root string) (name string, remove func(), err error) {
	dir, err := os.MkdirTemp("", benchProgram)
	if err != nil {
		return "", nil, fmt.Errorf("build the benchmarks: %w", err)
	}
	remove = func() { _ = os.RemoveAll(dir) } // the system clears what stays
	name = filepath.Join(dir, benchProgram)
	cmd := exec.CommandContext(ctx, goTool, "build", "-o", name, benchPackage)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		remove()
		return "", nil, fmt.Errorf("build the benchmarks (go build %s in %s): %w\n%s", benchPackage, root, err, out)
	}
	return name, remove, nil
}
