package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/operator"
	"github.com/affinityengine/affinity/shared/queue"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/store"
	"github.com/affinityengine/affinity/shared/web/auth"
)

// appTool is what the commands of `affinity app` share.
type appTool struct {
	*command.Tool
	open      Openers
	databases Databases
	kmsKey    string // of parents
	queue     string // of the worker
	bigtable  store.Config
	regions   config.Regions
}

// App returns the command app. Commands on a deployed engine open it with open.
func App(t *command.Tool, open Openers) *cobra.Command {
	a := &appTool{Tool: t, open: open, bigtable: store.Config{Profile: "batch", FilterColumns: 1}}
	group := cli.Group(&cobra.Command{
		Use:   "app",
		Short: "Create apps and their keys, in Firestore with your Google credentials or on a local engine",
		Long: "Create apps and their keys. For a deployed engine the commands write Firestore, and the audit log in Bigtable, with\n" +
			"your Google credentials (gcloud auth application-default login): those of the context that `affinity " +
			"context add --from-terraform`\n" +
			"made, or of --project, --database, --keys-database and --instance, which have no defaults. For an engine of " +
			"`affinity up` at --url set\n" +
			"AFFINITY_OPERATOR to the operator's token that it printed, of `affinity serve` to that in its folder, with its\n" +
			"--admin address as --url. --project takes precedence, then the context; " +
			"GOOGLE_CLOUD_PROJECT\n" +
			"and FIRESTORE_EMULATOR_HOST count only without AFFINITY_OPERATOR and --url.",
	})
	flags := group.PersistentFlags()
	flags.StringVar(&a.databases.Project, "project", "",
		"Google Cloud project of a deployed engine (default: that of the context, or $GOOGLE_CLOUD_PROJECT)")
	flags.StringVar(&a.databases.Configuration, "database", "",
		"Firestore database of a deployed engine (default: that of the context)")
	flags.StringVar(&a.databases.Keys, "keys-database", "",
		"Firestore database of a deployed engine's keys (default: that of the context)")
	flags.StringVar(&a.bigtable.Instance, "instance", "",
		"Bigtable instance of a deployed engine (default: that of the context), which holds the audit log and what "+
			"jobs say of users")
	flags.StringVar(&a.bigtable.Profile, "app-profile", a.bigtable.Profile, "app profile of the instance")
	flags.Func("regions", "regions of a deployed engine that has some: terraform output -raw regions",
		func(text string) error {
			if text == "" {
				return nil // Terraform prints that of an engine without regions
			}
			return a.regions.UnmarshalText([]byte(text))
		})
	group.AddCommand(a.createCommand(), a.listCommand(), a.retentionCommand(), a.consistencyCommand(),
		a.rankingCommand(), a.segmentsCommand(), a.identityCommand(), a.residencyCommand(), a.purposesCommand(),
		a.holdoutCommand(), a.limitsCommand(), a.ticketsCommand(), a.encodingCommand(),
		a.keyCommand(), a.topCommand(), a.moveCommand(), a.isolateCommand(), a.regionCommand(), a.deleteCommand())
	a.completeApps(group)
	return group
}

// completeApps makes the shells complete the ids of apps, where a command takes one.
func (a *appTool) completeApps(cmd *cobra.Command) {
	if strings.Contains(cmd.Use, " ID") && cmd.Name() != "create" {
		cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) (ids []string, _ cobra.ShellCompDirective) {
			if changed := cmd.Flags().Changed; len(args) == 0 && a.Complete(changed) == nil && a.FromContext(changed) == nil {
				ctx, cancel := context.WithTimeout(cmp.Or(cmd.Context(), context.Background()), command.CompletionWait)
				defer cancel()
				cmd.SetContext(ctx)
				_ = a.with(cmd, func(s engine) (err error) { // it completes nothing if that fails
					ids, err = s.Apps(ctx)
					return err
				})
			}
			return ids, cobra.ShellCompDirectiveNoFileComp
		}
	}
	for _, child := range cmd.Commands() {
		a.completeApps(child)
	}
}

// with opens the store, calls do and closes it.
func (a *appTool) with(cmd *cobra.Command, do func(engine) error) (err error) {
	if a.databases.Project == "" && a.Deployment == nil && (os.Getenv(operator.Variable) != "" || cmd.Flags().Changed("url")) {
		local, err := command.OperatorClient(a.Tool)
		if err != nil {
			return err
		}
		fmt.Fprintf(a.Err, "on the local engine at %s\n", a.URL)
		return do(engine{Store: local, operations: local, local: local, url: a.URL})
	}
	if err := a.aim(cmd); err != nil {
		return err
	}
	opened, err := a.open.Config(cmd.Context(), a.databases)
	if err != nil {
		return err
	}
	if err := a.checkRegion(cmd, opened.Store); err != nil {
		return errors.Join(err, opened.Close())
	}
	tables, tasks := a.bigtables(opened.Store), a.taskConfig(opened.Store)
	recorded, log := a.recorded(opened.Store)
	details := &laterDetails{}
	details.open = func(ctx context.Context) (JobDetails, error) { return a.open.Details(ctx, tables) }
	defer func() { err = errors.Join(err, log.Close(), details.Close(), opened.Close()) }()
	s := &deployedStore{
		Operated: recorded, documents: opened.Documents, details: details,
		cipher: func(ctx context.Context) (config.Cipher, error) { return a.open.Cipher(ctx, a.kmsKey) },
		queue:  func(ctx context.Context) (queue.Queue, func() error, error) { return a.open.Tasks(ctx, tasks) },
		usage:  func(ctx context.Context) (UsageTable, error) { return a.open.Usage(ctx, tables) },
	}
	at := ""
	if cmd.Flags().Changed("url") || os.Getenv(command.URLVariable) != "" || a.Deployment != nil {
		at = a.URL
	}
	return do(engine{Store: s, operations: s, deployed: s, url: at})
}

func (a *appTool) createCommand() *cobra.Command {
	days, log, region := 90, command.LayoutFlags{}, ""
	cmd := &cobra.Command{
		Use:   "create ID",
		Short: "Create an app and its first two keys",
		Long: "Create an app with two keys: search, which can send events and nothing else and may stand in web pages, and admin, with\n" +
			"every permission. Each is printed once, after its name, and stored as a hash only.\n\n" +
			"The command waits until the engine takes the keys, at most about 5 seconds. Of a deployed engine\n" +
			"it does so if --url or AFFINITY_URL names it.",
		Example: "  affinity app create shop --retention-days 90 --schema narrow",
		Args:    cli.Args("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			layout, err := log.Layout()
			if err := errors.Join(checkID(args[0]), checkDays(days), err); err != nil {
				return cli.Usagef("%v", err)
			}
			if region != "" && !config.ValidRegion(region) {
				return cli.Usagef("--region %q: a region has 1 to 40 of a-z, 0-9 and -", region)
			}
			if err := a.regions.Takes(region); err != nil && len(a.regions) > 0 {
				return cli.Usagef("%v", err)
			}
			app := config.App{ID: args[0], RetentionDays: days, Log: layout, Region: region}
			return a.with(cmd, func(s engine) error { return a.create(cmd.Context(), s, app) })
		},
	}
	cmd.Flags().IntVar(&days, "retention-days", days, "how many days an event counts, 0 for no limit")
	cmd.Flags().StringVar(&region, "region", "",
		"the region in which the app lives (default: the first one of the engine)")
	log.Add(cmd)
	return cmd
}

func (a *appTool) create(ctx context.Context, s engine, app config.App) error {
	id := app.ID
	if s.deployed != nil && app.Region != "" && len(a.regions) == 0 {
		return cli.Usagef("--region %s: %s", app.Region, needRegions)
	}
	err := s.CreateApp(ctx, app)
	if errors.Is(err, config.ErrExists) {
		return fmt.Errorf("app %s exists: for another key run `affinity app key add %s --acl ...`", id, id)
	}
	if err != nil {
		return fmt.Errorf("create app %s: %w", id, err)
	}
	fmt.Fprintf(a.Err, "app %s created (%s; %s)\n", id, retention(app.RetentionDays), layout(app.Log))
	fmt.Fprintln(a.Err, "its keys; they are printed only once:")
	var texts []string
	var failed error
	keys := []config.Key{{Name: "search", ACL: []string{auth.Search}}, {Name: "admin", ACL: auth.All}}
	for _, key := range keys {
		text, err := addKey(ctx, s, id, key, false)
		if err != nil {
			failed = fmt.Errorf("app %s is created, but has no key %s yet, run `affinity app key add %s --name %s --acl %s`: %w",
				id, key.Name, id, key.Name, strings.Join(key.ACL, ","), err)
			break
		}
		texts = append(texts, text)
	}
	a.awaitKeys(ctx, s, id, texts...)
	for i, text := range texts {
		if _, err := fmt.Fprintf(a.Out, "%-6s %s\n", keys[i].Name, text); err != nil {
			return err
		}
	}
	return failed
}

// livesIn says where an app lives that names a region.
func livesIn(app config.App) string {
	switch {
	case app.Moving():
		return "  moves from " + app.Move.From + " to " + app.Move.To
	case app.Region != "":
		return "  in region " + app.Region
	}
	return ""
}

func (a *appTool) retentionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "retention ID DAYS",
		Short:   "Set how many days the events of an app count, 0 for no limit",
		Example: "  affinity app retention shop 365",
		Args:    cli.Args("ID", "DAYS"),
		RunE: func(cmd *cobra.Command, args []string) error {
			id := args[0]
			days, err := strconv.Atoi(args[1])
			if err != nil {
				return cli.Usagef("DAYS %q is not a whole number", args[1])
			}
			if err := errors.Join(checkID(id), checkDays(days)); err != nil {
				return cli.Usagef("%v", err)
			}
			return a.with(cmd, func(s engine) error {
				if err := s.SetRetention(cmd.Context(), id, days); err != nil {
					return fmt.Errorf("set the retention of app %s: %w", id, missingApp(err))
				}
				fmt.Fprintf(a.Out, "app %s: %s\n", id, retention(days))
				return nil
			})
		},
	}
}

func (a *appTool) consistencyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "consistency ID CONSISTENCY",
		Short: "Set how reads of an app's profiles see replicas: eventual or strong",
		Long: "Set how reads of an app's profiles see the clusters of the deployment, unless a request says otherwise. eventual reads\n" +
			"the nearest cluster, which may lag behind by seconds: a profile may be shown after its user was deleted. strong reads\n" +
			"the cluster that events and deletions are written to. With one cluster both are the same.",
		Example: "  affinity app consistency shop strong",
		Args:    cli.Args("ID", "CONSISTENCY"),
		RunE: func(cmd *cobra.Command, args []string) error {
			id := args[0]
			c, err := config.ParseConsistency(args[1])
			if err := errors.Join(checkID(id), err); err != nil {
				return cli.Usagef("%v", err)
			}
			return a.with(cmd, func(s engine) error {
				if err := s.SetConsistency(cmd.Context(), id, c); err != nil {
					return fmt.Errorf("set the consistency of app %s: %w", id, missingApp(err))
				}
				fmt.Fprintf(a.Out, "app %s: reads are %s\n", id, c)
				return nil
			})
		},
	}
}

func (a *appTool) encodingCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "encoding ID ENCODING",
		Short: "Set the encoding of an app's new events: json or compact",
		Long: "Set the encoding of an app's new events: json is legible in every tool, compact is smaller. Each value says how it is\n" +
			"encoded, so the encoding can change at any time and older events stay as they are.",
		Example: "  affinity app encoding shop compact",
		Args:    cli.Args("ID", "ENCODING"),
		RunE: func(cmd *cobra.Command, args []string) error {
			id := args[0]
			encoding, err := schema.ParseEncoding(args[1])
			if err := errors.Join(checkID(id), err); err != nil {
				return cli.Usagef("%v", err)
			}
			return a.with(cmd, func(s engine) error {
				app, err := s.SetEncoding(cmd.Context(), id, encoding)
				if err != nil {
					return fmt.Errorf("set the encoding of app %s: %w", id, missingApp(err))
				}
				fmt.Fprintf(a.Out, "app %s: %s\n", id, layout(app.Log))
				return nil
			})
		},
	}
}

// idArgs is cli.Args for arguments that begin with the id of an app.
func idArgs(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := cli.Args(names...)(cmd, args); err != nil {
			return err
		}
		if err := checkID(args[0]); err != nil {
			return cli.Usagef("%v", err)
		}
		return nil
	}
}

func checkID(id string) error {
	if !config.ValidAppID(id) {
		return fmt.Errorf("app id %q: must be 1 to 64 letters, digits, - and _", id)
	}
	return nil
}

func checkDays(days int) error {
	if days < 0 || days > command.MaxRetention {
		return fmt.Errorf("retention of %d days: must be 0 (no limit) to %d", days, command.MaxRetention)
	}
	return nil
}

func checkACL(acl []string) error {
	for _, permission := range acl {
		if !slices.Contains(auth.All, permission) {
			return fmt.Errorf("--acl %q does not exist: there are %s", permission, strings.Join(auth.All, ", "))
		}
	}
	if len(acl) == 0 {
		return fmt.Errorf("--acl must name at least one of %s", strings.Join(auth.All, ", "))
	}
	return nil
}

func retention(days int) string {
	if days == 0 {
		return "events count forever"
	}
	return "events count for " + cli.Count(days, "day")
}

// layout describes the layout of a log, and the schema that a migration writes
// too.
func layout(l schema.Layout) string {
	if len(l.Write) == 1 {
		return fmt.Sprintf("%s, %s", l.Read, l.Encoding)
	}
	var writes []string
	for _, n := range schema.Names {
		if l.Writes(n) {
			writes = append(writes, string(n))
		}
	}
	return fmt.Sprintf("%s (writes %s), %s", l.Read, strings.Join(writes, " and "), l.Encoding)
}

// missingApp says that the app is missing, where the store says not found.
func missingApp(err error) error {
	if errors.Is(err, config.ErrNotFound) {
		return fmt.Errorf("there is no such app (affinity app list shows all): %w", err)
	}
	return err
}
