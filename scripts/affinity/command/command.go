// Package command holds what the commands of the tool share: the streams, the address
// and the key of the engine, the form of --output, and what several themes of commands
// read, watch and print in the same way.
//
// The commands are in the packages below it, one a theme. They import this package and
// not one another, and package main makes the command line of them. It keeps nothing:
// contexts are in the package contexts.
package command

import (
	"bytes"
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
	"github.com/affinityengine/affinity/scripts/affinity/contexts"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/local/operator"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// Environment variables for --url, --app, --key and --key-file. A flag takes precedence.
const (
	URLVariable     = "AFFINITY_URL"
	AppVariable     = "AFFINITY_APP"
	KeyVariable     = "AFFINITY_KEY"
	KeyFileVariable = "AFFINITY_KEY_FILE"
)

// ExitLines is the exit code of a command that left out bad lines.
const ExitLines = 3

// Tool is what the commands share: the streams, the engine's address, and what
// tests replace.
type Tool struct {
	In       io.Reader
	Out, Err io.Writer

	URL, App, Key string
	KeyFile       string // that holds the key

	Output string        // of --output
	JSON   bool          // of --json
	rows   *bytes.Buffer // what a command prints that becomes CSV; nil: none

	Contexts contexts.Store // none: commands know no contexts
	Context  string         // of --context
	// Deployment is that of the context, nil without one.
	Deployment *contexts.Deployment

	given   bool                   // a flag or a variable gives url, app or key
	readKey func() (string, error) // of a context; nil: key has it

	Retry      client.Retry  // of commands that wait for the engine
	WatchEvery time.Duration // how often a job is asked for
	ConfigTTL  time.Duration // how long an engine keeps what it has read of its configuration
}

// Execute executes a command line and returns the exit code of the process.
func (t *Tool) Execute(ctx context.Context, root *cobra.Command, args []string) int {
	out := t.Out
	code := cli.Execute(ctx, root, args, cli.Streams{In: t.In, Out: t.Out, Err: t.Err}, t.advise)
	if t.rows == nil {
		return code
	}
	if err := writeRows(out, t.rows.Bytes()); err != nil {
		fmt.Fprintf(t.Err, "affinity: %v\n", err)
		return max(code, cli.ExitFailed)
	}
	return code
}

// DefaultURL is the address of an engine of `affinity up`.
const DefaultURL = "http://127.0.0.1:8080"

// Complete takes from the environment what no flag gives, and the key from its file.
func (t *Tool) Complete(given func(flag string) bool) error {
	for _, from := range []struct {
		flag, variable string
		to             *string
	}{{"url", URLVariable, &t.URL}, {"app", AppVariable, &t.App}} {
		text := os.Getenv(from.variable)
		if text != "" && !given(from.flag) {
			*from.to = text
		}
		t.given = t.given || text != "" || given(from.flag)
	}
	t.given = t.given || given("key") || given("key-file") || os.Getenv(KeyVariable) != "" ||
		os.Getenv(KeyFileVariable) != ""
	switch {
	case given("key") && given("key-file"):
		return cli.Usagef("--key and --key-file cannot both be given")
	case given("key"):
		return nil
	}
	if key := os.Getenv(KeyVariable); key != "" && !given("key-file") {
		t.Key = key
		return nil
	}
	if !given("key-file") {
		t.KeyFile = os.Getenv(KeyFileVariable)
	}
	if t.KeyFile == "" {
		return nil
	}
	var err error
	t.Key, err = ReadKey(t.KeyFile)
	return err
}

// ReadKey returns the key that a file holds.
func ReadKey(file string) (string, error) {
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

// GivenKey returns the key that the flags, the environment or a context give.
func (t *Tool) GivenKey() (key string, err error) {
	if t.readKey != nil {
		t.Key, err = t.readKey()
	}
	return t.Key, err
}

// Client returns a client of the engine that the flags name. It sends each request
// once.
func (t *Tool) Client() (*client.Client, error) {
	if _, err := t.GivenKey(); err != nil {
		return nil, err
	}
	c, err := client.New(client.Config{URL: t.URL, App: t.App, Key: t.Key, Retry: client.NoRetry})
	if err != nil {
		return nil, cli.Usagef("--url, --app, --key: %v", err)
	}
	if host := Unencrypted(t.URL); host != "" {
		fmt.Fprintf(t.Err, "warning: http sends the key to %s unencrypted: use https\n", cli.Printable(host))
	}
	return c, nil
}

// Unencrypted returns the host of an address to which a key would go in clear text, ""
// for an address with https or of this machine.
func Unencrypted(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" || httpapi.Loopback(u.Host) {
		return ""
	}
	return u.Host
}

// Patient returns a client that repeats requests while the engine is busy or away,
// and prints each wait.
func (t *Tool) Patient(c *client.Client) *client.Client {
	retry := t.Retry
	retry.Notify = func(err error, wait time.Duration) {
		fmt.Fprintf(t.Err, "%s; trying again in %s\n", cli.Printable(err.Error()), wait.Round(time.Millisecond))
	}
	return c.WithRetry(retry)
}

// advise says what to do about an engine that does not answer or does not accept
// the key.
func (t *Tool) advise(err error) string {
	var silent *client.UnreachableError
	switch status := StatusOf(err); {
	case errors.As(err, &silent) && !silent.Reached:
		return "Start an engine with `" + CalledAs() + " up`, or name yours with --url."
	case status == http.StatusUnauthorized:
		return fmt.Sprintf("The engine does not know app %q with this key: give --app and --key, or --key-file.",
			cli.Printable(t.App))
	case status == http.StatusForbidden:
		return "The key lacks the permission: give --key a key that has the permission for this."
	}
	return ""
}

// CalledAs returns how this program is called: by its name, or with `go run`, whose
// binaries have no place of their own.
func CalledAs() string {
	if path, err := os.Executable(); err == nil && strings.Contains(path, "go-build") {
		return "go run ./scripts/affinity"
	}
	return "affinity"
}

// StatusOf is the status of the engine's refusal, 0 if err is not one.
func StatusOf(err error) int {
	var refused *api.Error
	if errors.As(err, &refused) {
		return refused.Status
	}
	return 0
}

// ReadFile reads a file named on the command line. "-" is standard input.
func (t *Tool) ReadFile(path string) ([]byte, error) {
	if path == "-" {
		return io.ReadAll(t.In)
	}
	return os.ReadFile(path)
}

// OperatorClient returns a client of the engine at --url as its operator.
func OperatorClient(t *Tool) (*operator.Client, error) {
	token := os.Getenv(operator.Variable)
	if token == "" {
		return nil, cli.Usagef("for an engine of `affinity up` set %s to the operator's token that it printed, "+
			"for one of `affinity serve` to that in its folder; for a deployed engine give --project",
			operator.Variable)
	}
	c, err := operator.NewClient(t.URL, token)
	if err != nil {
		return nil, cli.Usagef("%v", err)
	}
	return c, nil
}
