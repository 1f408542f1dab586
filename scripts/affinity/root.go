package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// The exit codes of every command.
const (
	exitFine  = 0
	exitFail  = 1 // the command failed: no engine, refused, broken input
	exitUsage = 2 // the command line is wrong
	exitLines = 3 // the import went in, but for some lines
)

// tool is what the commands share: the streams, where the engine is, and the ways to the world that tests replace.
type tool struct {
	in       io.Reader
	out, err io.Writer

	url, app, key string

	start      func(context.Context, upOptions) (runningStack, error)
	openConfig func(ctx context.Context, project, database string) (configStore, error)
	wait       backoff
	watchEvery time.Duration // between two looks at what is watched; 0: watchEvery

	parsed bool // the command line was right: what fails from here on is the command, not its usage
}

// run executes one command line and returns the exit code of the process.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	t := &tool{
		in: stdin, out: stdout, err: stderr,
		start:      startStack,
		openConfig: openFirestore,
		wait:       backoff{first: 200 * time.Millisecond, most: 5 * time.Second, total: 2 * time.Minute},
	}
	return t.run(ctx, args)
}

func (t *tool) run(ctx context.Context, args []string) int {
	root := t.rootCommand()
	root.SetArgs(args)
	root.SetIn(t.in)
	root.SetOut(t.out)
	root.SetErr(t.err)
	cmd, err := root.ExecuteContextC(ctx)

	var usage usageError
	var lines badLinesError
	switch {
	case err == nil:
		return exitFine
	case errors.As(err, &lines):
		fmt.Fprintf(t.err, "affinity: %v\n", err)
		return exitLines
	case !t.parsed, errors.As(err, &usage):
		fmt.Fprintf(t.err, "affinity: %v\nRun '%s --help' for its usage.\n", err, cmd.CommandPath())
		return exitUsage
	case ctx.Err() != nil:
		fmt.Fprintf(t.err, "affinity: interrupted: %v\n", err)
		return exitFail
	default:
		fmt.Fprintf(t.err, "affinity: %v\n", err)
		return exitFail
	}
}

func (t *tool) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "affinity",
		Short: "Run, feed, read and measure Affinity, the personalization engine",
		Example: "  affinity demo                     # an engine, a simulated shop, and what comes out\n" +
			"  affinity up                       # an engine on http://127.0.0.1:8080\n" +
			"  affinity import --objects objects.ndjson events.ndjson.gz\n" +
			"  affinity profile ann",
		Args:          cobra.NoArgs,
		RunE:          needsSubcommand,
		SilenceErrors: true,
		SilenceUsage:  true,
		// Runs after flags and arguments were found right, before the command.
		PersistentPreRunE: func(*cobra.Command, []string) error {
			t.parsed = true
			if id, _, both := strings.Cut(t.app, ":"); both {
				return usagef("--app %q: a running engine's app is named by its id alone: --app %s --key KEY", t.app, id)
			}
			return nil
		},
	}
	root.Version = version()
	root.SetVersionTemplate("{{.Version}}\n")
	root.Flags().Bool("version", false, "print the version of this tool")
	root.CompletionOptions.HiddenDefaultCmd = true
	flags := root.PersistentFlags()
	flags.StringVar(&t.url, "url", "http://127.0.0.1:8080", "where the engine answers")
	flags.StringVar(&t.app, "app", "demo", "app id")
	flags.StringVar(&t.key, "key", "demokey", "key of the app")
	root.AddCommand(t.upCommand(), t.demoCommand(), t.importCommand(), t.profileCommand(), t.strategyCommand(),
		t.appCommand(), t.replayCommand(), t.loadCommand(), t.recomputeCommand(), t.reenrichCommand(), t.schemaCommand(), t.explainCommand(), t.auditCommand(), t.benchCommand(), t.versionCommand())
	return root
}

// needsSubcommand is what a command that only groups others does by itself.
func needsSubcommand(cmd *cobra.Command, _ []string) error {
	cmd.SetOut(cmd.ErrOrStderr())
	if err := cmd.Help(); err != nil {
		return err
	}
	return usagef("%s needs a command", cmd.CommandPath())
}

// usageError is a command line that is wrong in a way that only the command itself can tell.
type usageError struct{ message string }

func (e usageError) Error() string { return e.message }

func usagef(format string, args ...any) error { return usageError{fmt.Sprintf(format, args...)} }

// openInput opens a file named on the command line; "-" is standard input.
func (t *tool) openInput(path string) (io.ReadCloser, error) {
	if path == "-" {
		return newStdin(t.in), nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open input: %w", err)
	}
	return f, nil
}
