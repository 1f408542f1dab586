package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/bench"
)

func (t *tool) benchCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure recomputes, schemas of the log and computing reads on this machine",
		Long: "Measure the engine's own code on an in-process Bigtable, which runs in a process of its own so that the processor time is\n" +
			"the client's alone. No engine need run. scripts/affinity/bench/README.md tells the method.",
		Args: cobra.NoArgs,
		RunE: needsSubcommand,
	}
	cmd.AddCommand(t.benchRecomputeCommand(), t.benchSchemasCommand(), t.benchBackfillCommand(), t.benchHeapCommand(), t.benchReadCommand(), t.benchServeCommand())
	return cmd
}

func (t *tool) benchRecomputeCommand() *cobra.Command {
	o, asJSON := bench.Recompute{}, false
	cmd := &cobra.Command{
		Use:   "recompute",
		Short: "Recompute all profiles from histories, from the log and from narrow rows",
		Long: "Make users with events, load them in the form that a reader reads, and recompute all profiles, without and with writing them.\n" +
			"The floor receives the same rows and decodes nothing. Every profile is checked; a reader that is wrong fails the command.\n" +
			"  narrow       published schema: a row an event, one cell of JSON, encoding/json\n" +
			"  narrow-fast  the same rows, read by the engine\n" +
			"  wide         the engine's log, columns sifted by the server\n" +
			"  wide-client  the engine's log, whole rows, columns sifted by the client\n" +
			"  history      the engine's recompute: user rows, blocks, and what lies outside them",
		Example: "  affinity bench recompute\n  affinity bench recompute --users 2000 --events 500 --readers narrow,history --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Say = t.benchSay()
			report, err := o.Run(cmd.Context(), t.benchServer(o.InProcess))
			return t.benchReport(report, asJSON, err)
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&o.Users, "users", 1000, "users")
	flags.IntVar(&o.Events, "events", 300, "events a user, over 90 days")
	flags.IntVar(&o.Facets, "facets", 8, "facets an event carries")
	flags.IntVar(&o.Values, "values", 2, "the most values an event carries of a facet; it carries 1 to that many")
	flags.IntVar(&o.Selected, "selected", 3, "facets that the strategy scores")
	flags.StringSliceVar(&o.Readers, "readers", bench.Readers, "what to measure")
	flags.IntVar(&o.Tail, "tail", 0, "newest events of each user that are not in his history yet")
	flags.IntVar(&o.Repeat, "repeat", 3, "runs of each measurement, of which the median counts")
	flags.StringVar(&o.CPUProfile, "cpuprofile", "", "file for a CPU profile (pprof) of the recomputes of the last reader named")
	benchFlags(cmd, &o.InProcess, &asJSON)
	return cmd
}

func (t *tool) benchSchemasCommand() *cobra.Command {
	o, asJSON := bench.Schemas{}, false
	cmd := &cobra.Command{
		Use:   "schemas",
		Short: "Compare the schemas of the log, from few users with very many events to very many users with few",
		Long: "Make users with events, write them in each schema, and build all profiles from it; then write them once and hold them to the\n" +
			"formula. Told are time, bytes received, the client's processor time and memory, and what the tables hold.\n" +
			"Schemas:\n" +
			"  narrow-json, narrow-compact  one cell an event, received whole\n" +
			"  wide-json, wide-compact      a cell a facet, columns sifted by the server\n" +
			"  wide-client                  the rows of wide-compact received whole, columns sifted by the client\n" +
			"  history                      the engine's packed histories, which stand beside either log\n" +
			"Scenarios: few, some, many and most are 2, 25, 250 and 2500 users whose events grow in number, shape is users of 500 events\n" +
			"who do. --out makes a directory with results.csv and a plot of each scenario, SCENARIO.svg; without it no file is written.\n" +
			"scripts/affinity/bench/SCHEMAS.md tells how to read it.",
		Example: "  affinity bench schemas --out bench-schemas\n  affinity bench schemas --scenarios shape --counts 10000 --repeat 1\n" +
			"  affinity bench schemas --scenarios few,most --schemas narrow-json,history --scale 10",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Say = t.benchSay()
			report, err := o.Run(cmd.Context(), t.benchServer(o.InProcess))
			return t.benchReport(report, asJSON, err)
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&o.Scenarios, "scenarios", []string{"few", "some", "many", "most"}, "what to measure")
	flags.StringSliceVar(&o.Schemas, "schemas", bench.CompareSchemas, "in which schemas")
	flags.IntSliceVar(&o.Counts, "counts", []int{2500, 5000, 10000, 20000}, "events of all users together, growing")
	flags.IntVar(&o.Scale, "scale", 1, "so many times as many users and events")
	flags.IntVar(&o.Facets, "facets", 8, "facets an event carries")
	flags.IntVar(&o.Values, "values", 2, "the most values an event carries of a facet; it carries 1 to that many")
	flags.IntVar(&o.Selected, "selected", 3, "facets that the strategy scores")
	flags.IntVar(&o.Repeat, "repeat", 3, "runs of each measurement, of which the median counts")
	flags.StringVar(&o.Out, "out", "", "directory for results.csv and the plots; it is made if need be")
	benchFlags(cmd, &o.InProcess, &asJSON)
	return cmd
}

func (t *tool) benchBackfillCommand() *cobra.Command {
	o, asJSON := bench.Backfill{}, false
	cmd := &cobra.Command{
		Use:   "backfill",
		Short: "How fast a log is copied from narrow to wide rows",
		Long: "Backfill a move from narrow to wide without a limit. Beside it, read the narrow rows and then write the wide ones, made\n" +
			"beforehand; and copy the narrow rows as they are, which is less than a backfill has to write. Then the move is verified.\n" +
			"Told too is how many events a second one core turns from narrow into wide in memory.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Say = t.benchSay()
			report, err := o.Run(cmd.Context(), t.benchServer(o.InProcess))
			return t.benchReport(report, asJSON, err)
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&o.Users, "users", 1000, "users")
	flags.IntVar(&o.Events, "events", 100, "events a user, over 90 days")
	flags.IntVar(&o.Repeat, "repeat", 3, "runs of each measurement, of which the median counts")
	benchFlags(cmd, &o.InProcess, &asJSON)
	return cmd
}

func (t *tool) benchHeapCommand() *cobra.Command {
	o, asJSON := bench.Heap{}, false
	cmd := &cobra.Command{
		Use:   "heap",
		Short: "How much memory one recompute of very many users takes",
		Long: "Recompute users with short histories in one call, profiles written, first a tenth of them and then all, and tell the most\n" +
			"memory that was on the heap. A million users take some minutes, and 15 GB for the server.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Say = t.benchSay()
			report, err := o.Run(cmd.Context(), t.benchServer(o.InProcess))
			return t.benchReport(report, asJSON, err)
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&o.Users, "users", 1_000_000, "users")
	flags.IntVar(&o.Events, "events", 20, "events a user")
	benchFlags(cmd, &o.InProcess, &asJSON)
	return cmd
}

func (t *tool) benchReadCommand() *cobra.Command {
	o, asJSON := bench.Read{}, false
	cmd := &cobra.Command{
		Use:   "read",
		Short: "What a read costs that has to compute the profile",
		Long:  "Read profiles that must be computed from histories, one after the other, and tell what that takes on top of its own row reads.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Say = t.benchSay()
			report, err := o.Run(cmd.Context(), t.benchServer(o.InProcess))
			return t.benchReport(report, asJSON, err)
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&o.Events, "events", 500, "events of the user who is read")
	flags.IntVar(&o.Reads, "reads", 5000, "how many reads")
	benchFlags(cmd, &o.InProcess, &asJSON)
	return cmd
}

func benchFlags(cmd *cobra.Command, inProcess, asJSON *bool) {
	cmd.Flags().BoolVar(inProcess, "in-process", false, "run the server in this process: processor time and memory are then those of both")
	cmd.Flags().BoolVar(asJSON, "json", false, "print one JSON document")
}

// benchServeCommand is the process that the others start for their server.
func (t *tool) benchServeCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "serve",
		Short:  "A Bigtable on a free port of 127.0.0.1, until standard input ends",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return bench.Serve(cmd.Context(), t.in, t.out)
		},
	}
}

func (t *tool) benchServer(inProcess bool) bench.Starter {
	if inProcess {
		return bench.InProcess
	}
	return func(ctx context.Context) (bench.Server, error) {
		name, err := os.Executable()
		if err != nil {
			return bench.Server{}, fmt.Errorf("find this program to start a server: %w", err)
		}
		return bench.Child(t.err, name, "bench", "serve")(ctx)
	}
}

// benchSay tells a person who waits what is going on.
func (t *tool) benchSay() func(string) {
	if !isTerminal(t.err) {
		return nil
	}
	return func(what string) { fmt.Fprintln(t.err, what) }
}

func (t *tool) benchReport(report interface{ Print(io.Writer) error }, asJSON bool, err error) error {
	var flag bench.FlagError
	switch {
	case errors.As(err, &flag):
		return usagef("%s", flag.Error())
	case err != nil:
		return err
	case !asJSON:
		return report.Print(t.out)
	}
	document, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the report: %w", err)
	}
	fmt.Fprintf(t.out, "%s\n", document)
	return nil
}
