package main

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/scripts/affinity/contexts"
)

func contextCommand(t *command.Tool) *cobra.Command {
	return cli.Group(&cobra.Command{
		Use:   "context",
		Short: "Name the engines that you work with, and choose one",
		Long: "Name the engines that you work with: the URL, the app and the key of each. Commands speak to the current context, unless --url,\n" +
			"--app, --key or --key-file, or a variable for one of them, is given: then they use no context at all, so a key never goes to\n" +
			"another engine. --context chooses another one for a command. Keys are kept in the keyring of the operating system or, where\n" +
			"there is none, in a file that only you may read.",
	}, addContextCommand(t), useContextCommand(t), listContextsCommand(t), currentContextCommand(t),
		deleteContextCommand(t))
}

func addContextCommand(t *command.Tool) *cobra.Command {
	return &cobra.Command{
		Use:   "add NAME",
		Short: "Add a context, or replace it",
		Long: "Add a context with the engine of --url, the app of --app and the key of --key-file, --key or their variables. The first one\n" +
			"becomes the current one.",
		Example: "  affinity context add prod --url https://affinity.example.com --app shop --key-file key",
		Args:    cli.Args("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := t.Client(); err != nil {
				return err
			}
			inFile, err := t.Contexts.Add(args[0], t.URL, t.App, t.Key)
			if err != nil {
				return err
			}
			where := "in the keyring"
			if inFile {
				where = "in a file that only you may read, since there is no keyring"
			}
			_, err = fmt.Fprintf(t.Out, "context %s is app %s at %s; its key is %s\n", args[0], cli.Printable(t.App),
				cli.Printable(t.URL), where)
			return err
		},
	}
}

func useContextCommand(t *command.Tool) *cobra.Command {
	return &cobra.Command{
		Use: "use NAME", Short: "Make a context the current one", Args: cli.Args("NAME"),
		ValidArgsFunction: t.CompleteContexts,
		RunE:              func(_ *cobra.Command, args []string) error { return t.Contexts.Use(args[0]) },
	}
}

func deleteContextCommand(t *command.Tool) *cobra.Command {
	return &cobra.Command{
		Use: "delete NAME", Short: "Delete a context and its key", Args: cli.Args("NAME"),
		ValidArgsFunction: t.CompleteContexts,
		RunE:              func(_ *cobra.Command, args []string) error { return t.Contexts.Delete(args[0]) },
	}
}

func currentContextCommand(t *command.Tool) *cobra.Command {
	return &cobra.Command{
		Use: "current", Short: "Print the name of the current context", Args: cli.Subcommand,
		RunE: func(*cobra.Command, []string) error {
			l, err := t.Contexts.Read()
			if err != nil {
				return err
			}
			if l.Current == "" {
				return fmt.Errorf("no context is current: `affinity context use NAME` chooses one")
			}
			_, err = fmt.Fprintln(t.Out, l.Current)
			return err
		},
	}
}

func listContextsCommand(t *command.Tool) *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Short: "List the contexts", Args: cli.Subcommand,
		RunE: func(*cobra.Command, []string) error {
			l, err := t.Contexts.Read()
			if err != nil {
				return err
			}
			if t.JSON {
				return printContexts(t.Out, l)
			}
			if len(l.Contexts) == 0 {
				_, err := fmt.Fprintln(t.Out, "no contexts: `affinity context add NAME --url URL --app APP --key-file "+
					"FILE` adds one")
				return err
			}
			names := slices.Sorted(maps.Keys(l.Contexts))
			return cli.Table(t.Out, "\tNAME\tURL\tAPP\tKEY", names, func(name string) []any {
				c, mark, where := l.Contexts[name], "", "keyring"
				if name == l.Current {
					mark = "*"
				}
				if c.Key != "" {
					where = "file"
				}
				return []any{mark, name, c.URL, c.App, where}
			})
		},
	}
	t.JSONFlag(cmd, "print one JSON document, without keys")
	return cmd
}

// listedContext is a context as the list prints it in JSON.
type listedContext struct {
	Name    string `json:"name"`
	URL     string `json:"url"`
	App     string `json:"app"`
	Current bool   `json:"current"`
}

func printContexts(out io.Writer, l contexts.List) error {
	listed := []listedContext{}
	for _, name := range slices.Sorted(maps.Keys(l.Contexts)) {
		listed = append(listed, listedContext{name, l.Contexts[name].URL, l.Contexts[name].App, name == l.Current})
	}
	return cli.PrintJSON(out, map[string]any{"contexts": listed})
}
