package main

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/affinityengine/affinity/functions/docs"
	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
)

// docsCommand returns the command docs.
func docsCommand(t *command.Tool) *cobra.Command {
	var check bool
	var folder string
	cmd := &cobra.Command{
		Use:   "docs",
		Short: "Write the documents of this version to a folder, or check them",
		Long: "Write the documents of this version to a folder, as Markdown. A running engine shows them at /docs.\n\n" +
			"With --check, compare the pages about commands with the commands, and follow each link between pages. The\n" +
			"exit code is 1 if something is wrong.",
		Example: "  affinity docs --write affinity-docs\n  affinity docs --check",
		Args:    cli.Subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case check == (folder != ""):
				return cli.Usagef("give --write DIR or --check; a running engine shows the documents at %s/docs", t.URL)
			case check:
				return checkDocs(t, cmd.Root())
			}
			if err := os.CopyFS(folder, docs.Files()); err != nil {
				return fmt.Errorf("write the documents: %w", err)
			}
			first := filepath.Join(folder, "README.md")
			_, err := fmt.Fprintf(t.Out, "wrote the documents to %s: begin with %s\n", folder, first)
			return err
		},
	}
	cmd.Flags().BoolVar(&check, "check", false, "compare the pages with the commands, and follow their links")
	cmd.Flags().StringVar(&folder, "write", "", "folder to write the documents to; it must lack them")
	return cmd
}

// link matches the target of a link in Markdown.
var link = regexp.MustCompile(`\]\(([^)\s#:]+\.md)(?:#[^)\s]*)?\)`)

func checkDocs(t *command.Tool, root *cobra.Command) error {
	files, wrong, pages := docs.Files(), 0, 0
	say := func(format string, args ...any) {
		wrong++
		_, _ = fmt.Fprintf(t.Out, format+"\n", args...)
	}
	for name, want := range commandPages(root) {
		if got, err := fs.ReadFile(files, name); err != nil || string(got) != want {
			say("%s is not what the commands say: go test ./scripts/affinity -run CommandPages -rewrite", name)
		}
	}
	err := fs.WalkDir(files, ".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || path.Ext(name) != ".md" {
			return err
		}
		pages++
		text, err := fs.ReadFile(files, name)
		for _, m := range link.FindAllSubmatch(text, -1) {
			to := path.Join(path.Dir(name), string(m[1]))
			if _, err := fs.Stat(files, to); err != nil && !strings.HasPrefix(to, "..") {
				say("%s links to %s, which does not exist", name, m[1])
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	if wrong > 0 {
		return fmt.Errorf("%d faults in %d pages", wrong, pages)
	}
	_, err = fmt.Fprintf(t.Out, "%d pages are in order\n", pages)
	return err
}

// commandPages returns the pages about the commands, by their names: a list, and a page for each group.
func commandPages(root *cobra.Command) map[string]string {
	pages := map[string]string{}
	var list strings.Builder
	list.WriteString("# Commands\n\nEach command of this version with its flags, made of what `--help` prints by\n" +
		"`go test ./scripts/affinity -run CommandPages -rewrite`. [The command line](../command-line.md) says how commands\n" +
		"find an engine and what they print.\n")
	for _, group := range root.Groups() {
		title, file := strings.TrimSuffix(group.Title, ":"), "reference/commands/"+group.ID+".md"
		page := "# Commands: " + strings.ToLower(title[:1]) + title[1:] + "\n\n" +
			"[All commands](README.md), and the flags that each of them has.\n"
		fmt.Fprintf(&list, "\n## %s\n\n| command | what it does |\n|---|---|\n", title)
		for _, cmd := range root.Commands() {
			if cmd.GroupID == group.ID && !cmd.Hidden {
				fmt.Fprintf(&list, "| [%s](%s#%s) | %s |\n", cmd.Name(), path.Base(file), anchor(cmd), cell(cmd.Short))
				page += describeCommand(cmd, 2)
			}
		}
		pages[file] = page
	}
	list.WriteString("\n## Flags of every command\n\n" + flagTable(root.PersistentFlags()))
	pages["reference/commands/README.md"] = list.String()
	return pages
}

func anchor(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

func describeCommand(cmd *cobra.Command, level int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s %s\n\n%s.\n", strings.Repeat("#", level), cmd.CommandPath(),
		prose(strings.TrimSuffix(cmd.Short, ".")))
	if cmd.Long != "" {
		b.WriteString("\n")
		for part := range strings.SplitSeq(strings.TrimSpace(cmd.Long), "\n\n") {
			if strings.Contains("\n"+part, "\n ") { // a list that the help aligns
				b.WriteString("```\n" + part + "\n```\n\n")
			} else {
				b.WriteString(prose(part) + "\n\n")
			}
		}
	}
	text := strings.TrimRight(b.String(), "\n") + "\n"
	if cmd.Runnable() && !cmd.HasSubCommands() {
		text += "\n```\n" + strings.TrimSuffix(cmd.UseLine(), " [flags]") + "\n```\n"
	}
	if cmd.Example != "" {
		text += "\n```sh\n" + strings.TrimPrefix(strings.ReplaceAll(cmd.Example, "\n  ", "\n"), "  ") + "\n```\n"
	}
	if flags := cmd.LocalNonPersistentFlags(); flags.HasAvailableFlags() {
		text += "\n" + flagTable(flags)
	}
	for _, sub := range cmd.Commands() {
		if !sub.Hidden && sub.Name() != "help" {
			text += describeCommand(sub, min(level+1, 4))
		}
	}
	return text
}

func flagTable(flags *pflag.FlagSet) string {
	table := "| flag | meaning | default |\n|---|---|---|\n"
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		kind, usage := pflag.UnquoteUsage(f)
		name := strings.TrimSpace("--" + f.Name + " " + kind)
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		table += "| `" + name + "` | " + cell(usage) + " | " + shownDefault(f) + " |\n"
	})
	return table
}

// shownDefault is the default of a flag, if it says something.
func shownDefault(f *pflag.Flag) string {
	if slices.Contains([]string{"", "false", "[]", "0", "0s"}, f.DefValue) {
		return ""
	}
	return cell("`" + f.DefValue + "`")
}

// cell is a text in a table.
func cell(text string) string {
	return strings.ReplaceAll(prose(strings.ReplaceAll(text, "\n", " ")), "|", `\|`)
}

// prose escapes what Markdown would take for marks, but for code between backticks.
func prose(text string) string {
	parts := strings.Split(text, "`")
	for i := range parts {
		if i%2 == 0 {
			parts[i] = strings.NewReplacer("*", `\*`, "_", `\_`, "<", `\<`, "[", `\[`, "#", `\#`).Replace(parts[i])
		}
	}
	return strings.Join(parts, "`")
}
