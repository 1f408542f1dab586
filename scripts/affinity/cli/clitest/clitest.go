// Package clitest checks what a command line prints and how it ends. Tests of
// the commands use it; it keeps nothing.
package clitest

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
)

// Result is the outcome of one command line.
type Result struct {
	Code     int
	Out, Err string
}

// Run executes a program's run function with this standard input.
func Run(ctx context.Context, run func(ctx context.Context, args []string, stdin io.Reader, stdout,
	stderr io.Writer) int,
	stdin string, args ...string) Result {
	var out, err bytes.Buffer
	code := run(ctx, args, strings.NewReader(stdin), &out, &err)
	return Result{code, out.String(), err.String()}
}

// Wants fails the test unless the exit code is this one and each text was
// printed, on stdout or stderr.
func (r Result) Wants(t *testing.T, code int, texts ...string) {
	t.Helper()
	if r.Code != code {
		t.Errorf("exit code %d, want %d", r.Code, code)
	}
	for _, text := range texts {
		if !strings.Contains(r.Out+r.Err, text) {
			t.Errorf("output lacks %q", text)
		}
	}
	if t.Failed() {
		t.Logf("stdout:\n%s\nstderr:\n%s", r.Out, r.Err)
	}
}
