package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/render"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/client"
)

func auditCommand(t *tool) *cobra.Command {
	sample := 0
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Compare profiles of a sample of users with the event log",
		Long: "Compare the profiles of a sample of users, stored and computed, with the formula over every event in the log. Print\n" +
			"a line per difference and exit 1 if there is any. The engine stops after one minute and reports how far it got.\n" +
			"The key needs the right admin.",
		Example: "  affinity audit --sample 1000",
		Args:    cli.Subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if sample < 1 || sample > api.MaxAuditSample {
				return cli.Usagef("--sample %d: must be from 1 to %d", sample, api.MaxAuditSample)
			}
			c, err := t.client()
			if err != nil {
				return err
			}
			return audit(cmd.Context(), c, t.out, sample)
		},
	}
	cmd.Flags().IntVar(&sample, "sample", api.DefaultAuditSample, "how many users to compare")
	return cmd
}

func audit(ctx context.Context, c *client.Client, out io.Writer, sample int) error {
	a, err := c.Audit(ctx, api.AuditRequest{Sample: &sample})
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	if err := render.Audit(out, a); err != nil {
		return err
	}
	if a.Differing > 0 {
		return fmt.Errorf("%s not match the log: %s", profilesDo(a.Differing), render.AuditExtent(a))
	}
	return nil
}

func profilesDo(n int) string {
	if n == 1 {
		return "the profile of 1 user does"
	}
	return fmt.Sprintf("the profiles of %d users do", n)
}
