package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/scripts/affinity/command/admin"
	"github.com/affinityengine/affinity/scripts/affinity/command/events"
	"github.com/affinityengine/affinity/scripts/affinity/command/feed"
	"github.com/affinityengine/affinity/scripts/affinity/command/jobs"
	"github.com/affinityengine/affinity/scripts/affinity/command/judge"
	"github.com/affinityengine/affinity/scripts/affinity/command/local"
	"github.com/affinityengine/affinity/scripts/affinity/command/measure"
	"github.com/affinityengine/affinity/scripts/affinity/command/segment"
	"github.com/affinityengine/affinity/scripts/affinity/command/strategy"
	"github.com/affinityengine/affinity/scripts/affinity/command/transfer"
	"github.com/affinityengine/affinity/scripts/affinity/command/user"
	"github.com/affinityengine/affinity/scripts/affinity/contexts"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/app/config"
)

// program is the whole tool: what its commands share, and what some of them start or open.
type program struct {
	*command.Tool
	start local.Starter
	open  admin.Openers
}

// run executes one command line and returns the exit code of the process.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return newProgram(stdin, stdout, stderr).run(ctx, args)
}

func newProgram(stdin io.Reader, stdout, stderr io.Writer) *program {
	t := &command.Tool{
		In: stdin, Out: stdout, Err: stderr,
		Retry:      client.Retry{Total: 2 * time.Minute},
		WatchEvery: 500 * time.Millisecond, ConfigTTL: config.TTL,
	}
	if folder, err := os.UserConfigDir(); err == nil {
		t.Contexts = contexts.New(filepath.Join(folder, "affinity"))
	}
	return &program{Tool: t, start: local.StartStack, open: admin.Deployed()}
}

func (p *program) run(ctx context.Context, args []string) int {
	return p.Execute(ctx, rootCommand(p), args)
}

func rootCommand(p *program) *cobra.Command {
	t := p.Tool
	root := cli.Group(&cobra.Command{
		Use:   "affinity",
		Short: "Run, feed, read and measure Affinity, the personalization engine",
		Example: "  affinity demo                     # an engine with a simulated shop\n" +
			"  affinity up                       # an engine on http://127.0.0.1:8080\n" +
			"  affinity import --objects objects.ndjson events.ndjson.gz\n" +
			"  affinity profile ann",
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if id, _, both := strings.Cut(t.App, ":"); both {
				return cli.Usagef("--app %q: a running engine's app is named by its id alone: --app %s --key KEY", t.App, id)
			}
			if err := t.SetOutput(cmd); err != nil {
				return err
			}
			if err := t.Complete(cmd.Flags().Changed); err != nil || !speaks(cmd) {
				return err
			}
			return t.FromContext(cmd.Flags().Changed)
		},
	})
	addGroups(root, p)
	root.Version = version()
	root.SetVersionTemplate("{{.Version}}\n")
	root.Flags().Bool("version", false, "print the version of this tool")
	flags := root.PersistentFlags()
	flags.StringVar(&t.URL, "url", command.DefaultURL, "address of the engine; $"+command.URLVariable)
	flags.StringVar(&t.App, "app", "demo", "app id; $"+command.AppVariable)
	flags.StringVar(&t.Key, "key", "demokey",
		"key of the app; $"+command.KeyVariable+" keeps it out of the list of processes")
	flags.StringVar(&t.KeyFile, "key-file", "", "file that holds the key; $"+command.KeyFileVariable)
	flags.StringVarP(&t.Output, "output", "o", command.TableOutput,
		"form of what a command prints: "+strings.Join(command.Outputs, ", "))
	flags.StringVar(&t.Context, "context", "", "context to use in place of the current one: see affinity context")
	completeValues(t, root)
	return root
}

// addGroups adds the commands under the headings of the help.
func addGroups(root *cobra.Command, p *program) {
	t := p.Tool
	for _, group := range []struct {
		id, title string
		commands  []*cobra.Command
	}{
		{"run", "Run an engine:", []*cobra.Command{
			local.Demo(t, p.start), local.Up(t, p.start), local.Serve(t, p.start), local.Doctor(t), local.Healthy(t),
			local.Data(t), local.Backup(t), contextCommand(t), docsCommand(t), versionCommand(t),
		}},
		{"data", "Data in and out:", []*cobra.Command{
			events.Command(t), transfer.Import(t), transfer.Catalog(t), transfer.Index(t), transfer.WordPress(t),
			transfer.Migrate(t), transfer.Export(t), transfer.Dump(t), transfer.Restore(t), transfer.Warehouse(t),
		}},
		{"profiles", "Profiles, orders and feeds:", []*cobra.Command{
			strategy.Command(t), user.Profile(t), user.Explain(t), user.Rank(t), user.Recommend(t), user.Boosts(t),
			feed.Command(t),
			segment.Command(t), segment.Values(t), user.Command(t), user.OptOut(t), user.Consent(t), user.Identity(t),
		}},
		{"judge", "Judge and measure:", []*cobra.Command{
			judge.Try(t), judge.Backtest(t), judge.Tune(t), judge.Experiment(t), measure.Load(t), measure.Bench(t),
		}},
		{"operate", "Operate:", []*cobra.Command{
			admin.App(t, p.open), admin.Settings(t), admin.Usage(t), admin.AuditLog(t), measure.Plan(t), jobs.Recompute(t),
			jobs.Crowd(t), jobs.Reenrich(t), jobs.Audit(t), jobs.Schema(t), events.Replay(t),
		}},
	} {
		root.AddGroup(&cobra.Group{ID: group.id, Title: group.title})
		for _, cmd := range group.commands {
			cmd.GroupID = group.id
		}
		root.AddCommand(group.commands...)
	}
}

// speaks reports whether a command speaks to an engine that is running.
func speaks(cmd *cobra.Command) bool {
	if cmd.CommandPath() == "affinity experiment size" {
		return false
	}
	for cmd.HasParent() && cmd.Parent().HasParent() {
		cmd = cmd.Parent()
	}
	switch cmd.Name() {
	case "up", "serve", "demo", "data", "context", "docs", "plan", "version", "bench", "completion", "help",
		"__complete", "__completeNoDesc":
		return false
	}
	return true
}
