package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/bench/differ"
)

// differCommand compares an engine with a model.
func differCommand() *cobra.Command {
	o, memory := differ.Options{}, 0
	cmd := &cobra.Command{
		Use:   "differ",
		Short: "Compare a local engine with a model of the formula, under random operations and kills",
		Long: "Start `affinity up --data` with empty folders, one after the other, and send it random operations of a seed over HTTP:\n" +
			"events ahead of the clock, late, repeated and without a time, calls of SDKs, imports, objects, numeric bands, strategies,\n" +
			"deletions, opt-outs, write windows, jobs, exports and dumps into other apps. The process is killed and restarted between and\n" +
			"during requests. A model that shares no code with the engine says what each answer must be.\n" +
			"\n" +
			"The report counts what was done and compared. At a difference the command prints the seed, the step, the request and both\n" +
			"answers, keeps the data of the engine, and exits with 1. The same seed has the same operations; only the moments of kills,\n" +
			"and with them the interplay of the apps, differ.",
		Example: "  affinity bench differ --for 10m\n" +
			"  affinity bench differ --seed 17 --steps 300 --keep ./differ-data",
		Args: cli.Subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Steps < 0 || o.For < 0 || memory < 1 {
				return cli.Usagef("--steps and --for must not be negative, --memory must be 1 or more")
			}
			if cmd.Flags().Changed("steps") && !cmd.Flags().Changed("for") {
				o.For = 0
			}
			o.Memory = int64(memory) << 20
			if stderr := cmd.ErrOrStderr(); cli.IsTerminal(stderr) {
				o.Progress = func(line string) { fmt.Fprintln(stderr, line) }
			}
			return runDiffer(cmd.Context(), cmd, o)
		},
	}
	flags := cmd.Flags()
	flags.Uint64Var(&o.Seed, "seed", 1, "seed of the first episode; the others count up")
	flags.DurationVar(&o.For, "for", time.Minute, "how long to go on with new episodes")
	flags.IntVar(&o.Steps, "steps", differ.DefaultSteps,
		"operations of each app in an episode; without --for there is one episode")
	flags.StringVar(&o.Keep, "keep", "", "folder for the data of all episodes (default: a temporary one, kept if "+
		"there is a difference)")
	flags.StringVar(&o.Engine, "engine", "", "program to test (default: scripts/affinity of this checkout, built first)")
	flags.IntVar(&memory, "memory", differ.DefaultMemory>>20, "resident memory that the engine may take, in MB")
	return cmd
}

func runDiffer(ctx context.Context, cmd *cobra.Command, o differ.Options) (err error) {
	if o.Engine == "" {
		dir, err := os.MkdirTemp("", "affinity-program-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		o.Engine = filepath.Join(dir, "affinity")
		if out, err := exec.CommandContext(ctx, "go", "build", "-o", o.Engine,
			"github.com/affinityengine/affinity/scripts/affinity").CombinedOutput(); err != nil {
			return fmt.Errorf("build the engine, which needs Go and the checkout: %w\n%s", err, out)
		}
	}
	err = differ.Run(ctx, cmd.OutOrStdout(), o)
	var d *differ.Difference
	if errors.As(err, &d) {
		return errors.New("the engine differs from the model") // the report says how
	}
	return err
}
