// Command plan-gate refuses a plan of Terraform by which data would be lost.
//
// Terraform calls a shorter retention an update in place, and an apply may have destroyed
// queues before the protection of a table stops it. The command reads a saved plan, or its
// JSON, before the apply: it prints a line for each address that would lose something and
// exits with 1, or prints "nothing is lost" and exits with 0. For what is no plan it exits with 2.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

const usage = `usage: plan-gate PLAN

PLAN is what terraform plan -out=PLAN has written, or the output of terraform show -json PLAN.
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run returns the code to exit with.
func run(ctx context.Context, args []string, out, errs io.Writer) int {
	if len(args) != 1 || strings.HasPrefix(args[0], "-") {
		fmt.Fprint(errs, usage)
		return 2
	}
	text, err := planJSON(ctx, args[0])
	if err != nil {
		fmt.Fprintf(errs, "plan-gate: %v\n", err)
		return 2
	}
	p, err := decode(text)
	if err != nil {
		fmt.Fprintf(errs, "plan-gate: %s: %v\n", args[0], err)
		return 2
	}
	losses := p.losses()
	for _, loss := range losses {
		fmt.Fprintln(out, loss)
	}
	if len(losses) > 0 {
		fmt.Fprintf(errs, "plan-gate: do not apply this plan unless you mean each of these losses: %d\n", len(losses))
		return 1
	}
	fmt.Fprintln(out, "nothing is lost")
	return 0
}

// planJSON returns the JSON of a plan. Terraform shows a saved plan only where its providers
// are, which is mostly the folder of the plan.
func planJSON(ctx context.Context, path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil || bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) {
		return text, err
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	show := exec.CommandContext(ctx, "terraform", "show", "-no-color", "-json", path)
	if _, err := os.Stat(filepath.Join(filepath.Dir(path), ".terraform")); err == nil {
		show.Dir = filepath.Dir(path)
	}
	text, err = show.Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return nil, fmt.Errorf("terraform show -json %s: %w: %s", path, err, bytes.TrimSpace(failed.Stderr))
	}
	return text, err
}
