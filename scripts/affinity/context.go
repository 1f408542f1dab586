package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/scripts/affinity/contexts"
)

func contextCommand(t *command.Tool) *cobra.Command {
	return cli.Group(&cobra.Command{
		Use:   "context",
		Short: "Name the engines that you work with, and choose one",
		Long: "Name the engines that you work with: the URL, the app and the key of each, and the deployment of one " +
			"that you operate, which\n" +
			"affinity app and affinity replay work on. Commands speak to the current context, unless --url,\n" +
			"--app, --key or --key-file, or a variable for one of them, is given: then they use no context at all, so a key never goes to\n" +
			"another engine. --context chooses another one for a command. Keys are kept in the keyring of the operating system or, where\n" +
			"there is none, in a file that only you may read.",
	}, addContextCommand(t), useContextCommand(t), listContextsCommand(t), currentContextCommand(t),
		deleteContextCommand(t))
}

func addContextCommand(t *command.Tool) *cobra.Command {
	var folder string
	cmd := &cobra.Command{
		Use:   "add NAME",
		Short: "Add a context, or replace it",
		Long: "Add a context with the engine of --url, the app of --app and the key of --key-file, --key or their variables. The first one\n" +
			"becomes the current one.\n\n" +
			"With --from-terraform the context names the deployment of a folder with Terraform's state, and --url is " +
			"that of its default\n" +
			"host. Then --app and its key may be left out. Add the context again when the deployment has changed.",
		Example: "  affinity context add prod --url https://affinity.example.com --app shop --key-file key\n" +
			"  affinity context add prod --from-terraform terraform",
		Args: cli.Args("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if folder != "" {
				return addDeployment(cmd, t, args[0], folder)
			}
			if _, err := t.Client(); err != nil {
				return err
			}
			inFile, err := t.Contexts.Add(args[0], contexts.Context{URL: t.URL, App: t.App, Key: t.Key})
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
	cmd.Flags().StringVar(&folder, "from-terraform", "", "folder in which terraform output prints the deployment")
	return cmd
}

// addDeployment adds a context with the deployment that Terraform's output cli names, and
// with an app and a key if flags or variables give them.
func addDeployment(cmd *cobra.Command, t *command.Tool, name, folder string) error {
	var said strings.Builder
	terraform := exec.CommandContext(cmd.Context(), "terraform", "-chdir="+folder, "output", "-no-color", "-json", "cli")
	terraform.Stderr = &said
	text, err := terraform.Output()
	if err != nil {
		return fmt.Errorf("terraform -chdir=%s output -json cli: %w (initialize the state of the environment and apply "+
			"there first)\n%s", folder, err, strings.TrimSpace(said.String()))
	}
	var d contexts.Deployment
	if err := json.Unmarshal(text, &d); err != nil {
		return fmt.Errorf("decode what terraform output -json cli prints: %w", err)
	}
	c := contexts.Context{URL: d.URL, Deployment: &d}
	changed := cmd.Flags().Changed
	if changed("url") {
		c.URL = t.URL
	}
	if changed("key") || changed("key-file") {
		if !changed("app") {
			return cli.Usagef("give --app with its key")
		}
		c.App, c.Key = t.App, t.Key
	} else if changed("app") {
		return cli.Usagef("give --key-file or --key with --app %s", t.App)
	}
	if _, err := t.Contexts.Add(name, c); err != nil {
		return err
	}
	_, err = fmt.Fprintf(t.Out, "context %s is the deployment in project %s: Firestore database %s, Bigtable "+
		"instance %s, %s\n",
		name, d.Project, d.Database, d.Instance, cmp.Or(c.URL, "no host yet"))
	return err
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
			return cli.Table(t.Out, "\tNAME\tURL\tAPP\tKEY\tDEPLOYMENT", names, func(name string) []any {
				c, mark, where, deployment := l.Contexts[name], "", "keyring", "-"
				if c.Deployment != nil {
					deployment = c.Deployment.Project + "/" + c.Deployment.Instance
				}
				if name == l.Current {
					mark = "*"
				}
				switch {
				case c.App == "":
					where = "-"
				case c.Key != "":
					where = "file"
				}
				return []any{mark, name, cmp.Or(c.URL, "-"), cmp.Or(c.App, "-"), where, deployment}
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

	Deployment *contexts.Deployment `json:"deployment,omitempty"`
}

func printContexts(out io.Writer, l contexts.List) error {
	listed := []listedContext{}
	for _, name := range slices.Sorted(maps.Keys(l.Contexts)) {
		c := l.Contexts[name]
		listed = append(listed, listedContext{name, c.URL, c.App, name == l.Current, c.Deployment})
	}
	return cli.PrintJSON(out, map[string]any{"contexts": listed})
}
