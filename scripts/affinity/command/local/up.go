package local

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/event/bus"
	"github.com/affinityengine/affinity/shared/local/operator"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/web/auth"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// Options is how a local stack is started.
type Options struct {
	Addr          string           // host:port of the public functions
	Origins       []string         // of web pages of other machines that may call an engine on loopback
	Apps          []App            // created with all permissions if they do not exist
	Now           time.Time        // where the engine's clock starts; zero: the machine's clock
	Clock         func() time.Time // in place of one that starts at Now
	RetentionDays int              // of the apps; 0: no limit
	Layout        schema.Layout    // of the log of created apps
	Links         bool             // created apps link the tokens of a person
	Archive       string           // folder for files of accepted events; empty: none
	Warehouse     string           // folder for rows for analysts; empty: none
	Data          string           // folder in which everything outlives the process; empty: all is in memory
	Sync          bool             // answers wait until what they stand for is on the disk of Data
	KeepRetention bool             // of apps that exist in Data
	Operator      string           // the operator's token
	MadeOperator  bool             // the token is not the environment's
	Regions       []string         // in which apps may live
	Tables        []string         // sets of tables for isolated apps
	RequestLimit  time.Duration    // how long a request or a task may take; 0: as deployed, with regions half a minute
	PackWindow    time.Duration    // how long ingest waits for more requests of an app; 0: as deployed
	Hosts         auth.Hosts       // which app each host serves; other hosts are refused if there are some
	Forwarded     int              // how many proxies append to X-Forwarded-For
	TLS           *tls.Config      // of the public address; nil: plain HTTP
	Admin         string           // the operators' address; empty: the public one
	Backups       stack.Backups    // that the engine makes of Data itself
	Log           *slog.Logger
}

// App is an app with one key.
type App struct{ ID, Key string }

// upFlags are the flags of up and demo as they were given.
type upFlags struct {
	command.LayoutFlags
	addr, now     string
	origins       []string
	archive, data string
	warehouse     string
	apps          []string
	retentionDays int
	regions       []string
	tables        []string
	requestLimit  time.Duration
	packWindow    time.Duration
	sync          bool
}

// Up returns the command up, which starts an engine with start.
func Up(t *command.Tool, start Starter) *cobra.Command {
	f := &upFlags{}
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start the whole engine in this process",
		Long: "Start the whole engine in this process and serve until Ctrl-C. Once it is up it prints one line: `ready ` and the URL.\n" +
			"All data is in memory and ends with the process. With --data DIR it is in a folder, and what was acknowledged is there\n" +
			"again at the next start with the folder, even after a kill (a failure of the machine may lose the last second,\n" +
			"without --sync): events, objects, profiles, strategies, apps, keys, jobs, tasks, and events that wait.\n" +
			"An app in the folder keeps its schema, its encoding and, unless --retention-days is given, its retention. One process at a time uses a folder.\n" +
			"If a process with a later clock has used the folder, the start says so: events of that time do not count until the\n" +
			"clock is there, and what it deleted stays deleted, but no longer covers new events.\n" +
			"BIGTABLE_EMULATOR_HOST, PUBSUB_EMULATOR_HOST and FIRESTORE_EMULATOR_HOST name official emulators, which exclude --data.\n" +
			"With a Bigtable emulator alone apps are created at each start: give the --schema that their events have.\n" +
			"With --regions eu,us apps live in one of several regions, the first one unless `affinity app create --region` names\n" +
			"another, and `affinity app move` moves them. With --tables big `affinity app isolate` moves an app to tables of its own.\n" +
			"A request is answered in the time that its function has in a deployment: 10 seconds for /docs, one minute to ingest,\n" +
			"read and rank, two for the console and previews, five for imports, ten for exports and tasks. With --regions or --tables\n" +
			"requests and tasks end after 30 seconds, because a move waits for them. --request-limit sets a shorter time.\n" +
			"The operator's token is taken from AFFINITY_OPERATOR, or made and printed.\n" +
			"Without --app the engine has the app and the key of AFFINITY_APP and AFFINITY_KEY (or AFFINITY_KEY_FILE), or else demo\n" +
			"and demokey, so that the other commands in the same environment reach it.",
		Example: "  affinity up\n  affinity up --addr 127.0.0.1:9000 --app shop:s3cret --retention-days 0\n  affinity up --schema narrow\n  affinity up --data ./affinity-data",
		Args:    cli.Subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := f.options(cmd)
			if err != nil {
				return err
			}
			return serve(cmd.Context(), t, start, o, func(_ context.Context, s RunningStack) error {
				fmt.Fprintf(t.Err, "the console of app %s, for one use within ten minutes: %s\n", o.Apps[0].ID,
					s.ConsoleLink(o.Apps[0].ID, o.Apps[0].Key))
				printNext(t.Err, s.URL(), o)
				return nil
			}, false)
		},
	}
	f.add(cmd)
	return cmd
}

// add defines the flags. Its --app replaces the root's flag, which names an app
// without a key.
func (f *upFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.addr, "addr", "127.0.0.1:8080", "address to serve on; port 0 chooses a free one")
	flags.StringArrayVar(&f.origins, "origin", nil,
		"origin of web pages that may call an engine on loopback, beside those of this machine, such as "+
			"http://shop.test:3000 (repeatable)")
	flags.StringArrayVar(&f.apps, "app", nil,
		"app and a key with all permissions, as ID:KEY (repeatable; default: $"+command.AppVariable+" and $"+
			command.KeyVariable+", or demo:"+demoKey+")")
	flags.StringVar(&f.now, "now", "", "start the engine's clock at this time, such as 2026-11-21T10:00:00Z "+
		"(default: the machine's clock)")
	flags.IntVar(&f.retentionDays, "retention-days", 90, "how many days an event counts, 0 for no limit")
	flags.StringVar(&f.data, "data", "", "folder to keep everything in, for the next start (default: all data is in memory)")
	flags.BoolVar(&f.sync, "sync", false, "with --data, "+syncUsage)
	f.addEngine(cmd)
	f.LayoutFlags.Add(cmd)
	for _, name := range []string{"url", "key"} { // options refuses them
		hide(cmd, name)
	}
}

const syncUsage = "answer a request that changes something once the change is on the disk, so that a failure of the " +
	"machine loses nothing that was acknowledged"

// hide defines a flag of the root once more, for a command that refuses it.
func hide(cmd *cobra.Command, name string) {
	cmd.Flags().String(name, "", "")
	cmd.Flags().Lookup(name).Hidden = true
}

// addEngine defines the flags of every engine.
func (f *upFlags) addEngine(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.archive, "archive", "",
		"folder to write accepted events to, in files that import --archive restores")
	flags.StringVar(&f.warehouse, "warehouse", "",
		"folder to write rows for analysts to, as JSON: those that a deployment with a warehouse writes to BigQuery")
	flags.StringSliceVar(&f.regions, "regions", nil,
		"regions in which apps may live, as eu,us: each has a Bigtable instance, topics and queues of its own")
	flags.StringSliceVar(&f.tables, "tables", nil,
		"sets of tables to which affinity app isolate moves an app: NAME, or REGION/NAME with --regions")
	flags.DurationVar(&f.requestLimit, "request-limit", 0,
		"how long a request or a task may take at most; each phase of a move waits as long (default: as in a "+
			"deployment, 30s with --regions or --tables)")
	flags.DurationVar(&f.packWindow, "pack-window", bus.DefaultWindow,
		fmt.Sprintf("how long a request with events may wait for others of its app, to be processed with them: "+
			"1ms to %s", bus.MaxWindow))
}

// options checks the flags.
func (f *upFlags) options(cmd *cobra.Command) (Options, error) {
	if cmd.Flags().Changed("url") || cmd.Flags().Changed("key") {
		return Options{}, cli.Usagef("--url and --key name a running engine, but %s starts one: use --addr and "+
			"--app ID:KEY", cmd.Name())
	}
	o := Options{Addr: f.addr, RetentionDays: f.retentionDays,
		KeepRetention: !cmd.Flags().Changed("retention-days")}
	if f.data == "" && cmd.Flags().Changed("data") {
		return o, cli.Usagef("--data must name a folder")
	}
	if f.sync && f.data == "" {
		return o, cli.Usagef("--sync is about a folder: name it with --data DIR")
	}
	o.Log = slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	var err error
	if o.Layout, err = f.Layout(); err != nil {
		return o, cli.Usagef("%v", err)
	}
	if f.retentionDays < 0 || f.retentionDays > command.MaxRetention {
		return o, cli.Usagef("--retention-days %d: must be 0 (no limit) to %d", f.retentionDays, command.MaxRetention)
	}
	if f.now != "" {
		now, err := event.ParseTime(f.now)
		if err != nil {
			return o, cli.Usagef("--now %q: %v", f.now, err)
		}
		o.Now = time.UnixMilli(now).UTC()
	}
	if err := f.engineOptions(&o); err != nil {
		return o, err
	}
	if o.Origins, err = parseOrigins(f.origins); err != nil {
		return o, err
	}
	texts := f.apps
	if !cmd.Flags().Changed("app") {
		app, err := appOfEnvironment()
		if err != nil {
			return o, err
		}
		texts = []string{app}
	}
	for _, text := range texts {
		app, err := parseApp(text)
		if err != nil {
			return o, err
		}
		o.Apps = append(o.Apps, app)
	}
	if o.Operator = os.Getenv(operator.Variable); o.Operator == "" {
		o.Operator, o.MadeOperator = operator.NewToken(), true
	}
	if err := operator.CheckToken(o.Operator); err != nil {
		return o, cli.Usagef("%v", err)
	}
	return o, checkAddr(o)
}

// engineOptions checks the flags of every engine.
func (f *upFlags) engineOptions(o *Options) error {
	if o.PackWindow = f.packWindow; o.PackWindow < time.Millisecond || o.PackWindow > bus.MaxWindow {
		return cli.Usagef("--pack-window %s: must be 1ms to %s", o.PackWindow, bus.MaxWindow)
	}
	for i, name := range f.regions {
		if !config.ValidRegion(name) || slices.Contains(f.regions[:i], name) {
			return cli.Usagef("--regions %s: %q must be 1 to 40 of a-z, 0-9 and -, and there once",
				strings.Join(f.regions, ","), name)
		}
	}
	for _, set := range f.tables {
		in, name, ok := strings.Cut(set, "/")
		if !ok {
			in, name = "", set
		}
		if !config.ValidRegion(name) || ok && !slices.Contains(f.regions, in) {
			return cli.Usagef("--tables %q must be NAME, or REGION/NAME with a region of --regions; a name has 1 to 40 "+
				"of a-z, 0-9 and -", set)
		}
	}
	if f.requestLimit != 0 && f.requestLimit < time.Second {
		return cli.Usagef("--request-limit %s: must be at least 1s", f.requestLimit)
	}
	o.Regions, o.Tables, o.RequestLimit = f.regions, f.tables, f.requestLimit
	o.Archive, o.Warehouse, o.Data, o.Sync = f.archive, f.warehouse, f.data, f.sync
	return nil
}

// appOfEnvironment returns the app, as ID:KEY, that other commands name when no
// flag does.
func appOfEnvironment() (string, error) {
	id, key := cmp.Or(os.Getenv(command.AppVariable), "demo"), os.Getenv(command.KeyVariable)
	if file := os.Getenv(command.KeyFileVariable); key == "" && file != "" {
		var err error
		if key, err = command.ReadKey(file); err != nil {
			return "", err
		}
	}
	return id + ":" + cmp.Or(key, demoKey), nil
}

func parseApp(text string) (App, error) {
	id, key, ok := strings.Cut(text, ":")
	switch {
	case !ok:
		return App{}, cli.Usagef("--app %q must be ID:KEY", text)
	case !config.ValidAppID(id):
		return App{}, cli.Usagef("--app %q: the id must be 1 to 64 letters, digits, - and _", text)
	case key == "":
		return App{}, cli.Usagef("--app %q: the key must not be empty", text)
	}
	return App{ID: id, Key: key}, nil
}

// minKey is the number of characters of a key that other machines cannot guess.
const minKey = 16

// checkAddr refuses to serve a publicly known or short key to other machines.
func checkAddr(o Options) error {
	if _, _, err := net.SplitHostPort(o.Addr); err != nil {
		return cli.Usagef("--addr %q must be host:port: %v", o.Addr, err)
	}
	if httpapi.Loopback(o.Addr) {
		return nil
	}
	if len(o.Origins) > 0 {
		return cli.Usagef("--origin %s: an engine at --addr %s answers the web pages of every origin", o.Origins[0], o.Addr)
	}
	for _, app := range o.Apps {
		if app.Key == demoKey {
			return cli.Usagef("--addr %s can be reached from other machines, and the key %s is public: give --app "+
				"%s:KEY, or set %s, with a key of your own",
				o.Addr, demoKey, app.ID, command.KeyVariable)
		}
		if len(app.Key) < minKey {
			return cli.Usagef("--addr %s can be reached from other machines, and the key of app %s can be guessed: "+
				"give one of at least %d characters",
				o.Addr, app.ID, minKey)
		}
	}
	return nil
}

// serve starts a stack, calls do, and serves until the context ends, unless once
// is set. The context ends with Ctrl-C, at any time, which is not an error.
func serve(ctx context.Context, t *command.Tool, start Starter, o Options,
	do func(context.Context, RunningStack) error, once bool) (err error) {
	if start == nil {
		return errors.New("this build of the tool has no local stack")
	}
	// The database is in this process. At the usual rate the collection of its heap would take
	// much of a small machine from requests. Data in memory are a large part of the heap.
	if os.Getenv("GOGC") == "" {
		percent := 200
		if o.Data == "" {
			percent = 150
		}
		debug.SetGCPercent(percent)
	}
	engine, err := start(ctx, o)
	if err != nil && ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return advised(err)
	}
	defer func() {
		if closed := engine.Close(); closed != nil {
			err = errors.Join(err, fmt.Errorf("stop the local stack: %w", closed))
		}
	}()
	if o.MadeOperator {
		fmt.Fprintf(t.Err, "the operator's token, for `affinity app` and `affinity replay` in another terminal: "+
			"export %s=%s\n", operator.Variable, o.Operator)
	}
	switch {
	case o.Admin != "": // it logs
	case o.Data == "":
		fmt.Fprintln(t.Err, "all data is in memory and ends with this process; --data DIR keeps it")
	default:
		fmt.Fprintf(t.Err, "all data is kept in %s\n", o.Data)
	}
	if _, err := fmt.Fprintf(t.Out, "ready %s\n", engine.URL()); err != nil {
		return fmt.Errorf("print the ready line: %w", err)
	}
	err = do(ctx, engine)
	if ctx.Err() != nil {
		return nil
	}
	if err != nil || once {
		return err
	}
	<-ctx.Done()
	return nil
}

// advised adds to an error of a listener what to do about it.
func advised(err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%w: give another address, or end the process that serves there", err)
	}
	if bind, ok := errors.AsType[*net.OpError](err); ok && errors.Is(bind, os.ErrPermission) {
		return fmt.Errorf("%w: give a port above 1023, or let this user bind it (systemd: "+
			"AmbientCapabilities=CAP_NET_BIND_SERVICE)", err)
	}
	return err
}
