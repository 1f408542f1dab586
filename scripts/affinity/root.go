package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/client"
	"github.com/affinityengine/affinity/shared/config"
	"github.com/affinityengine/affinity/shared/local/operator"
	"github.com/affinityengine/affinity/shared/queue"
	"github.com/affinityengine/affinity/shared/store"
)

// keyVariable is the environment variable for --key.
const keyVariable = "AFFINITY_KEY"

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
	openCipher func(ctx context.Context, kmsKey string) (config.Cipher, error)
	openUsage  func(ctx context.Context, c store.Config) (usageTable, error)
	openLog    func(ctx context.Context, cfg store.Config) (changeLog, error)
	openTasks  func(ctx context.Context, name string) (queue.Queue, func() error, error)
	retry      client.Retry  // of commands that wait for the engine
	watchEvery time.Duration // how often a job is asked for
}

// run executes one command line and returns the exit code of the process.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	t := &tool{
		in: stdin, out: stdout, err: stderr,
		start:      startStack,
		openConfig: openFirestore, openCipher: openKMS, openUsage: openBigtable, openLog: openAuditLog, openTasks: openTasks,
		retry:      client.Retry{Total: 2 * time.Minute},
		watchEvery: 500 * time.Millisecond,
	}
	return t.run(ctx, args)
}

func (t *tool) run(ctx context.Context, args []string) int {
	return cli.Execute(ctx, rootCommand(t), args, cli.Streams{In: t.in, Out: t.out, Err: t.err}, t.advise)
}

func rootCommand(t *tool) *cobra.Command {
	root := cli.Group(&cobra.Command{
		Use:   "affinity",
		Short: "Run, feed, read and measure Affinity, the personalization engine",
		Example: "  affinity demo                     # an engine with a simulated shop\n" +
			"  affinity up                       # an engine on http://127.0.0.1:8080\n" +
			"  affinity import --objects objects.ndjson events.ndjson.gz\n" +
			"  affinity profile ann",
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if id, _, both := strings.Cut(t.app, ":"); both {
				return cli.Usagef("--app %q: a running engine's app is named by its id alone: --app %s --key KEY", t.app, id)
			}
			if key := os.Getenv(keyVariable); key != "" && !cmd.Flags().Changed("key") {
				t.key = key
			}
			return nil
		},
	}, upCommand(t), demoCommand(t), importCommand(t), profileCommand(t), optOutCommand(t), rankCommand(t), boostsCommand(t), feedCommand(t), segmentCommand(t), valuesCommand(t), indexCommand(t), strategyCommand(t), appCommand(t), replayCommand(t),
		loadCommand(t), recomputeCommand(t), reenrichCommand(t), crowdCommand(t), schemaCommand(t), explainCommand(t), auditCommand(t), benchCommand(t),
		backtestCommand(t), tuneCommand(t), tryCommand(t), usageCommand(t), auditLogCommand(t), exportCommand(t),
		wordpressCommand(t), planCommand(t), versionCommand(t))
	root.Version = version()
	root.SetVersionTemplate("{{.Version}}\n")
	root.Flags().Bool("version", false, "print the version of this tool")
	flags := root.PersistentFlags()
	flags.StringVar(&t.url, "url", "http://127.0.0.1:8080", "address of the engine")
	flags.StringVar(&t.app, "app", "demo", "app id")
	flags.StringVar(&t.key, "key", "demokey", "key of the app; $"+keyVariable+" keeps it out of the list of processes")
	return root
}

// client returns a client of the engine that the flags name. It sends each request
// once.
func (t *tool) client() (*client.Client, error) {
	c, err := client.New(client.Config{URL: t.url, App: t.app, Key: t.key, Retry: client.NoRetry})
	if err != nil {
		return nil, cli.Usagef("--url, --app, --key: %v", err)
	}
	if u, err := url.Parse(t.url); err == nil && u.Scheme == "http" && !operator.Loopback(u.Host) {
		fmt.Fprintf(t.err, "warning: http sends the key to %s unencrypted: use https\n", cli.Printable(u.Host))
	}
	return c, nil
}

// patient returns a client that repeats requests while the engine is busy or away,
// and prints each wait.
func (t *tool) patient(c *client.Client) *client.Client {
	retry := t.retry
	retry.Notify = func(err error, wait time.Duration) {
		fmt.Fprintf(t.err, "%s; trying again in %s\n", cli.Printable(err.Error()), wait.Round(time.Millisecond))
	}
	return c.WithRetry(retry)
}

// advise says what to do about an engine that does not answer or does not accept
// the key.
func (t *tool) advise(err error) string {
	var silent *client.UnreachableError
	switch status := statusOf(err); {
	case errors.As(err, &silent) && !silent.Reached:
		return "Start an engine with `go run ./scripts/affinity up`, or name yours with --url."
	case status == http.StatusUnauthorized:
		return fmt.Sprintf("The engine does not know app %q with this key: give --app and --key.", cli.Printable(t.app))
	case status == http.StatusForbidden:
		return "The key lacks the right: give --key a key that has the right for this."
	}
	return ""
}

// statusOf is the status of the engine's refusal, 0 if err is not one.
func statusOf(err error) int {
	var refused *api.Error
	if errors.As(err, &refused) {
		return refused.Status
	}
	return 0
}

// readFile reads a file named on the command line. "-" is standard input.
func (t *tool) readFile(path string) ([]byte, error) {
	if path == "-" {
		return io.ReadAll(t.in)
	}
	return os.ReadFile(path)
}
