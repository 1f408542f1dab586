package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/contexts"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// Environment variables for --url, --app, --key and --key-file. A flag takes precedence.
const (
	urlVariable     = "AFFINITY_URL"
	appVariable     = "AFFINITY_APP"
	keyVariable     = "AFFINITY_KEY"
	keyFileVariable = "AFFINITY_KEY_FILE"
)

// exitLines is the exit code of a command that left out bad lines.
const exitLines = 3

// tool is what the commands share: the streams, the engine's address, and what
// tests replace.
type tool struct {
	in       io.Reader
	out, err io.Writer

	url, app, key string
	keyFile       string // that holds the key

	output string        // of --output
	rows   *bytes.Buffer // what a command prints that becomes CSV; nil: none

	contexts contexts.Store         // none: commands know no contexts
	context  string                 // of --context
	given    bool                   // a flag or a variable gives url, app or key
	readKey  func() (string, error) // of a context; nil: key has it

	retry      client.Retry  // of commands that wait for the engine
	watchEvery time.Duration // how often a job is asked for
}

// program is the whole tool: what its commands share, and what some of them start or open.
type program struct {
	*tool
	start starter
	open  openers
}

// run executes one command line and returns the exit code of the process.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	t := &tool{
		in: stdin, out: stdout, err: stderr,
		retry:      client.Retry{Total: 2 * time.Minute},
		watchEvery: 500 * time.Millisecond,
	}
	if folder, err := os.UserConfigDir(); err == nil {
		t.contexts = contexts.New(filepath.Join(folder, "affinity"))
	}
	p := &program{tool: t, start: startStack, open: deployed()}
	return p.run(ctx, args)
}

func (p *program) run(ctx context.Context, args []string) int {
	return p.execute(ctx, rootCommand(p), args)
}

// execute executes a command line and returns the exit code of the process.
func (t *tool) execute(ctx context.Context, root *cobra.Command, args []string) int {
	out := t.out
	code := cli.Execute(ctx, root, args, cli.Streams{In: t.in, Out: t.out, Err: t.err}, t.advise)
	if t.rows == nil {
		return code
	}
	if err := writeRows(out, t.rows.Bytes()); err != nil {
		fmt.Fprintf(t.err, "affinity: %v\n", err)
		return max(code, cli.ExitFailed)
	}
	return code
}

// defaultURL is the address of an engine of `affinity up`.
const defaultURL = "http://127.0.0.1:8080"

func rootCommand(p *program) *cobra.Command {
	t := p.tool
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
			if err := t.setOutput(cmd); err != nil {
				return err
			}
			if err := t.complete(cmd.Flags().Changed); err != nil || !speaks(cmd) {
				return err
			}
			return t.fromContext(cmd.Flags().Changed)
		},
	}, upCommand(t, p.start), demoCommand(t, p.start), importCommand(t), eventsCommand(t), catalogCommand(t), profileCommand(t), userCommand(t), optOutCommand(t), rankCommand(t), boostsCommand(t), feedCommand(t), segmentCommand(t), valuesCommand(t), indexCommand(t), strategyCommand(t), appCommand(t, p.open), replayCommand(t),
		loadCommand(t), recomputeCommand(t), reenrichCommand(t), crowdCommand(t), schemaCommand(t), explainCommand(t), auditCommand(t), benchCommand(t),
		backtestCommand(t), tuneCommand(t), tryCommand(t), usageCommand(t), settingsCommand(t), auditLogCommand(t), exportCommand(t), dumpCommand(t), restoreDumpCommand(t),
		wordpressCommand(t), contextCommand(t), migrateCommand(t), planCommand(t), healthyCommand(t), versionCommand(t))
	root.Version = version()
	root.SetVersionTemplate("{{.Version}}\n")
	root.Flags().Bool("version", false, "print the version of this tool")
	flags := root.PersistentFlags()
	flags.StringVar(&t.url, "url", defaultURL, "address of the engine; $"+urlVariable)
	flags.StringVar(&t.app, "app", "demo", "app id; $"+appVariable)
	flags.StringVar(&t.key, "key", "demokey", "key of the app; $"+keyVariable+" keeps it out of the list of processes")
	flags.StringVar(&t.keyFile, "key-file", "", "file that holds the key; $"+keyFileVariable)
	flags.StringVarP(&t.output, "output", "o", tableOutput, "form of what a command prints: "+strings.Join(outputs, ", "))
	flags.StringVar(&t.context, "context", "", "context to use in place of the current one: see affinity context")
	completeValues(t, root)
	return root
}

// speaks reports whether a command speaks to an engine that is running.
func speaks(cmd *cobra.Command) bool {
	for cmd.HasParent() && cmd.Parent().HasParent() {
		cmd = cmd.Parent()
	}
	switch cmd.Name() {
	case "up", "demo", "context", "plan", "version", "bench", "completion", "help", "__complete", "__completeNoDesc":
		return false
	}
	return true
}

// complete takes from the environment what no flag gives, and the key from its file.
func (t *tool) complete(given func(flag string) bool) error {
	for _, from := range []struct {
		flag, variable string
		to             *string
	}{{"url", urlVariable, &t.url}, {"app", appVariable, &t.app}} {
		text := os.Getenv(from.variable)
		if text != "" && !given(from.flag) {
			*from.to = text
		}
		t.given = t.given || text != "" || given(from.flag)
	}
	t.given = t.given || given("key") || given("key-file") || os.Getenv(keyVariable) != "" || os.Getenv(keyFileVariable) != ""
	switch {
	case given("key") && given("key-file"):
		return cli.Usagef("--key and --key-file cannot both be given")
	case given("key"):
		return nil
	}
	if key := os.Getenv(keyVariable); key != "" && !given("key-file") {
		t.key = key
		return nil
	}
	if !given("key-file") {
		t.keyFile = os.Getenv(keyFileVariable)
	}
	if t.keyFile == "" {
		return nil
	}
	var err error
	t.key, err = readKey(t.keyFile)
	return err
}

// readKey returns the key that a file holds.
func readKey(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read the key: %w", err)
	}
	key := strings.TrimSpace(string(text))
	if key == "" {
		return "", fmt.Errorf("read the key: the file %s is empty", file)
	}
	return key, nil
}

// client returns a client of the engine that the flags name. It sends each request
// once.
func (t *tool) client() (*client.Client, error) {
	if t.readKey != nil {
		var err error
		if t.key, err = t.readKey(); err != nil {
			return nil, err
		}
	}
	c, err := client.New(client.Config{URL: t.url, App: t.app, Key: t.key, Retry: client.NoRetry})
	if err != nil {
		return nil, cli.Usagef("--url, --app, --key: %v", err)
	}
	if host := unencrypted(t.url); host != "" {
		fmt.Fprintf(t.err, "warning: http sends the key to %s unencrypted: use https\n", cli.Printable(host))
	}
	return c, nil
}

// unencrypted returns the host of an address to which a key would go in clear text, ""
// for an address with https or of this machine.
func unencrypted(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" || httpapi.Loopback(u.Host) {
		return ""
	}
	return u.Host
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
		return "Start an engine with `" + calledAs() + " up`, or name yours with --url."
	case status == http.StatusUnauthorized:
		return fmt.Sprintf("The engine does not know app %q with this key: give --app and --key, or --key-file.", cli.Printable(t.app))
	case status == http.StatusForbidden:
		return "The key lacks the permission: give --key a key that has the permission for this."
	}
	return ""
}

// calledAs returns how this program is called: by its name, or with `go run`, whose
// binaries have no place of their own.
func calledAs() string {
	if path, err := os.Executable(); err == nil && strings.Contains(path, "go-build") {
		return "go run ./scripts/affinity"
	}
	return "affinity"
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
