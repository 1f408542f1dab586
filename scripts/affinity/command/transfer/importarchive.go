package transfer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/scripts/affinity/importer"
	"github.com/affinityengine/affinity/shared/api/client"
)

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
		stored, err := sendObjects(ctx, t, im, o.objects, index)
		if err != nil {
			return err
		}
		fmt.Fprintf(t.Err, "%s went to the index %q\n", cli.Count(stored, "object"), cli.Printable(index))
	}
	return restoreArchive(ctx, t, im, archive)
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

func restoreArchive(ctx context.Context, t *command.Tool, im *importer.Importer, archive importer.Archive) error {
	begun := time.Now()
	answer, err := im.Archive(ctx, archive)
	warn(t, answer.ImportAnswer)
	if err != nil {
		return fmt.Errorf("%w\n%s went in before that: run the same command again; they count once", err, cli.Count(answer.Accepted, "event"))
	}
	printCounts(t, im, fmt.Sprintf("restored %s of %s from %s in %.1f s: %d were in the log, %d are new", cli.Count(answer.Accepted, "event"),
		t.App, cli.Count(len(archive.Files), "file"), time.Since(begun).Seconds(), answer.Present, answer.Accepted-answer.Present-answer.Deleted-answer.OptedOut),
		lines(im, "event", "that the log or the archive has another time"))
	if answer.Others > 0 {
		fmt.Fprintf(t.Err, "skipped %s of other apps\n", cli.Count(answer.Others, "message"))
	}
	if answer.Without > 0 {
		fmt.Fprintf(t.Err, "left out %s of the users of --without-users\n", cli.Count(answer.Without, "event"))
	}
	if err := im.BadLines(); err != nil {
		return cli.WithCode(err, command.ExitLines)
	}
	return nil
}
