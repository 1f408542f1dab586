package transfer

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/scripts/affinity/importer"
	"github.com/affinityengine/affinity/shared/api/client"
)

type restoreOptions struct {
	path     string
	replace  bool
	noWait   bool
	from     int
	retryFor time.Duration
}

// Restore returns the command restore.
func Restore(t *command.Tool) *cobra.Command {
	o := restoreOptions{}
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Restore a dump into the app",
		Long: "Restore FILE, which `affinity dump` wrote, into the app (- for standard input; plain or gzip): the strategy, the settings of\n" +
			"indexes, feeds, saved segments, objects, what users have said of purposes, deletions and opt-outs, the events with their\n" +
			"ids, times of receipt and filters, and the links of tokens. The app must have the purposes of the dump. The app may have another id than that of the dump, and data of its own: events that it has count once,\n" +
			"users who are deleted in one of the two are deleted, and links that contradict those of the app are left out.\n" +
			"\n" +
			"Running the same command again resumes a restore. --from-line skips what is restored; an error names the line. The key needs\n" +
			"all permissions.",
		Example: "  affinity restore shop.ndjson\n  affinity restore --url https://affinity.example.com --app shop --key-file key shop.ndjson.gz",
		Args:    cli.Args("FILE"),
		PreRunE: func(_ *cobra.Command, args []string) error {
			o.path = args[0]
			if o.retryFor <= 0 {
				return cli.Usagef("--retry-for %s: must be more than 0", o.retryFor)
			}
			if o.from < 1 {
				return cli.Usagef("--from-line %d: must be 1 or more", o.from)
			}
			return nil
		},
		RunE: t.With(func(ctx context.Context, c *client.Client, _ []string) error { return restoreDump(ctx, t, c, o) }),
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.replace, "replace", false, "replace a strategy of the app that differs from that of the dump")
	flags.BoolVar(&o.noWait, "no-wait", false, noWaitUsage)
	flags.IntVar(&o.from, "from-line", 1, "first line to restore")
	flags.DurationVar(&o.retryFor, "retry-for", t.Retry.Total,
		"how long to repeat a request while the engine is busy or away")
	return cmd
}

func restoreDump(ctx context.Context, t *command.Tool, c *client.Client, o restoreOptions) (err error) {
	src, err := importer.Open(o.path, t.In)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	t.Retry.Total = o.retryFor
	im := importer.New(c, t.Retry, t.Err)
	begun := time.Now()
	done, err := im.Restore(ctx, src, o.from, func(ctx context.Context, c *client.Client, strategy json.RawMessage) error {
		return setDumped(ctx, c, strategy, o.replace)
	})
	warn(t, done.Events)
	if err != nil {
		if through := im.Through(); through > 0 {
			err = fmt.Errorf("%w\nrun the same command again with --from-line %d", err, through+1)
		}
		return err
	}
	if done.App.App == "" && done.Events.Accepted+done.Objects == 0 {
		return fmt.Errorf("%s holds nothing of a dump", o.path)
	}
	a := done.Events
	fmt.Fprintf(t.Out, "restored the dump of %s in %.1f s: %s, %s, %s, %s, %s (%d were in the log), %s\n",
		cli.Printable(done.App.App), time.Since(begun).Seconds(), cli.Count(done.Settings, "index setting"),
		cli.Count(done.Feeds, "feed"),
		cli.Count(done.Segments, "segment"), cli.Count(done.Objects, "object"), cli.Count(a.Accepted, "event"), a.Present,
		cli.Count(a.UserDeletions, "deletion or opt-out line"))
	if n := a.UserConsents; n > 0 {
		fmt.Fprintf(t.Out, "restored %s\n", cli.Count(n, "line")+" of consents")
	}
	restoredLinks(t, done)
	if n := a.Reports; n > 0 {
		fmt.Fprintf(t.Out, "restored %s of experiments\n", cli.Count(n, "report"))
	}
	fmt.Fprintln(t.Out, tallied(im, "line", "that the log has, or with the objectID of another line"))
	if a.Accepted > 0 {
		ended, err := ending{tool: t, client: c, noWait: o.noWait}.follow(ctx)
		if err != nil {
			return err
		}
		if ended != nil {
			fmt.Fprintln(t.Out, followed(*ended))
		}
	}
	if done.Missing > 0 {
		fmt.Fprintf(t.Err, "%s could not be read when the dump was made\n", cli.Count(done.Missing, "event"))
	}
	if !done.Complete {
		return fmt.Errorf("%s is no complete dump: run `affinity dump --out` again with the file, and then restore it",
			o.path)
	}
	if err := im.BadLines(); err != nil {
		return cli.WithCode(err, command.ExitLines)
	}
	return nil
}

// restoredLinks says what became of links, and how they count.
func restoredLinks(t *command.Tool, done importer.Restored) {
	if done.Events.UserLinks == 0 {
		return
	}
	fmt.Fprintf(t.Out, "restored the links of %s\n", cli.Count(done.Events.UserLinks, "token"))
	if n := done.Events.LinksLeftOut; n > 0 {
		fmt.Fprintf(t.Err, "left out %s, which contradict links that the app has, or one of its limits\n", cli.Count(n, "link"))
	}
	if i := done.App.Identity; i != nil {
		fmt.Fprintf(t.Err, "the app of the dump had links in the mode %s, with a lookback of %s: a dump does not set that; links count "+
			"where the operator sets it with affinity app identity\n", cli.Printable(i.Mode), cli.Printable(i.Lookback))
	}
}

// setDumped sets the strategy of a dump, but does not replace another one.
func setDumped(ctx context.Context, c *client.Client, strategy json.RawMessage, replace bool) error {
	if !replace {
		var present []byte
		s, err := c.Strategies().Get(client.WithRawAnswer(ctx, &present))
		if err != nil {
			return err
		}
		var has, wants any
		if err := errors.Join(json.Unmarshal(present, &has), json.Unmarshal(strategy, &wants)); err != nil {
			return err
		}
		if len(s.EventsScoring)+len(s.FacetsScoring) > 0 && !reflect.DeepEqual(has, wants) {
			return errors.New("the app has another strategy: --replace sets that of the dump")
		}
	}
	return c.Strategies().SetJSON(ctx, strategy, client.SetOptions{})
}

// restoreAll restores the strategy, the objects and the events of an archive, in this
// order: the filters of unresolved events come from the catalog.
func restoreAll(ctx context.Context, t *command.Tool, c *client.Client, o importOptions, paths []string) error {
	files, err := importer.ArchiveFiles(paths)
	if err != nil {
		return err
	}
	archive := importer.Archive{Files: files, App: t.App}
	if o.withoutUsers != "" {
		if archive.Without, err = readUsers(t, o.withoutUsers); err != nil {
			return err
		}
	}
	t.Retry.Total = o.retryFor
	if err := setStrategy(ctx, t, c, o.strategy); err != nil {
		return err
	}
	im := newImporter(t, c)
	if o.objects != "" {
		index := cmp.Or(o.index, command.DefaultIndex)
		stored, err := sendObjects(ctx, t, im, o.objects, importer.ObjectForm{}, index)
		if err != nil {
			return err
		}
		fmt.Fprintf(t.Err, "%s went to the index %q\n", cli.Count(stored.Stored, "object"), cli.Printable(index))
	}
	return restoreArchive(ctx, t, im, archive, o.ending(t, c))
}

// readUsers reads the user tokens of a file, one a line.
func readUsers(t *command.Tool, path string) (users map[string]bool, err error) {
	src, err := importer.Open(path, t.In)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	return importer.Users(src)
}

func restoreArchive(ctx context.Context, t *command.Tool, im *importer.Importer, archive importer.Archive,
	end ending) error {
	s := newSummary(im)
	answer, err := im.Archive(ctx, archive)
	warn(t, answer.ImportAnswer)
	if err != nil {
		return fmt.Errorf("%w\n%s went in before that: run the same command again; they count once", err,
			cli.Count(answer.Accepted, "event"))
	}
	s.addEvents(answer.ImportAnswer, "event", "that the log or the archive has another time")
	s.Events.Others, s.Events.Without = answer.Others, answer.Without
	if answer.Others > 0 {
		fmt.Fprintf(t.Err, "skipped %s of other apps\n", cli.Count(answer.Others, "message"))
	}
	if answer.Without > 0 {
		fmt.Fprintf(t.Err, "left out %s of the users of --without-users\n", cli.Count(answer.Without, "event"))
	}
	return s.end(ctx, end, fmt.Sprintf("restored %s of %s from %s in %.1f s: %d were in the log, %d are new",
		cli.Count(answer.Accepted, "event"), t.App, cli.Count(len(archive.Files), "file"), s.seconds(), answer.Present,
		answer.Accepted-answer.Present-answer.Deleted-answer.OptedOut-answer.Withheld))
}
