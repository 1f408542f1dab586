package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/job/migration"
	"github.com/affinityengine/affinity/shared/schema"
)

const (
	schemaPath = "/1/schema"
	// maxCopied is the most rows a second that a backfill may be allowed.
	maxCopied = 1_000_000
)

// schemaStep is a step of a move as a command takes it.
type schemaStep struct {
	name  string // of the command and of the route
	again string // the command line that takes it again
	order any    // what is sent
}

func (t *tool) schemaCommand() *cobra.Command {
	group := cli.Group(&cobra.Command{
		Use:   "schema",
		Short: "Move the app's log from one schema to the other while it is in use",
		Long: "Move the app's log between the schemas narrow and wide while it is in use. The steps, each after the one before:\n\n" +
			"  start --to wide       both are written from now on\n" +
			"  backfill              what was written before is copied\n" +
			"  verify                the two are compared, row by row\n" +
			"  cutover               the new one is read; both are written still\n" +
			"  drop --schema narrow  the old one is not written any more, and removed\n\n" +
			"Until the drop there is a way back: rollback undoes the cutover, and given again gives the move up.\n" +
			"Each command waits until its work is done and in force everywhere. Where it is interrupted the work goes on, and the\n" +
			"same command goes on waiting for it. The key needs the right admin.",
		Example: "  affinity schema status\n  affinity schema start --to wide --app shop --key s3cret",
	})
	group.AddCommand(&cobra.Command{
		Use:   "status",
		Short: "Tell how the log lies, how far its move is, and what may come next",
		Args:  cli.Subcommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return t.schemaStatus(cmd.Context()) },
	},
		t.schemaNamed("start", "to", schema.Wide, "Write a second schema too: the beginning of a move"),
		t.schemaBackfill(),
		t.schemaPlain("verify", "Compare both schemas row by row, and profiles of some users; exit 1 if they differ"),
		t.schemaPlain("cutover", "Read the new schema; only after a verification that has passed"),
		t.schemaPlain("rollback", "Undo the cutover; before it, give the move up and remove what it wrote"),
		t.schemaNamed("drop", "schema", schema.Narrow, "Remove the schema that is not read any more"))
	return group
}

// schemaTaker is a command that takes a step; step says which, from its flags.
func (t *tool) schemaTaker(name, short string, step func(*cobra.Command) (schemaStep, error)) *cobra.Command {
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
			return t.takeSchemaStep(cmd.Context(), s, noWait)
		},
	}
	cmd.Flags().BoolVar(&noWait, "no-wait", false, "do not wait until it is done")
	return cmd
}

// schemaPlain is a step that is told nothing.
func (t *tool) schemaPlain(name, short string) *cobra.Command {
	return t.schemaTaker(name, short, func(*cobra.Command) (schemaStep, error) { return schemaStep{name, name, struct{}{}}, nil })
}

// schemaNamed is a step that is told a schema, in a flag and a key of this name.
func (t *tool) schemaNamed(name, flag string, example schema.Name, short string) *cobra.Command {
	text := ""
	cmd := t.schemaTaker(name, short, func(*cobra.Command) (schemaStep, error) {
		n, err := schema.Parse(text)
		if err != nil {
			return schemaStep{}, cli.Usagef("--%s: %v", flag, err)
		}
		return schemaStep{name, fmt.Sprintf("%s --%s %s", name, flag, n), map[string]any{flag: n}}, nil
	})
	cmd.Flags().StringVar(&text, flag, "", "narrow or wide")
	cmd.Example = fmt.Sprintf("  affinity schema %s --%s %s", name, flag, example)
	return cmd
}

func (t *tool) schemaBackfill() *cobra.Command {
	rate := 0
	cmd := t.schemaTaker("backfill", "Copy what was written before the start to the new schema", func(cmd *cobra.Command) (schemaStep, error) {
		if rate < 0 || rate > maxCopied {
			return schemaStep{}, cli.Usagef("--rate %d: must be 0 (no limit) to %d rows a second", rate, maxCopied)
		}
		if !cmd.Flags().Changed("rate") {
			return schemaStep{"backfill", "backfill", struct{}{}}, nil
		}
		return schemaStep{"backfill", "backfill", map[string]any{"rate": rate}}, nil
	})
	cmd.Flags().IntVar(&rate, "rate", migration.DefaultRate, "rows a second to copy at most, 0 for no limit; one under way keeps its own")
	cmd.Example = "  affinity schema backfill --rate 2000"
	return cmd
}

// takeSchemaStep takes a step and sees it through.
func (t *tool) takeSchemaStep(ctx context.Context, step schemaStep, noWait bool) error {
	c, err := t.client()
	if err != nil {
		return err
	}
	order, err := json.Marshal(step.order)
	if err != nil {
		return err
	}
	a, err := readSchema(c.do(ctx, http.MethodPost, schemaPath+"/"+step.name, order))
	var refused *refusedError
	if errors.As(err, &refused) && refused.Status == http.StatusConflict {
		return fmt.Errorf("schema %s: %s", step.name, refused.Message)
	}
	if err == nil && a.Move == nil {
		err = errors.New("the answer names no move, which is not what an Affinity engine says of a step")
	}
	if err != nil {
		return fmt.Errorf("schema %s: %w", step.name, err)
	}
	if noWait {
		_, err := fmt.Fprintf(t.out, "%s: `affinity schema status` tells how far it is\n", a.begun(step))
		return err
	}
	a, err = t.awaitSchema(ctx, c, step, a)
	if err != nil && ctx.Err() != nil {
		return errors.New(a.interrupted(step))
	}
	if err != nil {
		return fmt.Errorf("wait for schema %s: %w", step.name, err)
	}
	return t.schemaStepEnded(step, a)
}

// awaitSchema waits until a step's job has ended and what it changed is in force
// everywhere.
func (t *tool) awaitSchema(ctx context.Context, c *client, step schemaStep, a schemaAnswer) (schemaAnswer, error) {
	look := func() error {
		now, err := readSchema(c.do(ctx, http.MethodGet, schemaPath, nil))
		if err != nil {
			return err
		}
		if !now.sameStep(a) {
			return errors.New("somebody else has taken the move further meanwhile: look at `affinity schema status`")
		}
		a = now
		return nil
	}
	if job := a.working(); job != nil {
		fmt.Fprintf(t.err, "%s\n", a.begun(step))
		err := t.watchJob(ctx, func() (jobAnswer, error) {
			err := look()
			return a.Move.Job.progress(), err
		})
		if err != nil {
			return a, err
		}
	}
	for told := false; a.SettlesInMs > 0; told = true {
		left := time.Duration(a.SettlesInMs) * time.Millisecond
		if !told {
			fmt.Fprintf(t.err, "%s\n", a.begun(step))
		}
		if err := cli.Sleep(ctx, min(left, cmp.Or(t.watchEvery, watchEvery))); err != nil {
			return a, err
		}
		if err := t.wait.retry(ctx, t.waiting, look); err != nil {
			return a, err
		}
	}
	return a, nil
}

// schemaStepEnded tells what has become of a step, and of one that did not come
// to what it is there for says why.
func (t *tool) schemaStepEnded(step schemaStep, a schemaAnswer) error {
	if job := a.jobOf(step); job != nil {
		for _, fault := range job.Faults {
			fmt.Fprintln(t.err, "  "+cli.Printable(fault))
		}
		if more := job.Faulty - int64(len(job.Faults)); more > 0 {
			fmt.Fprintf(t.err, "  and %s more\n", grouped(more))
		}
	}
	text, err := a.ended(step)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(t.out, text); err != nil {
		return err
	}
	if next := a.commands(); a.Move.Moving && len(next) > 0 {
		fmt.Fprintf(t.err, "next: %s  (%s)\n", next[0].line, next[0].does)
	}
	return nil
}

func (t *tool) schemaStatus(ctx context.Context) error {
	c, err := t.client()
	if err != nil {
		return err
	}
	a, err := readSchema(c.do(ctx, http.MethodGet, schemaPath, nil))
	if err != nil {
		return fmt.Errorf("schema status: %w", err)
	}
	_, err = t.out.Write([]byte(a.describe()))
	return err
}
