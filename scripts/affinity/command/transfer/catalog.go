package transfer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/scripts/affinity/importer"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
)

// Catalog returns the command catalog.
func Catalog(t *command.Tool) *cobra.Command {
	return cli.Group(&cobra.Command{
		Use:   "catalog",
		Short: "Import the objects that events are about, list them, or show one",
	}, importCatalogCommand(t), listObjectsCommand(t), showObjectCommand(t))
}

func importCatalogCommand(t *command.Tool) *cobra.Command {
	index, retryFor, check := command.DefaultIndex, t.Retry.Total, false
	var delimiter string
	var form importer.ObjectForm
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Import objects into an index",
		Long: "Import FILE into an index: one JSON object a line, one list of objects, or CSV, plain or gzip, - for\n" +
			"standard input. Each has an objectID; of two with the same one, the later one stays. Bad lines are printed\n" +
			"with their number; the others are imported (exit 3). Running the same command again resumes an import.\n" +
			"Events that came before their objects get their filters by `affinity reenrich`. --check needs no engine: it\n" +
			"prints all bad lines and the counts. Requires a key with the permission addObject.\n" +
			"\n" +
			"CSV is a table whose first line names the attributes, with commas, semicolons or tabs between the columns,\n" +
			"or what --delimiter names. --map objectID=\"Artikel #\" gives a column the name of an attribute, --map\n" +
			"tags[]=Tags makes a list of cells with | between values, and in objects of JSON --map objectID=sku or\n" +
			"brand=maker.name is a path. An empty cell is no attribute. A column of numbers may have decimal commas, as\n" +
			"in 59,90 and 1.299,00: at least nine of ten of its first cells are numbers, one can only have a decimal\n" +
			"comma, and none can only have a decimal point. The command says so, and what of the column is no number. It\n" +
			"also counts values in no numeric band, and objects whose facet exceeds a limit.",
		Example: "  affinity catalog import --index shoes shoes.ndjson.gz\n" +
			"  affinity catalog import --check shoes.ndjson.gz\n" +
			"  affinity catalog import --map objectID=\"Artikel #\",price=Preis artikel.csv",
		Args: cli.Args("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if retryFor <= 0 {
				return cli.Usagef("--retry-for %s: must be more than 0", retryFor)
			}
			var err error
			if form.Delimiter, err = command.Delimiter(delimiter); err != nil {
				return err
			}
			c, err := clientUnless(t, check)
			if err != nil {
				return err
			}
			t.Retry.Total = retryFor
			return importCatalog(cmd.Context(), t, newImporter(t, c), args[0], form, index)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&index, "index", index, "index of the objects")
	flags.StringToStringVar(&form.Columns, "map", nil, "columns of a table, or paths in objects of JSON, by attribute")
	command.DelimiterFlag(flags, &delimiter, "FILE")
	flags.BoolVar(&check, "check", false, checkUsage)
	flags.DurationVar(&retryFor, "retry-for", retryFor,
		"how long to repeat a request while the engine is busy or away")
	t.JSONFlag(cmd, jsonUsage)
	return cmd
}

// sendObjects imports the objects of a file, - for standard input, into an index. It
// returns what was stored, also with an error.
func sendObjects(ctx context.Context, t *command.Tool, im *importer.Importer, path string, form importer.ObjectForm,
	index string) (stored importer.ObjectsAnswer, err error) {
	objects, err := importer.Open(path, t.In)
	if err != nil {
		return stored, err
	}
	defer func() { err = errors.Join(err, objects.Close()) }()
	defer context.AfterFunc(ctx, func() { objects.Interrupt(ctx.Err()) })()
	objects.AsObjects(form)
	return im.Objects(ctx, objects, index)
}

func importCatalog(ctx context.Context, t *command.Tool, im *importer.Importer, path string, form importer.ObjectForm,
	index string) error {
	s := newSummary(im)
	stored, err := sendObjects(ctx, t, im, path, form, index)
	if err != nil && im.Tally().Read == 0 {
		return err
	}
	if err != nil {
		return fmt.Errorf("%w\n%s went in: run the same command again to resume", err, cli.Count(stored.Stored, "object"))
	}
	s.addObjects(stored, index)
	return s.print(t, fmt.Sprintf("imported %s into the index %s in %.1f s", cli.Count(stored.Stored, "object"),
		cli.Printable(index), s.seconds()))
}

func listObjectsCommand(t *command.Tool) *cobra.Command {
	index, q := command.DefaultIndex, api.ObjectsQuery{}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the objects of an index",
		Long: "List objectIDs of an index, one a line, in the order of their bytes. With --filter, those of the objects that have the\n" +
			"value. Requires a key with the permission addObject.",
		Example: "  affinity catalog list --index shoes --filter brand:Acme | affinity rank --user ann --index shoes -",
		Args:    cli.Args(),
		PreRunE: func(*cobra.Command, []string) error {
			if q.Limit < 1 {
				return cli.Usagef("--limit %d: must be 1 or more", q.Limit)
			}
			return nil
		},
		RunE: t.With(func(ctx context.Context, c *client.Client,
			_ []string) error {
			return listObjects(ctx, t, c, index, q)
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&index, "index", index, "index of the objects")
	flags.StringVar(&q.Filter, "filter", "", "list the objects that have this value: brand:Acme (default: all)")
	flags.IntVar(&q.Limit, "limit", 50, "how many objects to list")
	t.JSONFlag(cmd, command.JSONUsage)
	return cmd
}

// listObjects lists up to a number of objects, in as many requests as that takes.
func listObjects(ctx context.Context, t *command.Tool, c *client.Client, index string, q api.ObjectsQuery) error {
	all, most := api.Objects{ObjectIDs: []string{}}, q.Limit
	for len(all.ObjectIDs) < most {
		q.Limit = min(most-len(all.ObjectIDs), api.MaxObjects)
		page, err := c.Catalog().List(ctx, index, q)
		if err != nil {
			return fmt.Errorf("list objects of %s: %w", cli.Printable(index), err)
		}
		all.ObjectIDs = append(all.ObjectIDs, page.ObjectIDs...)
		if all.Cursor, q.Cursor = page.Cursor, page.Cursor; page.Cursor == "" {
			break
		}
	}
	if t.JSON {
		return json.NewEncoder(t.Out).Encode(all)
	}
	for _, id := range all.ObjectIDs {
		if _, err := fmt.Fprintln(t.Out, cli.Printable(id)); err != nil {
			return err
		}
	}
	return nil
}

func showObjectCommand(t *command.Tool) *cobra.Command {
	index := command.DefaultIndex
	cmd := &cobra.Command{
		Use:     "show OBJECT",
		Short:   "Show an object as it was sent",
		Long:    "Show an object as it was sent. Requires a key with the permission addObject.",
		Example: "  affinity catalog show shoe-1 --index shoes",
		Args:    cli.Args("OBJECT"),
		RunE: t.With(func(ctx context.Context, c *client.Client, args []string) error {
			object, err := c.Catalog().Get(ctx, index, args[0])
			if err != nil {
				return fmt.Errorf("show object %s of %s: %w", cli.Printable(args[0]), cli.Printable(index), err)
			}
			return command.PrintIndented(t.Out, object)
		}),
	}
	cmd.Flags().StringVar(&index, "index", index, "index of the object")
	return cmd
}
