package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
)

// exitLines is the exit code of an import whose bad lines were left out.
const exitLines = 3

// tool is what the commands share: the streams, the engine's address, and what
// tests replace.
type tool struct {
	in       io.Reader
	out, err io.Writer

	url, app, key string

	start      func(context.Context, upOptions) (runningStack, error)
	openConfig func(ctx context.Context, project, database string) (configStore, error)
	wait       backoff
	watchEvery time.Duration // between two looks at what is watched; 0: watchEvery
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
	return cli.Execute(ctx, t.rootCommand(), args, t.in, t.out, t.err)
}

func (t *tool) rootCommand() *cobra.Command {
	root := cli.Group(&cobra.Command{
		Use:   "affinity",
		Short: "Run, feed, read and measure Affinity, the personalization engine",
		Example: "  affinity demo                     # an engine with a simulated shop\n" +
			"  affinity up                       # an engine on http://127.0.0.1:8080\n" +
			"  affinity import --objects objects.ndjson events.ndjson.gz\n" +
			"  affinity profile ann",
		PersistentPreRunE: func(*cobra.Command, []string) error {
			if id, _, both := strings.Cut(t.app, ":"); both {
				return cli.Usagef("--app %q: a running engine's app is named by its id alone: --app %s --key KEY", t.app, id)
			}
			return nil
		},
	}, t.upCommand(), t.demoCommand(), t.importCommand(), t.profileCommand(), t.strategyCommand(), t.appCommand(), t.replayCommand(),
		t.loadCommand(), t.recomputeCommand(), t.reenrichCommand(), t.schemaCommand(), t.explainCommand(), t.auditCommand(), t.benchCommand(),
		t.versionCommand())
	root.Version = version()
	root.SetVersionTemplate("{{.Version}}\n")
	root.Flags().Bool("version", false, "print the version of this tool")
	flags := root.PersistentFlags()
	flags.StringVar(&t.url, "url", "http://127.0.0.1:8080", "address of the engine")
	flags.StringVar(&t.app, "app", "demo", "app id")
	flags.StringVar(&t.key, "key", "demokey", "key of the app")
	return root
}

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
