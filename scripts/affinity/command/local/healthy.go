package local

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/shared/api/client"
)

// Healthy returns the command healthy.
func Healthy(t *command.Tool) *cobra.Command {
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "healthy",
		Short: "Ask the engine whether it is up; exit code 1 if not",
		Long: "Ask the engine for its version and its commit. The exit code is 0 if it answers, and 1 if it does not. " +
			"With --wait, ask until it\n" +
			"answers, for that long at most: for scripts that start an engine, and for health checks of containers. No " +
			"key is sent.",
		Example: "  affinity healthy\n  affinity up --data affinity-data & affinity healthy --wait 1m && affinity import events.csv",
		Args:    cli.Subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if wait < 0 {
				return cli.Usagef("--wait %s: must be at least 0", wait)
			}
			// The route asks for no key. The client wants one.
			c, err := client.New(client.Config{URL: t.URL, App: t.App, Key: "none", Retry: client.NoRetry})
			if err != nil {
				return cli.Usagef("--url, --app: %v", err)
			}
			health, err := c.Health(cmd.Context())
			if err != nil && wait > 0 {
				_ = cli.Poll(cmd.Context(), wait, func() (bool, error) { // err says more than its error
					health, err = c.Health(cmd.Context())
					return err == nil, cmd.Context().Err()
				})
			}
			if err != nil {
				return fmt.Errorf("the engine is not up: %w", err)
			}
			release := ""
			if health.Release != "" {
				release = ", commit " + cli.Printable(health.Release)
			}
			_, err = fmt.Fprintf(t.Out, "%s is up, version %s%s\n", t.URL, cli.Printable(health.Version), release)
			return err
		},
	}
	cmd.Flags().DurationVar(&wait, "wait", 0, "how long to wait until the engine answers")
	return cmd
}
