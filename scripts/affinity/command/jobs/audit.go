package jobs

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/scripts/affinity/render"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
)

// Audit returns the command audit.
func Audit(t *command.Tool) *cobra.Command {
	sample, segments := 0, false
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Compare profiles of a sample of users with the event log, or segments with profiles",
		Long: "Compare the profiles of a sample of users, stored and computed, with the formula over every event in the log. Print\n" +
			"a line per difference and exit 1 if there is any. The engine stops after one minute and reports how far it got.\n" +
			"Requires a key with the permission admin.\n\n" +
			"With --segments compare answers about segments with profiles: for conditions made of what the profiles of the sample\n" +
			"hold, the users who are found, and their scores, with those by the profiles. A sample of all users is a full scan.",
		Example: "  affinity audit --sample 1000\n" +
			"  affinity audit --segments --sample 1000",
		Args:    cli.Subcommand,
		PreRunE: func(*cobra.Command, []string) error { return cli.Within("sample", sample, 1, api.MaxAuditSample) },
		RunE: t.With(func(ctx context.Context, c *client.Client, _ []string) error {
			if segments {
				return auditSegments(ctx, t, c, sample)
			}
			return audit(ctx, t, c, sample)
		}),
	}
	cmd.Flags().IntVar(&sample, "sample", api.DefaultAuditSample, "how many users to compare")
	t.JSONFlag(cmd, command.JSONUsage)
	cmd.Flags().BoolVar(&segments, "segments", false, "compare answers about segments with profiles")
	return cmd
}

func audit(ctx context.Context, t *command.Tool, c *client.Client, sample int) error {
	var raw []byte
	a, err := c.Jobs().Audit(client.WithRawAnswer(ctx, &raw), api.AuditRequest{Sample: &sample})
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	if err := printAudit(t, a, raw, render.Audit); err != nil {
		return err
	}
	if a.Differing > 0 {
		return fmt.Errorf("%s not match the log: %s", profilesDo(a.Differing), render.AuditExtent(a))
	}
	return nil
}

// printAudit prints an audit in words, or as the engine sent it.
func printAudit(t *command.Tool, a api.Audit, raw []byte, inWords func(io.Writer, api.Audit) error) error {
	if t.JSON {
		return command.PrintRaw(t.Out, raw)
	}
	return inWords(t.Out, a)
}

func auditSegments(ctx context.Context, t *command.Tool, c *client.Client, sample int) error {
	var raw []byte
	a, err := c.Jobs().Audit(client.WithRawAnswer(ctx, &raw), api.AuditRequest{Sample: &sample, Segments: true})
	if err != nil {
		return fmt.Errorf("audit segments: %w", err)
	}
	if a.Segments == nil {
		return errors.New("audit segments: the answer says nothing of segments")
	}
	if err := printAudit(t, a, raw, render.SegmentsAudit); err != nil {
		return err
	}
	if n := len(a.Segments.Differences) + a.Segments.Omitted; n > 0 {
		return fmt.Errorf("%s between segments and profiles: %s", cli.Count(n, "difference"), render.SegmentsExtent(a))
	}
	return nil
}

func profilesDo(n int) string {
	if n == 1 {
		return "the profile of 1 user does"
	}
	return fmt.Sprintf("the profiles of %d users do", n)
}
