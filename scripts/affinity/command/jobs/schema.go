package jobs

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/googleapis/gax-go/v2"
	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/scripts/affinity/render"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/store"
)

// schemaStep is a step of a migration with the request that takes it.
type schemaStep struct {
	render.Step
	request func(context.Context, *client.Client) (api.Schema, error)
}

// Schema returns the command schema.
func Schema(t *command.Tool) *cobra.Command {
	status := command.Show(t, &cobra.Command{
		Use:   "status",
		Short: "Show the schemas of the log, how far its migration is, and which step is next",
		Args:  cli.Subcommand,
	}, "schema status", func(ctx context.Context, c *client.Client, _ []string) (render.Migration, error) {
		return checkSchema(c.Schema().Get(ctx))
	}, func(t *command.Tool, a render.Migration) error {
		_, err := t.Out.Write([]byte(a.Status()))
		return err
	})
	return cli.Group(&cobra.Command{
		Use:   "schema",
		Short: "Migrate the app's log to the other schema while it is in use; describe the tables",
		Long: "Migrate the app's log between the schemas narrow and wide while it is in use. The steps, in this order:\n\n" +
			"  start --to wide       both schemas are written from now on\n" +
			"  backfill              copies what was written before\n" +
			"  verify                compares the two, row by row\n" +
			"  cutover               reads use the new schema; both are still written\n" +
			"  drop --schema narrow  stops writing the old schema and removes it\n\n" +
			"Until the drop you can go back. After the cutover, rollback returns reads to the old schema. Before the cutover, or\n" +
			"run a second time, it abandons the migration and removes what it wrote.\n" +
			"Each command waits until its work is done and every instance follows. Ctrl-C stops waiting and the work continues:\n" +
			"the same command waits for it again. Requires a key with the permission admin.",
		Example: "  affinity schema status\n  affinity schema start --to wide --app shop --key s3cret",
	}, status,
		schemaDescribeCommand(t),
		schemaStartCommand(t),
		schemaBackfillCommand(t),
		plainStepCommand(t, api.StepVerify, "Compare both schemas row by row, and profiles of some users; exit 1 if "+
			"they differ",
			func(ctx context.Context, c *client.Client) (api.Schema, error) { return c.Schema().Verify(ctx) }),
		plainStepCommand(t, api.StepCutover, "Read the new schema; possible after a verification that passed",
			func(ctx context.Context, c *client.Client) (api.Schema, error) { return c.Schema().Cutover(ctx) }),
		plainStepCommand(t, api.StepRollback, "Undo the cutover; before it, abandon the migration and remove what it wrote",
			func(ctx context.Context, c *client.Client) (api.Schema, error) { return c.Schema().Rollback(ctx) }),
		schemaDropCommand(t))
}

// stepCommand is a command that takes a step. step makes it from the flags.
func stepCommand(t *command.Tool, name, short string, step func(*cobra.Command) (schemaStep, error)) *cobra.Command {
	noWait := false
	cmd := &cobra.Command{
		Use:   name,
		Short: short,
		Args:  cli.Subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := step(cmd)
			if err != nil {
				return err
			}
			c, err := t.Client()
			if err != nil {
				return err
			}
			return takeStep(cmd.Context(), t, c, s, !noWait)
		},
	}
	cmd.Flags().BoolVar(&noWait, "no-wait", false, "do not wait until it is done")
	return cmd
}

// plainStepCommand is a step without arguments.
func plainStepCommand(t *command.Tool, name, short string,
	request func(context.Context, *client.Client) (api.Schema, error)) *cobra.Command {
	return stepCommand(t, name, short, func(*cobra.Command) (schemaStep, error) {
		return schemaStep{render.Step{Name: name, Again: name}, request}, nil
	})
}

func schemaStartCommand(t *command.Tool) *cobra.Command {
	return namedStepCommand(t, api.StepStart, "to", schema.Wide, "Start a migration: write a second schema too",
		func(ctx context.Context, c *client.Client, n schema.Name) (api.Schema, error) {
			return c.Schema().Start(ctx, api.SchemaStartRequest{To: string(n)})
		})
}

func schemaDropCommand(t *command.Tool) *cobra.Command {
	return namedStepCommand(t, api.StepDrop, "schema", schema.Narrow, "Remove the schema that is no longer read",
		func(ctx context.Context, c *client.Client, n schema.Name) (api.Schema, error) {
			return c.Schema().Drop(ctx, api.SchemaDropRequest{Schema: string(n)})
		})
}

// namedStepCommand is a step whose flag names a schema.
func namedStepCommand(t *command.Tool, name, flag string, example schema.Name, short string,
	request func(context.Context, *client.Client, schema.Name) (api.Schema, error)) *cobra.Command {
	text := ""
	cmd := stepCommand(t, name, short, func(cmd *cobra.Command) (schemaStep, error) {
		if err := cli.Require(cmd, flag, "narrow or wide"); err != nil {
			return schemaStep{}, err
		}
		n, err := schema.Parse(text)
		if err != nil {
			return schemaStep{}, cli.Usagef("--%s: %v", flag, err)
		}
		step := render.Step{Name: name, Again: fmt.Sprintf("%s --%s %s", name, flag, n)}
		return schemaStep{step, func(ctx context.Context, c *client.Client) (api.Schema,
			error) {
			return request(ctx, c, n)
		}}, nil
	})
	cmd.Flags().StringVar(&text, flag, "", "narrow or wide")
	cmd.Example = fmt.Sprintf("  affinity schema %s --%s %s", name, flag, example)
	return cmd
}

func schemaBackfillCommand(t *command.Tool) *cobra.Command {
	rate := 0
	cmd := stepCommand(t, api.StepBackfill, "Copy what was written before the start to the new schema",
		func(cmd *cobra.Command) (schemaStep, error) {
			if rate < 0 || rate > api.MaxBackfillRate {
				return schemaStep{}, cli.Usagef("--rate %d: must be 0 (no limit) to %d rows per second", rate, api.MaxBackfillRate)
			}
			request := api.SchemaBackfillRequest{}
			if cmd.Flags().Changed("rate") {
				request.Rate = &rate
			}
			return schemaStep{render.Step{Name: api.StepBackfill, Again: api.StepBackfill},
				func(ctx context.Context, c *client.Client) (api.Schema, error) {
					return c.Schema().Backfill(ctx, request)
				}}, nil
		})
	cmd.Flags().IntVar(&rate, "rate", api.DefaultBackfillRate,
		"maximum rows per second, 0 for no limit; a backfill under way keeps its rate")
	cmd.Example = "  affinity schema backfill --rate 2000"
	return cmd
}

// takeStep takes a step, waits for it and prints its outcome.
func takeStep(ctx context.Context, t *command.Tool, c *client.Client, step schemaStep, wait bool) error {
	a, err := checkSchema(step.request(ctx, c))
	var refused *api.Error
	if errors.As(err, &refused) && refused.Status == http.StatusConflict {
		return fmt.Errorf("schema %s: %s", step.Name, refused.Message)
	}
	if err == nil && a.Migration == nil {
		err = errors.New("the answer names no migration, which is not what an Affinity engine sends about a step")
	}
	if err != nil {
		return fmt.Errorf("schema %s: %w", step.Name, err)
	}
	if !wait {
		_, err := fmt.Fprintf(t.Out, "%s: `affinity schema status` shows how far it is\n", a.Begun(step.Step))
		return err
	}
	a, err = awaitStep(ctx, t, c, step, a)
	if err != nil && ctx.Err() != nil {
		return errors.New(a.Interrupted(step.Step))
	}
	if err != nil {
		return fmt.Errorf("wait for schema %s: %w", step.Name, err)
	}
	fmt.Fprint(t.Err, a.Faults(step.Step))
	text, err := a.Ended(step.Step)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(t.Out, text); err != nil {
		return err
	}
	fmt.Fprint(t.Err, a.Next())
	return nil
}

// awaitStep waits until a step's job has ended and every instance follows its
// change.
func awaitStep(ctx context.Context, t *command.Tool, c *client.Client, step schemaStep,
	a render.Migration) (render.Migration, error) {
	look := func(c *client.Client) (render.Migration, error) {
		now, err := checkSchema(c.Schema().Get(ctx))
		switch {
		case err != nil:
			return a, err
		case !now.SameStep(a):
			return a, errors.New("another operator has taken the next step of this migration: look at `affinity schema status`")
		}
		a = now
		return a, nil
	}
	if job := a.Working(); job != nil {
		fmt.Fprintln(t.Err, a.Begun(step.Step))
		_, err := command.Follow(ctx, t, c, "", look,
			func(a render.Migration) render.Progress { return render.MigrationProgress(*a.Migration.Job) })
		if err != nil {
			return a, err
		}
	}
	c = t.Patient(c)
	for printed := false; a.SettlesInMs > 0; printed = true {
		left := time.Duration(a.SettlesInMs) * time.Millisecond
		if !printed {
			fmt.Fprintln(t.Err, a.Begun(step.Step))
		}
		if err := gax.Sleep(ctx, min(left, t.WatchEvery)); err != nil {
			return a, err
		}
		if _, err := look(c); err != nil {
			return a, err
		}
	}
	return a, nil
}

// checkSchema passes an answer on if it is about a log.
func checkSchema(a api.Schema, err error) (render.Migration, error) {
	if err == nil && (a.Read == "" || a.Migration != nil && a.Migration.Job != nil && a.Migration.Job.State == "") {
		err = fmt.Errorf("the answer is not what an Affinity engine sends about schemas: %+v", a)
	}
	return render.Migration{Schema: a}, err
}

func schemaDescribeCommand(t *command.Tool) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "describe",
		Short: "Show what every table of Bigtable holds, whose it is, and whether it is personal",
		Long: "Show every table and family of Bigtable: what it holds, the package that owns it, whether it names users and what removes that,\n" +
			"the formats of its values, and the families from which the engine can make it again. It describes this " +
			"version and asks no engine.",
		Example: "  affinity schema describe\n  affinity schema describe --json | jq '.tables[].families[] | select(.personal)'",
		Args:    cli.Subcommand,
		RunE: func(*cobra.Command, []string) error {
			tables, err := store.Tables()
			if err != nil {
				return err
			}
			if t.JSON {
				return cli.PrintJSON(t.Out, map[string]any{"tables": tables})
			}
			return render.Tables(t.Out, tables)
		},
	}
	t.JSONFlag(cmd, "print JSON")
	return cmd
}
