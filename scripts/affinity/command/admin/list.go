package admin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/operator"
	"github.com/affinityengine/affinity/shared/score/schema"
)

func (a *appTool) listCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the apps",
		Example: "  affinity app list",
		Args:    cli.Subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.with(cmd, func(s engine) error { return a.list(cmd.Context(), s) })
		},
	}
	a.JSONFlag(cmd, command.JSONUsage)
	return cmd
}

// listedApp is an app as the list prints it in JSON.
type listedApp struct {
	ID              string      `json:"id"`
	RetentionDays   int         `json:"retentionDays"`
	Schema          schema.Name `json:"schema"`
	StrategyVersion int64       `json:"strategyVersion"`
	CreatedAt       time.Time   `json:"createdAt"`
	// Region is empty for an app that lives in the first region and names none.
	Region   string `json:"region,omitempty"`
	MovingTo string `json:"movingTo,omitempty"`
}

func (a *appTool) list(ctx context.Context, s operator.Store) error {
	ids, err := s.Apps(ctx)
	if err != nil {
		return fmt.Errorf("list apps: %w", err)
	}
	listed := []listedApp{}
	for _, id := range ids {
		app, err := s.App(ctx, id)
		if errors.Is(err, config.ErrNotFound) {
			continue // deleted since the list was read
		}
		if err != nil {
			return fmt.Errorf("read app %s: %w", id, err)
		}
		if a.JSON {
			listed = append(listed, listedApp{id, app.RetentionDays, app.Log.Read, app.StrategyVersion,
				app.CreatedAt.UTC(), app.Region, app.Move.To})
			continue
		}
		fmt.Fprintf(a.Out, "%s  %s  %s  strategy version %d  created %s%s\n", id, retention(app.RetentionDays),
			layout(app.Log), app.StrategyVersion,
			app.CreatedAt.UTC().Format(time.RFC3339), livesIn(app))
	}
	if a.JSON {
		return cli.PrintJSON(a.Out, map[string]any{"apps": listed})
	}
	if len(ids) == 0 {
		fmt.Fprintln(a.Err, "there are no apps: create one with `affinity app create ID`")
	}
	return nil
}
