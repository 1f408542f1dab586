package measure

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
)

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
	name, remove, err := command.FindProgram(ctx, "affinity-bench", "scripts/bench")
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
