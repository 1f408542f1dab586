package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/bench/attack"
	"github.com/affinityengine/affinity/scripts/bench/measure"
)

// attackCommand is the campaign of package attack.
func attackCommand() *cobra.Command {
	o, asJSON, inProcess := attack.Options{}, false, false
	cmd := &cobra.Command{
		Use:   "attack",
		Short: "Attack an engine in little memory, and measure what another app notices",
		Long: "Start an engine like that of `affinity up` in a process of its own with --memory MiB, and attack it with the keys of\n" +
			"one app: events that name objects with very many filters, bodies that unpack to megabytes, bodies that never\n" +
			"arrive, partial updates of large records, and a user with 160,000 values. All the time another app sends events and\n" +
			"reads their users' profiles. The command fails if the engine ends, or takes more memory, or if the other app's\n" +
			"p99 from event to profile exceeds both 250 ms and twice that of the idle engine. Each attack is repeated for --for, so\n" +
			"that there are enough probes for a p99. It takes some minutes.",
		Example: "  affinity bench attack\n  affinity bench attack --memory 512 --idle 10s --json",
		Args:    cli.Subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.Check(); err != nil {
				return cli.Usagef("%v", err)
			}
			name, err := os.Executable()
			if err != nil {
				return fmt.Errorf("find this program to start an engine: %w", err)
			}
			stderr := cmd.ErrOrStderr()
			o.Progress = func(line string) { fmt.Fprintln(stderr, line) }
			bigtable := measure.Server{Close: func() error { return nil }}
			if !inProcess {
				if bigtable, err = startChild(stderr)(cmd.Context(), ""); err != nil {
					return err
				}
			}
			report, err := attack.Run(cmd.Context(), o, attack.Child(stderr, bigtable.Addr, name, "engine"))
			if err := errors.Join(err, bigtable.Close()); err != nil {
				return err
			}
			if asJSON {
				err = cli.PrintJSON(cmd.OutOrStdout(), report)
			} else {
				err = report.Print(cmd.OutOrStdout())
			}
			if failures := report.Failures(); err == nil && len(failures) > 0 {
				err = errors.New(strings.Join(failures, "; "))
			}
			return err
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&o.Memory, "memory", 1024, "memory of the engine, in MiB")
	flags.DurationVar(&o.Idle, "idle", 20*time.Second, "how long to probe the engine before the attacks")
	flags.DurationVar(&o.For, "for", 20*time.Second, "how long each attack is repeated, at least")
	flags.Float64Var(&o.Rate, "rate", 10, "probes a second")
	flags.BoolVar(&inProcess, "in-process", false, "keep the data in the engine's process; its memory then includes them")
	flags.BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

// engineCommand is the engine that attackCommand starts.
func engineCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "engine",
		Short:  "Serve an engine for an attack until standard input ends",
		Hidden: true,
		Args:   cli.Subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return attack.Serve(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
}
