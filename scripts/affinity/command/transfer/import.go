package transfer

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/scripts/affinity/importer"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/event"
	domain "github.com/affinityengine/affinity/shared/score/strategy"
)

type importOptions struct {
	index, objects, strategy, events, withoutUsers string
	archive, shift, check, suggest, noWait         bool
	written                                        command.EventForm
	form                                           importer.Form
	retryFor                                       time.Duration
}

// Import returns the command import.
func Import(t *command.Tool) *cobra.Command {
	o := importOptions{}
	cmd := &cobra.Command{
		Use:   "import [flags] EVENTS | --objects FILE | --archive FILE|FOLDER...",
		Short: "Import a history of events, with its catalog and strategy",
		Long: "Import EVENTS (one JSON event per line, plain or gzip, - for standard input), after the strategy and the\n" +
			"catalog if they are given. If the app has no strategy the command asks whether to set one by what it imports;\n" +
			"--suggest does so without asking.\n" +
			"Events of any age are imported, with up to 20 objects each. Bad lines are printed\n" +
			"with their number; the others are imported (exit 3). The last lines say how many lines were read, imported,\n" +
			"equal to another and refused; -o json prints them as JSON. Running the same command again resumes an import:\n" +
			"an event counts once, and so do equal lines, unless each has an eventId of its own. A warning names objects\n" +
			"that the catalog does not hold. Requires a key with the permission admin for events, addObject for objects,\n" +
			"recommendation for the strategy.\n" +
			"\n" +
			"The command returns once the engine has folded the histories of all users, so that reads are fast, and built the\n" +
			"crowd statistics, which orders by popularity need. Ctrl-C stops waiting for them, and --no-wait does not wait.\n" +
			"\n" +
			writtenHelp +
			"\n" +
			timesHelp() +
			"\n" +
			"--shift-to-now moves all events by whole days, so that the newest one is less than a day old. Use it for\n" +
			"data that are older than the app's retention, which count in no profile. The same file, imported on another\n" +
			"day, counts again.\n" +
			"\n" +
			"--check reads all files, prints every bad line with the reason, and the counts. It needs no engine and sends\n" +
			"nothing. Its exit code is that of the import. It does not know what only an engine knows: the permissions of\n" +
			"a key, limits, and the catalog.\n" +
			"\n" +
			"Text is UTF-8, or UTF-16 with a byte order mark. A line of other bytes is bad; the reason names the probable\n" +
			"encoding and how to convert the file. A quote that a row of CSV does not close costs that row, and no other\n" +
			"one. A quoted cell may hold line breaks.\n" +
			"\n" +
			"With --archive, restore the events of the app from files of the archive, with the ids, times of receipt and\n" +
			"filters that they had. Of a folder, all files whose names end with .ndjson or .ndjson.gz are read, those of\n" +
			"its folders too. Give all files at once: a later one may hold better filters of an event. Events that the\n" +
			"log has stay as they are, so a second import changes nothing. An event stays deleted if its user was deleted\n" +
			"in this app since its receipt. An app that was created again does not know who was deleted: leave them out\n" +
			"with --without-users. Files of the archive are named with the line at which a broken message begins; all\n" +
			"others are restored (exit 3).",
		Example: "  affinity import --strategy strategy.json --objects objects.ndjson.gz events.ndjson.gz\n" +
			"  zcat 2026-*.gz | affinity import --index shoes -\n" +
			"  affinity import --check --map userToken=visitor --objects objects.ndjson events.csv\n" +
			"  affinity import --map userToken=user_id,objectIDs=product_id,timestamp=event_time --event cart=click --event purchase=conversion \\\n    --shift-to-now 2019-Oct.csv.gz\n" +
			"  affinity import --map 'userToken=user_pseudo_id,timestamp=event_timestamp,objectIDs=items[].item_id' \\\n" +
			"    --hash-tokens --event view_item=view,add_to_cart=click,purchase=conversion,'*=skip' ga4.json\n" +
			"  gcloud storage cp -r gs://PROJECT-affinity-archive/events . && affinity import --archive events --app " +
			"shop --key KEY",
		Args: func(cmd *cobra.Command, args []string) error {
			if o.archive && len(args) > 0 || o.alone(len(args)) {
				return nil
			}
			return cli.Args("EVENTS")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), t, args) },
	}
	o.flags(cmd.Flags(), t.Retry.Total)
	t.JSONFlag(cmd, jsonUsage)
	return cmd
}

// jsonUsage describes --json.
const jsonUsage = "print the summary as JSON"

// writtenHelp says how files may be written.
const writtenHelp = "EVENTS may also be one list of JSON objects, objects over several lines as jq prints them, or CSV: a table\n" +
	"whose first line names its columns, with commas, semicolons or tabs between them, or what --delimiter names.\n" +
	"The fields of an event may have names such as user_token. An event may be a track call of Segment or\n" +
	"RudderStack. A line may also be one of an export: its event keeps its id, its user and its filters. The\n" +
	"catalog may be written in these ways too.\n" +
	"\n" +
	"--map names columns: --map userToken=visitor,objectIDs=sku,timestamp=time. Cells hold one object, or several\n" +
	"with | between them. Of objects of JSON it names paths: --map userToken=user.id,objectIDs=items[].item_id goes\n" +
	"through all elements of the list items, and event_params[key=term].value.string_value through those whose key\n" +
	"is term. Nothing else of the objects goes in then, and more than 20 objects become several events. --map\n" +
	"objectID=Artikel names the column of the catalog.\n" +
	"\n" +
	"--event gives the type of events with a name of your own: --event cart=click --event purchase=conversion. The\n" +
	"type skip leaves them out, and '*=skip' all that have no type. Names without a type are refused and printed\n" +
	"once each, with a guess.\n" +
	"\n" +
	"Numbers are ids as they are written; 71.0 is 71, which pandas makes of it. User tokens have letters, digits\n" +
	"and _=/+-. --hash-tokens takes ids of any form, such as e-mail addresses: every token of EVENTS is then the\n" +
	"SHA-256 of the id in base64url without padding. Other programs get the token of an id with\n" +
	"  printf %s ID | openssl dgst -sha256 -binary | base64 | tr +/ -_ | tr -d =\n"

// timesHelp says in which forms a timestamp may be.
func timesHelp() string {
	text := "A timestamp, a number or a text, has one of these forms:\n"
	for _, f := range event.TimeForms {
		text += "  " + f.Form + "\n      " + strings.Join(f.Examples, ", ") + "\n"
	}
	return text + "A time without a zone is UTC. The name of another zone, such as EST, is refused: write its offset, -05:00.\n" +
		"So is a time that no event can have: before 1980, such as a database's 1970-01-01, or more than 5 minutes in\n" +
		"the future.\n"
}

func (o *importOptions) run(ctx context.Context, t *command.Tool, args []string) error {
	if len(args) > 0 {
		o.events = args[0]
	}
	if err := o.valid(); err != nil {
		return err
	}
	o.form = o.written.Events()
	c, err := clientUnless(t, o.check)
	switch {
	case err != nil:
		return err
	case o.alone(len(args)):
		return importObjectsAlone(ctx, t, c, *o)
	case o.archive:
		return restoreAll(ctx, t, c, *o, args)
	}
	return importAll(ctx, t, c, *o)
}

// alone reports whether objects are imported without events.
func (o *importOptions) alone(args int) bool { return args == 0 && o.objects != "" && !o.archive }

// importObjectsAlone imports the strategy, if there is one, and the objects.
func importObjectsAlone(ctx context.Context, t *command.Tool, c *client.Client, o importOptions) error {
	t.Retry.Total = o.retryFor
	if err := setStrategy(ctx, t, c, o.strategy); err != nil {
		return err
	}
	return importCatalog(ctx, t, newImporter(t, c), o.objects, o.written.Objects(), cmp.Or(o.index, command.DefaultIndex))
}

// flags defines the flags. retryFor is the default of --retry-for.
func (o *importOptions) flags(flags *pflag.FlagSet, retryFor time.Duration) {
	flags.StringVar(&o.index, "index", "", "index of the objects, and of events that name none\n"+
		"(default: the index of the first event, else "+command.DefaultIndex+")")
	flags.StringVar(&o.objects, "objects", "",
		"catalog to import first: one JSON object per line, or CSV, plain or gzip, - for standard input")
	flags.StringVar(&o.strategy, "strategy", "",
		"strategy to set first: a JSON file; without personalizationImpact it is sent with 50")
	flags.BoolVar(&o.suggest, "suggest", false,
		"set a strategy by what the import brings, if the app has none: as `affinity strategy suggest --set` does")
	flags.BoolVar(&o.archive, "archive", false, "the arguments are files or folders of the archive")
	flags.StringVar(&o.withoutUsers, "without-users", "",
		"file of user tokens, one a line, whose events of an archive are not restored")
	o.written.Flags(flags)
	flags.BoolVar(&o.shift, "shift-to-now", false,
		"move the events by whole days, so that the newest one is less than a day old")
	flags.BoolVar(&o.check, "check", false, checkUsage)
	flags.BoolVar(&o.noWait, "no-wait", false, noWaitUsage)
	flags.DurationVar(&o.retryFor, "retry-for", retryFor, "how long to repeat a request while the engine is busy or away")
}

// valid checks the flags.
func (o importOptions) valid() error {
	switch {
	case o.retryFor <= 0:
		return cli.Usagef("--retry-for %s: must be more than 0", o.retryFor)
	case o.objects == "-" && o.events == "-":
		return cli.Usagef("--objects and EVENTS cannot both be standard input")
	case o.archive && o.events == "-":
		return cli.Usagef("--archive reads its files twice, so they cannot be standard input")
	case o.archive && o.index != "" && o.objects == "":
		return cli.Usagef("--index: events of an archive have their index")
	case !o.archive && o.withoutUsers != "":
		return cli.Usagef("--without-users is for --archive")
	case o.archive && (o.written.Given() || o.shift):
		return cli.Usagef("--map, --event, --delimiter, --hash-tokens and --shift-to-now are not for --archive: its " +
			"events stay as they are")
	case o.suggest && (o.strategy != "" || o.archive || o.check):
		return cli.Usagef("--suggest is not for --strategy, --archive or --check")
	case o.shift && o.events == "-":
		return cli.Usagef("--shift-to-now reads EVENTS twice, so it cannot be standard input")
	}
	return o.written.Check()
}

// shiftToNow returns how far --shift-to-now moves the events: by whole days.
func (o importOptions) shiftToNow(now time.Time) (time.Duration, error) {
	events, err := importer.Open(o.events, nil)
	if err != nil {
		return 0, err
	}
	defer events.Close()
	events.As(o.form)
	newest, err := events.Newest(now)
	if err != nil || newest == 0 {
		return 0, err
	}
	return now.Sub(time.UnixMilli(newest)).Truncate(24 * time.Hour), nil
}

// importAll imports strategy, objects and events, in this order: events find their
// objects and count under the strategy. It opens all files before it sends
// anything.
func importAll(ctx context.Context, t *command.Tool, c *client.Client, o importOptions) (err error) {
	var strategy json.RawMessage
	if o.strategy != "" {
		if strategy, err = t.ReadStrategy(o.strategy); err != nil {
			return err
		}
	}
	var objects *importer.Source
	if o.objects != "" {
		if objects, err = importer.Open(o.objects, t.In); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, objects.Close()) }()
		defer context.AfterFunc(ctx, func() { objects.Interrupt(ctx.Err()) })()
		objects.AsObjects(o.written.Objects())
	}
	events, err := importer.Open(o.events, t.In)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, events.Close()) }()
	defer context.AfterFunc(ctx, func() { events.Interrupt(ctx.Err()) })()
	if o.shift {
		o.form.Now = time.Now()
		if o.form.Shift, err = o.shiftToNow(o.form.Now); err != nil {
			return err
		}
		fmt.Fprintf(t.Err, "events are moved by %s\n", cli.Count(int64(o.form.Shift/(24*time.Hour)), "day"))
	}
	events.As(o.form)

	t.Retry.Total = o.retryFor
	if err := sendStrategy(ctx, t, c, strategy); err != nil {
		return err
	}
	first, err := o.firstStrategy(ctx, t, c)
	if err != nil {
		return err
	}
	index := o.index
	if index == "" {
		index = command.FirstIndex(events)
		if objects != nil {
			fmt.Fprintf(t.Err, "objects go to the index %q (--index names another)\n", cli.Printable(index))
		}
	}
	end := o.ending(t, c)
	end.first = first
	return importData(ctx, t, newImporter(t, c), objects, events, index, end)
}

// importData imports objects, if there are some, and then events.
func importData(ctx context.Context, t *command.Tool, im *importer.Importer, objects, events *importer.Source,
	index string, end ending) error {
	s := newSummary(im)
	if objects != nil {
		stored, err := im.Objects(ctx, objects, index)
		if err != nil && (im.Checks() || im.Tally().Read == 0) {
			return err
		}
		if err != nil {
			return fmt.Errorf("%w\n%s and no events went in: run the same command again to resume", err,
				cli.Count(stored.Stored, "object"))
		}
		s.addObjects(stored, index)
	}
	eventsBegun := time.Now()
	counts, err := im.Events(ctx, events, index)
	warn(t, counts)
	if err != nil && (im.Checks() || im.Tally().Read == 0) {
		return err
	}
	if err != nil {
		return fmt.Errorf("%w\n%s went in before that (%s): run the same command again to resume; they count once", err,
			cli.Count(counts.Accepted, "event"), tallied(im, "line", equalEvents))
	}
	s.addEvents(counts, "line", equalEvents)
	end.accepted = counts.Accepted
	with := ""
	if objects != nil {
		with = " and " + cli.Count(s.Objects.stored, "object")
	}
	return s.end(ctx, end, fmt.Sprintf("imported %s%s in %.1f s (%.0f events/s)", cli.Count(s.Events.Imported, "event"),
		with, s.seconds(), cli.PerSecond(counts.Accepted, time.Since(eventsBegun))))
}

// checkUsage describes the flag --check.
const checkUsage = "print all bad lines and the counts, and send nothing"

// clientUnless returns no client for a command that sends nothing.
func clientUnless(t *command.Tool, check bool) (*client.Client, error) {
	if check {
		return nil, nil
	}
	return t.Client()
}

// newImporter returns an importer that sends to c, or one that checks if c is nil.
func newImporter(t *command.Tool, c *client.Client) *importer.Importer {
	if c == nil {
		return importer.NewCheck(t.Err)
	}
	return importer.New(c, t.Retry, t.Err)
}

// setStrategy sets the strategy of a file, if one is given, and waits for a busy engine.
func setStrategy(ctx context.Context, t *command.Tool, c *client.Client, path string) error {
	if path == "" {
		return nil
	}
	strategy, err := t.ReadStrategy(path)
	if err != nil {
		return err
	}
	return sendStrategy(ctx, t, c, strategy)
}

// sendStrategy sets a strategy that has been read, if there is one. Without a client it
// checks the strategy.
func sendStrategy(ctx context.Context, t *command.Tool, c *client.Client, strategy json.RawMessage) error {
	if strategy == nil {
		return nil
	}
	if c == nil { // to be checked
		if _, err := domain.Decode(strategy); err != nil {
			return fmt.Errorf("the strategy: %w", err)
		}
		return nil
	}
	err := t.SetStrategy(ctx, func(ctx context.Context) error {
		return t.Patient(c).Strategies().SetJSON(ctx, strategy, client.SetOptions{})
	})
	if err != nil {
		return fmt.Errorf("set the strategy: %w", err)
	}
	return nil
}
