// Command bench measures the engine: recomputes, the schemas of the log, the
// backfill of a migration, memory, and reads that compute. `affinity bench` runs
// it. benchmarks.md and schemas.md of functions/docs/design explain the methods and hold
// results.
//
// It is separate from the affinity command because it links libraries for plots
// and fonts, which an operator does not need. It keeps nothing: all data is made
// from a seed and lives in an in-process Bigtable.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/scripts/affinity/command/judge"
	"github.com/affinityengine/affinity/scripts/bench/measure"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run executes one command line and returns the exit code of the process.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := cli.Group(&cobra.Command{
		Use:         "bench",
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "affinity bench"},
		Short:       "Measure recomputes, schemas of the log, reads and rankings on this machine",
		Long: "Measure the engine's own code on an in-process Bigtable. It runs in a process of its own, so that the\n" +
			"measured processor time is the client's alone. No engine needs to run.\n" +
			"functions/docs/design/benchmarks.md explains the method.",
	})
	root.CompletionOptions.DisableDefaultCmd = true
	for _, c := range commands {
		root.AddCommand(c.cobra())
	}
	root.AddCommand(serveCommand(), attackCommand(), engineCommand(), differCommand(),
		judge.Rankers(&command.Tool{In: stdin, Out: stdout, Err: stderr}))
	return cli.Execute(ctx, root, args, cli.Streams{In: stdin, Out: stdout, Err: stderr}, nil)
}

// report is the outcome of a measurement. --json prints it as it is.
type report interface{ Print(io.Writer) error }

// cobra makes the command: flags, measurement, report.
func (c benchmark) cobra() *cobra.Command {
	cmd := &cobra.Command{Use: c.name, Short: c.short, Long: c.long, Example: c.example, Args: cli.Subcommand}
	flags := cmd.Flags()
	measurement, common := c.define(flags)
	asJSON := flags.Bool("json", false, "print one JSON document")
	flags.BoolVar(&common.InProcess, "in-process", false,
		"run the server in this process; processor time and memory then include the server's")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		stderr := cmd.ErrOrStderr()
		if cli.IsTerminal(stderr) {
			common.Progress = func(line string) { fmt.Fprintln(stderr, line) }
		}
		start := measure.Starter(measure.InProcess)
		if !common.InProcess {
			start = startChild(stderr)
		}
		report, err := measurement(cmd.Context(), start)
		var flag measure.FlagError
		if errors.As(err, &flag) {
			return cli.Usagef("%s", flag.Error())
		}
		if err != nil {
			return err
		}
		if *asJSON {
			return cli.PrintJSON(cmd.OutOrStdout(), report)
		}
		return report.Print(cmd.OutOrStdout())
	}
	return cmd
}

// serveCommand is the server process that the other commands start.
func serveCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "serve [DIR]",
		Short:  "Serve a Bigtable that keeps its data in memory, or in a folder",
		Hidden: true,
		Args:   cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return measure.Serve(cmd.Context(), strings.Join(args, ""), cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
}

func startChild(stderr io.Writer) measure.Starter {
	return func(ctx context.Context, dir string) (measure.Server, error) {
		name, err := os.Executable()
		if err != nil {
			return measure.Server{}, fmt.Errorf("find this program to start a server: %w", err)
		}
		return measure.Child(stderr, name, "serve")(ctx, dir)
	}
}
