package transfer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
)

// Dump returns the command dump.
func Dump(t *command.Tool) *cobra.Command {
	out := ""
	cmd := &cobra.Command{
		Use:   "dump",
		Short: "Write all that the app has to a file, for `affinity restore`",
		Long: "Write all that the app has, one JSON document a line: its strategy, the settings of its indexes, feeds, saved segments,\n" +
			"the objects, what users have said of purposes, who was deleted or has opted out, every event in the retention with its\n" +
			"id, its time of receipt and the filters that it counts for, and the links of tokens. `affinity restore` brings it into\n" +
			"another engine, a local one or one in the cloud: the app there then has the same profiles. If the command is\n" +
			"interrupted, run it again with the same --out: it goes on behind the last page that is whole. The last line of a\n" +
			"complete dump is {\"exportEnd\":...}.\n" +
			"\n" +
			"Each page is as of the time at which it is read, and what is still on its way is not in it. For an exact copy stop\n" +
			"sending events, and wait a minute. Keys, limits and the retention are the operator's and are not in a dump. A deletion\n" +
			"of a user does not reach into the file. The audit log records the dump. Requires a key with the permission admin.",
		Example: "  affinity dump --out shop.ndjson\n" +
			"  affinity dump | affinity restore --url https://other.example.com --key-file key -",
		Args: cobra.NoArgs,
		RunE: t.With(func(ctx context.Context, c *client.Client, _ []string) (err error) {
			d := &dumping{t: t, client: t.Patient(c), out: t.Out}
			if out != "" {
				file, err := d.resume(out)
				if err != nil {
					return err
				}
				defer func() { err = errors.Join(err, file.Close()) }()
			}
			return d.run(ctx)
		}),
	}
	cmd.Flags().StringVar(&out, "out", "", "file to write, or to go on with (default: standard output)")
	return cmd
}

// dumping is a dump that is written.
type dumping struct {
	t      *command.Tool
	client *client.Client
	out    io.Writer
	cursor string // of the next page
}

func (d *dumping) run(ctx context.Context) error {
	for begun, pages := time.Now(), 1; ; pages++ {
		last, err := d.client.DumpPage(ctx, d.cursor, d.out)
		if err != nil {
			return fmt.Errorf("dump %s: %w", d.t.App, err)
		}
		if last.Next != nil {
			d.cursor = last.Next.Cursor
			if pages%10 == 0 {
				fmt.Fprintf(d.t.Err, "%s so far\n", cli.Count(pages, "page"))
			}
			continue
		}
		fmt.Fprintf(d.t.Err, "complete: %s and %s of %s in %.1f s\n", cli.Count(last.End.Objects, "object"),
			cli.Count(last.End.Events, "event"), d.t.App, time.Since(begun).Seconds())
		if last.End.Faults > 0 {
			return fmt.Errorf("dump %s: the engine could not read %s", d.t.App, cli.Count(last.End.Faults, "event"))
		}
		return nil
	}
}

// dumpTail is more than the last page that is whole takes with a part of another one.
const dumpTail = 64 << 20

// resume opens the file, behind the last page of a dump that it holds.
func (d *dumping) resume(path string) (*os.File, error) {
	// Only its owner may read it: it is about persons.
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	kept, err := d.whole(file, path)
	if err == nil {
		err = file.Truncate(kept)
	}
	if err == nil {
		_, err = file.Seek(kept, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	if kept > 0 {
		fmt.Fprintf(d.t.Err, "going on behind %d bytes of %s\n", kept, path)
	}
	d.out = file
	return file, nil
}

// whole returns how many bytes of a file are whole pages of a dump, and sets the cursor of
// the next one. It refuses a file that is something else.
func (d *dumping) whole(file *os.File, path string) (int64, error) {
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil || size == 0 {
		return 0, err
	}
	if err := d.checkFirst(file, path); err != nil {
		return 0, err
	}
	tail := make([]byte, min(size, dumpTail))
	if _, err := file.ReadAt(tail, size-int64(len(tail))); err != nil {
		return 0, err
	}
	for end := len(tail); end > 0; {
		end = bytes.LastIndexByte(tail[:end], '\n') + 1 // of the last whole line
		if end == 0 {
			break
		}
		start := bytes.LastIndexByte(tail[:end-1], '\n') + 1
		text := tail[start:end]
		if bytes.HasPrefix(text, []byte(`{"exportEnd":`)) {
			return 0, fmt.Errorf("%s is a complete dump: remove it, or give another --out", path)
		}
		var l api.ExportLine
		if bytes.HasPrefix(text, []byte(`{"exportNext":`)) && json.Unmarshal(text, &l) == nil && l.Next != nil {
			d.cursor = l.Next.Cursor
			return size - int64(len(tail)-end), nil
		}
		end = start
	}
	if int64(len(tail)) < size {
		return 0, fmt.Errorf("%s is no dump, or is damaged: its last %d bytes hold no end of a page", path, len(tail))
	}
	return 0, nil // the first page was cut off
}

// checkFirst refuses a file that does not begin as a dump of the app does.
func (d *dumping) checkFirst(file *os.File, path string) error {
	head := make([]byte, 4<<10)
	n, err := file.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	text, _, whole := bytes.Cut(head[:n], []byte("\n"))
	var first api.ExportLine
	if whole {
		_ = json.Unmarshal(text, &first)
	}
	switch {
	case first.App == nil && (whole || !bytes.HasPrefix([]byte(`{"exportedApp":`),
		text[:min(len(text), len(`{"exportedApp":`))])):
		return fmt.Errorf("%s exists and is no dump: remove it, or give another --out", path)
	case first.App != nil && first.App.App != d.t.App:
		return fmt.Errorf("%s is a dump of the app %s, not of %s: give another --out", path,
			cli.Printable(first.App.App), d.t.App)
	}
	return nil
}
