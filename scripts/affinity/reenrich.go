package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
)

const reenrichPath = "/1/reenrich"

// reenrichAnswer is what the engine says of a re-enrichment.
type reenrichAnswer struct {
	jobAnswer
	DryRun             bool     `json:"dryRun"`
	WithUnknownObjects int64    `json:"withUnknownObjects"`
	Resolved           int64    `json:"resolved"`
	StillUnknown       int64    `json:"stillUnknown"`
	Faulty             int64    `json:"faulty"`
	Faults             []string `json:"faults"`
}

func (t *tool) reenrichCommand() *cobra.Command {
	dryRun := false
	cmd := &cobra.Command{
		Use:   "reenrich",
		Short: "Give events the filters of objects that the catalog has learned of since",
		Long: "Go over all events in the log, within the retention, whose objects the catalog did not know when they came. Events of which it\n" +
			"knows more now get the filters that their objects have now, and profiles follow within seconds. An app has one under way at a\n" +
			"time: a second start follows the first. Exit 1 if rows of the log could not be read. The key needs the right admin.",
		Example: "  affinity reenrich --dry-run\n  affinity reenrich",
		Args:    cli.Subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := t.client()
			if err != nil {
				return err
			}
			return t.reenrich(cmd.Context(), c, dryRun)
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only count, and change nothing")
	cmd.AddCommand(&cobra.Command{
		Use:   "cancel ID",
		Short: "Cancel a re-enrichment that is under way",
		Args:  cli.Args("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := t.client()
			if err != nil {
				return err
			}
			return t.cancelReenrich(cmd.Context(), c, args[0])
		},
	})
	return cmd
}

func (t *tool) reenrich(ctx context.Context, c *client, dryRun bool) error {
	order, err := json.Marshal(map[string]bool{"dryRun": dryRun})
	if err != nil {
		return err
	}
	job, err := readReenrich(c.do(ctx, http.MethodPost, reenrichPath, order))
	if err != nil {
		return fmt.Errorf("start a re-enrichment: %w", err)
	}
	if job.DryRun != dryRun {
		is := "publishes"
		if job.DryRun {
			is = "is a dry run"
		}
		return fmt.Errorf("re-enrichment %s is under way and %s: wait for its end, or `affinity reenrich cancel %s`", cli.Printable(job.ID), is, cli.Printable(job.ID))
	}
	fmt.Fprintf(t.err, "re-enrichment %s is under way\n", cli.Printable(job.ID))
	id := job.ID
	err = t.watchJob(ctx, func() (_ jobAnswer, err error) {
		job, err = readReenrich(c.do(ctx, http.MethodGet, reenrichPath+"/"+url.PathEscape(id), nil))
		return job.jobAnswer, err
	})
	if err != nil {
		return fmt.Errorf("watch re-enrichment %s: %w", cli.Printable(id), err)
	}
	return t.reenrichEnded(job)
}

func (t *tool) reenrichEnded(job reenrichAnswer) error {
	resolved := "resolved now"
	if job.DryRun {
		resolved = "would be resolved now"
	}
	for _, fault := range job.Faults {
		fmt.Fprintln(t.err, cli.Printable(fault))
	}
	_, err := fmt.Fprintf(t.out, "%d events looked at, %d with unknown objects: %d %s, %d still unknown\n",
		job.Events, job.WithUnknownObjects, job.Resolved, resolved, job.StillUnknown)
	if job.State != "done" {
		text := fmt.Sprintf("re-enrichment %s is %s", cli.Printable(job.ID), cli.Printable(job.State))
		if job.Error != "" {
			text += ": " + cli.Printable(job.Error)
		}
		err = errors.Join(err, errors.New(text))
	}
	if job.Faulty > 0 {
		err = errors.Join(err, fmt.Errorf("rows of the log that cannot be read and were left out: %d", job.Faulty))
	}
	return err
}

func (t *tool) cancelReenrich(ctx context.Context, c *client, id string) error {
	job, err := readReenrich(c.do(ctx, http.MethodPost, reenrichPath+"/"+url.PathEscape(id)+"/cancel", []byte("{}")))
	if err != nil {
		return fmt.Errorf("cancel re-enrichment %s: %w", cli.Printable(id), err)
	}
	_, err = fmt.Fprintf(t.out, "re-enrichment %s is %s\n", cli.Printable(job.ID), cli.Printable(job.State))
	return err
}

func readReenrich(body []byte, err error) (reenrichAnswer, error) {
	var job reenrichAnswer
	if err != nil {
		return job, err
	}
	if err := json.Unmarshal(body, &job); err != nil || job.ID == "" || job.State == "" {
		return job, fmt.Errorf("the answer is not what an Affinity engine says of a re-enrichment: %.200q", body)
	}
	return job, nil
}
