package command

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/api/client"
)

// Ask asks the engine for an answer. It is given the arguments of the command.
type Ask[T any] = func(ctx context.Context, c *client.Client, args []string) (T, error)

// JSONFlag gives a command the flag --json, which SetOutput sets too. t.JSON has its value.
func (t *Tool) JSONFlag(cmd *cobra.Command, usage string) {
	cmd.Flags().BoolVar(&t.JSON, "json", false, usage)
}

// With returns the RunE of a command that works with a client of the engine.
func (t *Tool) With(do func(context.Context, *client.Client, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		c, err := t.Client()
		if err != nil {
			return err
		}
		return do(cmd.Context(), c, args)
	}
}

// Tell returns the RunE of a command that asks the engine and prints the line that ask
// returns. doing is as for Show.
func (t *Tool) Tell(doing string, ask Ask[string]) func(*cobra.Command, []string) error {
	return t.With(func(ctx context.Context, c *client.Client, args []string) error {
		line, err := ask(ctx, c, args)
		if err != nil {
			return failed(doing, args, err)
		}
		_, err = fmt.Fprintln(t.Out, line)
		return err
	})
}

// Show makes cmd print what the engine answers: with --json as it is, else with print.
// doing says in errors what the command does. The first argument takes the place of %s
// in it. An empty one leaves errors as they are.
func Show[T any](t *Tool, cmd *cobra.Command, doing string, ask Ask[T], print func(*Tool, T) error) *cobra.Command {
	return show(t, cmd, doing, ask, print, func(raw []byte, _ T) error { return PrintRaw(t.Out, raw) })
}

// ShowAll is Show for an answer that ask makes of several.
func ShowAll[T any](t *Tool, cmd *cobra.Command, doing string, ask Ask[T], print func(*Tool, T) error) *cobra.Command {
	return show(t, cmd, doing, ask, print, func(_ []byte, answer T) error { return cli.PrintJSON(t.Out, answer) })
}

func show[T any](t *Tool, cmd *cobra.Command, doing string, ask Ask[T], print func(*Tool, T) error,
	printJSON func([]byte, T) error) *cobra.Command {
	t.JSONFlag(cmd, JSONUsage)
	cmd.RunE = t.With(func(ctx context.Context, c *client.Client, args []string) error {
		var raw []byte
		answer, err := ask(client.WithRawAnswer(ctx, &raw), c, args)
		if err != nil {
			return failed(doing, args, err)
		}
		if t.JSON {
			return printJSON(raw, answer)
		}
		return print(t, answer)
	})
	return cmd
}

// failed adds to an error what the command was doing.
func failed(doing string, args []string, err error) error {
	if len(args) > 0 {
		doing = strings.Replace(doing, "%s", cli.Printable(args[0]), 1)
	}
	if doing == "" {
		return err
	}
	return fmt.Errorf("%s: %w", doing, err)
}
