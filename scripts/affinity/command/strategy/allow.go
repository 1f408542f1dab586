package strategy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/scripts/affinity/importer"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

const (
	// defaultTop is how many values a list allows unless --top says otherwise.
	defaultTop = 1_000
	// shownAllowed is how many values of the list a person sees, at its begin and at its end.
	shownAllowed = 10
)

type allowOptions struct {
	facet, objects, out string
	top                 int
}

func allowCommand(t *command.Tool) *cobra.Command {
	o := allowOptions{}
	cmd := &cobra.Command{
		Use:   "allow --facet FACET",
		Short: "Make a list of the values of a facet that may score: the most common ones",
		Long: "Make a list of the most common values of a facet, which then are the only ones that score: a facet of free tags\n" +
			"has many that say little. Values are counted by the users who have them, as of the last build of the lists of\n" +
			"segments, or with --objects by the objects of a catalog. Ignored values are left out, and a value with an alias\n" +
			"counts as the other one. Nothing is changed: --out writes the active strategy with the list to a file, to look at\n" +
			"and to set, and --json prints the allowedValues of the strategy with the list.",
		Example: "  affinity strategy allow --facet tags --top 1000 --out strategy.json && affinity strategy preview strategy.json\n" +
			"  affinity strategy allow --facet tags --objects objects.ndjson.gz --json",
		Args: cli.Args(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cli.Require(cmd, "facet", "the facet whose values to list"); err != nil {
				return err
			}
			most := strategy.MaxAllowed
			if o.objects == "" {
				most = api.MaxValues // that the engine lists
			}
			if err := cli.Within("top", o.top, 1, most); err != nil {
				return err
			}
			return allow(cmd.Context(), t, o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.facet, "facet", "", "facet to make the list of")
	flags.IntVar(&o.top, "top", defaultTop, "how many values to allow")
	flags.StringVar(&o.objects, "objects", "", "count the objects of this catalog, - for standard input")
	flags.StringVar(&o.out, "out", "", "write the active strategy with the list to this file")
	t.JSONFlag(cmd, "print the allowedValues object for the strategy instead of the list")
	return cmd
}

// carried is a value with those who have it: users or objects.
type carried struct {
	value string
	n     int64
	count string // n in words
}

func allow(ctx context.Context, t *command.Tool, o allowOptions) error {
	c, err := t.Client()
	if err != nil {
		return err
	}
	wanted, err := strategyOrNone(ctx, c)
	if err != nil {
		return err
	}
	by, values, total := "users", []carried(nil), 0
	if o.objects == "" {
		values, total, err = valuesByUsers(ctx, c, wanted, o)
	} else {
		by = "objects"
		values, total, err = valuesByObjects(ctx, t, wanted, o)
	}
	if err != nil {
		return err
	}
	list := make(strategy.ValueSet, len(values))
	for _, v := range values {
		list[v.value] = struct{}{}
	}
	if wanted.AllowedValues = maps.Clone(wanted.AllowedValues); wanted.AllowedValues == nil {
		wanted.AllowedValues = map[string]strategy.ValueSet{}
	}
	wanted.AllowedValues[o.facet] = list
	if err := wanted.Validate(); err != nil {
		return fmt.Errorf("the strategy with this list: %w", err)
	}
	t.Warn(wanted.Warnings())
	if o.out != "" {
		if err := command.WriteStrategy(o.out, wanted); err != nil {
			return err
		}
	}
	if t.JSON {
		return cli.PrintJSON(t.Out, map[string]any{"allowedValues": wanted.AllowedValues})
	}
	return printAllowed(t.Out, o, values, by, total)
}

// valuesByUsers returns the values that most users have, and how many values there are.
func valuesByUsers(ctx context.Context, c *client.Client, active api.Strategy, o allowOptions) ([]carried, int, error) {
	if n := len(active.AllowedValues[o.facet]); n > 0 {
		return nil, 0, fmt.Errorf("the active strategy allows %s of %s, so that users have no others: count the objects of a "+
			"catalog with --objects FILE, or set a strategy without this list first", cli.Count(n, "value"), cli.Printable(o.facet))
	}
	answer, err := c.Segments().Values(ctx, o.facet, o.top, 0)
	switch {
	case command.StatusOf(err) == http.StatusConflict:
		return nil, 0, fmt.Errorf("%w\ncount the objects of a catalog in its place: --objects FILE", err)
	case err != nil:
		return nil, 0, fmt.Errorf("list values of %s: %w", cli.Printable(o.facet), err)
	case len(answer.Values) == 0:
		return nil, 0, fmt.Errorf("no profile has a value of %s: does the strategy score it?", cli.Printable(o.facet))
	}
	values := make([]carried, len(answer.Values))
	for i, v := range answer.Values {
		values[i] = carried{v.Value, v.Users.N, v.Users.String()}
	}
	return values, answer.Total, nil
}

// valuesByObjects returns the values that most objects of a catalog have, and how many
// values there are. Aliases are applied, and ignored values left out.
func valuesByObjects(ctx context.Context, t *command.Tool, active api.Strategy,
	o allowOptions) (values []carried, total int, err error) {
	src, err := importer.Open(o.objects, t.In)
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	counts, last, object := map[string]int64{}, map[string]int{}, 0 // last is the object that counted last
	err = importer.ReadObjects(ctx, src, t.Err, func(filters []event.Filter) {
		object++
		for _, f := range filters {
			value := active.Alias(f.Facet, f.Value)
			if f.Facet == o.facet && !active.Ignores(value) && last[value] != object {
				last[value] = object
				counts[value]++
			}
		}
	})
	if err != nil {
		return nil, 0, err
	}
	if len(counts) == 0 {
		return nil, 0, fmt.Errorf("no object of %s has a value of the facet %s", o.objects, cli.Printable(o.facet))
	}
	for value, n := range counts {
		values = append(values, carried{value, n, fmt.Sprint(n)})
	}
	slices.SortFunc(values, func(a, b carried) int {
		return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(a.value, b.value))
	})
	return values[:min(len(values), o.top)], len(values), nil
}

// printAllowed prints the first and the last values of a list.
func printAllowed(out io.Writer, o allowOptions, values []carried, by string, total int) error {
	shown := values
	if len(values) > 2*shownAllowed {
		gap := carried{value: fmt.Sprintf("... %d more", len(values)-2*shownAllowed)}
		shown = slices.Concat(values[:shownAllowed], []carried{gap}, values[len(values)-shownAllowed:])
	}
	err := cli.Table(out, "value\t"+by, shown, func(v carried) []any { return []any{v.value, v.count} })
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d of %s of %s may score\n", len(values), cli.Count(total, "value"), cli.Printable(o.facet))
	if o.out != "" {
		_, err = fmt.Fprintf(out, "the active strategy with this list is in %s: see what it changes with `affinity strategy "+
			"preview`, and set it with `affinity strategy set`\n", cli.Printable(o.out))
	}
	return err
}
