package transfer

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/algolia"
	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/event"
)

type compareOptions struct {
	from   algoliaApp
	file   string
	sample int
}

func migrateCompareCommand(t *command.Tool) *cobra.Command {
	o := compareOptions{}
	cmd := &cobra.Command{
		Use:   "compare [USER...]",
		Short: "Compare profiles of users with those that Algolia has",
		Long: "Read the profiles of users from Algolia's Personalization API and from the engine, both in the form of that API, and print\n" +
			"how they differ: the values that both have, those that one lacks, Kendall's tau-b between the two orders (1 the same,\n" +
			"-1 the reverse), and the value that scores most. Name users, or a file of user tokens with --users. The key of Algolia\n" +
			"needs the permission recommendation, that of the engine recommendation or profilesRead.",
		Example: "  affinity migrate compare user-1 user-2\n  affinity migrate compare --users tokens.txt --sample 200 --region eu",
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			users, err := o.users(t, args)
			if err != nil {
				return err
			}
			if err := o.from.complete(); err != nil {
				return err
			}
			c, err := t.Client()
			if err != nil {
				return err
			}
			return compareAll(cmd.Context(), t, t.Patient(c), o, users)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.file, "users", "", "file of user tokens, one a line; - for standard input")
	flags.IntVar(&o.sample, "sample", 0, "compare so many of the users, chosen at random but the same ones each "+
		"time; 0: all")
	t.JSONFlag(cmd, "print a line of JSON for each user")
	o.from.flags(cmd)
	return cmd
}

// users are the users to compare.
func (o compareOptions) users(t *command.Tool, args []string) ([]string, error) {
	users := args
	if o.file != "" {
		more, err := readUsers(t, o.file)
		if err != nil {
			return nil, fmt.Errorf("read the users: %w", err)
		}
		users = slices.AppendSeq(users, maps.Keys(more))
	}
	switch {
	case len(users) == 0:
		return nil, cli.Usagef("USER is missing: affinity migrate compare USER..., or --users FILE")
	case o.sample < 0:
		return nil, cli.Usagef("--sample %d: must be 0 or more", o.sample)
	}
	for _, user := range users {
		if !event.ValidUserToken(user) {
			return nil, cli.Usagef("%q is not a user token", user)
		}
	}
	slices.Sort(users)
	users = slices.Compact(users)
	if o.sample > 0 && o.sample < len(users) {
		rand.New(rand.NewPCG(1, 1)).Shuffle(len(users), func(i, j int) { users[i], users[j] = users[j], users[i] })
		users = users[:o.sample]
		slices.Sort(users)
	}
	return users, nil
}

func compareAll(ctx context.Context, t *command.Tool, engine *client.Client, o compareOptions, users []string) error {
	from, err := o.from.personalization(t)
	if err != nil {
		return err
	}
	all := make([]algolia.Comparison, 0, len(users))
	for _, user := range users {
		theirs, there, err := profileOf(ctx, from, user)
		if err != nil {
			return ofAlgolia("read Algolia's profile of "+user, err)
		}
		ours, here, err := profileOf(ctx, engine, user)
		if err != nil {
			return fmt.Errorf("read the engine's profile of %s: %w", user, err)
		}
		c := algolia.Compare(theirs, ours)
		c.UserToken, c.Algolia, c.Engine = user, there, here
		all = append(all, c)
	}
	if t.JSON {
		for _, c := range all {
			if err := cli.PrintJSON(t.Out, c); err != nil {
				return err
			}
		}
		return nil
	}
	return printComparisons(t.Out, all)
}

// profileOf reads a profile, and reports whether the user is known.
func profileOf(ctx context.Context, c *client.Client, user string) (api.PersonalizationProfile, bool, error) {
	p, err := c.Profiles().Personalization(ctx, user)
	if command.StatusOf(err) == http.StatusNotFound {
		return p, false, nil
	}
	return p, err == nil, err
}

// printComparisons prints a line for each user, and what holds for all of them.
func printComparisons(out io.Writer, all []algolia.Comparison) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "user\tin both\tmissing\tnew\torder\tfirst value")
	var both []algolia.Comparison
	missing, fresh := 0, 0
	for _, c := range all {
		name := cli.Printable(c.UserToken)
		switch {
		case c.Algolia && c.Engine:
			both = append(both, c)
			fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%.2f\t%s\n", name, c.Common, len(c.Missing), len(c.New), c.Order,
				cli.Printable(firstValues(c)))
		case c.Algolia:
			missing++
			fmt.Fprintf(w, "%s\tunknown to the engine\n", name)
		case c.Engine:
			fresh++
			fmt.Fprintf(w, "%s\tunknown to Algolia\n", name)
		default:
			fmt.Fprintf(w, "%s\tunknown to both\n", name)
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s: %d in both, %d unknown to the engine, %d unknown to Algolia\n",
		cli.Count(len(all), "user"), len(both), missing, fresh)
	if len(both) == 0 {
		return nil
	}
	same, common, lost, order := 0, 0, 0, 0.0
	for _, c := range both {
		if common, lost, order = common+c.Common, lost+len(c.Missing), order+c.Order; c.SameFirst() {
			same++
		}
	}
	_, err := fmt.Fprintf(out, "of those in both: the first value is the same for %d, the mean order is %.2f, %d "+
		"of Algolia's %s are in the engine's profiles\n",
		same, order/float64(len(both)), common, cli.Count(common+lost, "value"))
	return err
}

// firstValues says which values score most in both profiles of a user.
func firstValues(c algolia.Comparison) string {
	list := func(values []string) string {
		if len(values) == 0 {
			return "none"
		}
		return strings.Join(values, ", ")
	}
	if c.SameFirst() {
		return "the same: " + list(c.EngineFirst)
	}
	return list(c.First) + " -> " + list(c.EngineFirst)
}
