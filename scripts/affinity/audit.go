package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
)

const (
	auditsPath = "/1/audits"
	// maxAudited is the most users the engine audits at a time.
	maxAudited = 10_000
)

// auditAnswer is what POST /1/audits answers.
type auditAnswer struct {
	Sampled     int               `json:"sampled"`
	Compared    int               `json:"compared"`
	Stored      int               `json:"stored"`
	Events      int               `json:"events"`
	ByScorer    int               `json:"byScorer"`
	Differing   int               `json:"differing"`
	Differences []auditDifference `json:"differences"`
	Omitted     int               `json:"omitted"`
}

type auditDifference struct {
	UserToken string          `json:"userToken"`
	Which     string          `json:"which"`
	What      string          `json:"what"`
	Facet     string          `json:"facet"`
	Value     string          `json:"value"`
	HalfLife  int             `json:"halfLife"`
	Want      json.RawMessage `json:"want"`
	Got       json.RawMessage `json:"got"`
}

func (t *tool) auditCommand() *cobra.Command {
	sample := 0
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Compare profiles of a sample of users with the log",
		Long: "Compare profiles of a sample of users, stored and computed, with the formula over every event in the log. Prints a line a\n" +
			"difference and exits 1 if there is any, else one line. The engine compares for a minute. The key needs the right admin.",
		Example: "  affinity audit --sample 1000",
		Args:    cli.Subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if sample < 1 || sample > maxAudited {
				return cli.Usagef("--sample %d: must be from 1 to %d", sample, maxAudited)
			}
			return t.runAudit(cmd.Context(), sample)
		},
	}
	cmd.Flags().IntVar(&sample, "sample", 100, "how many users to compare")
	return cmd
}

func (t *tool) runAudit(ctx context.Context, sample int) error {
	c, err := t.client()
	if err != nil {
		return err
	}
	body, err := c.do(ctx, http.MethodPost, auditsPath, fmt.Appendf(nil, `{"sample":%d}`, sample))
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	var a auditAnswer
	if err := json.Unmarshal(body, &a); err != nil {
		return fmt.Errorf("read the outcome of the audit, which is not what an Affinity engine sends: %w", err)
	}
	var text bytes.Buffer
	for _, d := range a.Differences {
		fmt.Fprintln(&text, d)
	}
	if a.Omitted > 0 {
		fmt.Fprintf(&text, "and %d more differences\n", a.Omitted)
	}
	if a.Differing == 0 {
		fmt.Fprintf(&text, "no differences: %s\n", a.extent())
	}
	if _, err := t.out.Write(text.Bytes()); err != nil {
		return err
	}
	if a.Differing > 0 {
		return fmt.Errorf("the profiles of %d users are not what the log says: %s", a.Differing, a.extent())
	}
	return nil
}

// extent says what was compared.
func (a auditAnswer) extent() string {
	text := fmt.Sprintf("%d users compared with %d events", a.Compared, a.Events)
	if a.Compared < a.Sampled {
		text = fmt.Sprintf("%d of %d users compared before the time was up, with %d events", a.Compared, a.Sampled, a.Events)
	}
	return fmt.Sprintf("%s, %d of them in their stored profiles too", text, a.Stored)
}

// String is the difference in a line.
func (d auditDifference) String() string {
	what := d.Which + " " + d.What
	switch {
	case d.Facet != "":
		what += " " + d.Facet + ":" + d.Value
	case d.Value != "":
		what += " " + d.Value
	}
	if d.HalfLife > 0 {
		what += fmt.Sprintf(" (half-life %d)", d.HalfLife)
	}
	return cli.Printable(fmt.Sprintf("%s: %s: want %s, got %s", d.UserToken, what, orNothing(d.Want), orNothing(d.Got)))
}

func orNothing(value json.RawMessage) string {
	if len(value) == 0 {
		return "nothing"
	}
	return string(value)
}
