package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	programs "github.com/affinityengine/affinity/shared/local/must"
)

// In a checkout `affinity bench` builds the benchmarks and runs them, from any
// directory of it, with all arguments and their exit code.
func TestBenchInCheckout(t *testing.T) {
	programs.Start(t, programs.Builds)
	t.Chdir("shop")
	affinity(t, "", "bench", "read", "--reads", "0").
		wants(t, cli.ExitUsage, "--reads 0", "Run 'affinity bench read --help' for its usage.")
}

// Elsewhere it runs the binary on the PATH.
func TestBenchOnPath(t *testing.T) {
	dir := t.TempDir()
	script := "#!/bin/sh\necho \"got $*\"\ncat\nexit 7\n"
	must(t, os.WriteFile(filepath.Join(dir, "affinity-bench"), []byte(script), 0o700))
	t.Chdir(dir)
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	r := affinity(t, "input", "bench", "read", "--json", "--url", "x")
	r.wants(t, 7)
	if r.out != "got read --json --url x\ninput" || r.err != "" {
		t.Errorf("printed %q and %q", r.out, r.err)
	}
	affinity(t, "", "bench", "--help").wants(t, 7, "got --help") // the help, too, is the other program's
}

func TestBenchNotFound(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("PATH", dir)
	affinity(t, "", "bench", "read").wants(t, cli.ExitFailed, "go build -o affinity-bench ./scripts/bench")
}
