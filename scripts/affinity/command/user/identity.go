package user

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/event"
)

// Identity returns the command identity.
func Identity(t *command.Tool) *cobra.Command {
	return cli.Group(&cobra.Command{
		Use:   "identity",
		Short: "Show, make and undo the links between the tokens of a person",
		Long: "Show, make and undo the links between the tokens of a person: the events of an anonymous token count for\n" +
			"the user who has signed in under it. The operator switches links on with `affinity app identity`. Requires\n" +
			"a key with the permission admin.",
	}, showIdentityCommand(t), listLinksCommand(t), linkCommand(t), unlinkCommand(t), previewCommand(t),
		refusedLinksCommand(t))
}

func showIdentityCommand(t *command.Tool) *cobra.Command {
	return command.Show(t, &cobra.Command{
		Use: "show USER", Short: "Show the links of a token: since when, by what, and what has become of them",
		Args:    command.UserArg,
		Example: "  affinity identity show ann",
	}, "links of %s", func(ctx context.Context, c *client.Client, args []string) (api.Identity, error) {
		return c.Profiles().Identity(ctx, args[0])
	}, showIdentity)
}

func linkCommand(t *command.Tool) *cobra.Command {
	reason := ""
	cmd := command.Show(t, &cobra.Command{
		Use: "link ANONYMOUS USER", Short: "Link an anonymous token to the user who has signed in under it, as of now",
		Args:    bothTokens,
		Example: "  affinity identity link anonymous-1 ann --reason \"asked by mail\"",
	}, "link of %s", func(ctx context.Context, c *client.Client, args []string) (api.Identity, error) {
		return c.Profiles().Link(ctx, api.LinkRequest{UserToken: args[0], AuthenticatedUserToken: args[1], Reason: reason})
	}, showIdentity)
	cmd.Flags().StringVar(&reason, "reason", "", "why, kept with the link")
	return cmd
}

func unlinkCommand(t *command.Tool) *cobra.Command {
	f, yes := linkFlags{}, false
	cmd := command.Show(t, &cobra.Command{
		Use:   "unlink [ANONYMOUS USER]",
		Short: "Undo a link, or all of a day, a key or a source: the profiles are what they would be without",
		Long: "Undo the links between two tokens. With flags and no tokens, undo those of all pairs of tokens that have a\n" +
			"link, open or closed, that the flags choose: by evidence of a day, of a key, of a source. Both profiles are\n" +
			"what they would be without; later evidence links again, so take a stolen key away first. The command says how\n" +
			"many links it found, and asks. Ended early, it may be repeated: it goes on with those that are left.",
		Args: func(_ *cobra.Command, args []string) error {
			switch many := f != (linkFlags{}) || yes; {
			case !many:
				return bothTokens(nil, args)
			case len(args) > 0 || f == (linkFlags{}):
				return cli.Usagef("--day, --by-key, --by and --weak choose many links, and --yes undoes them: give no tokens")
			}
			return nil
		},
		Example: "  affinity identity unlink anonymous-1 ann\n  affinity identity unlink --day 2026-11-22 --weak\n" +
			"  affinity identity unlink --by-key 5b1f0a9c77de",
	}, "link of %s", func(ctx context.Context, c *client.Client, args []string) (api.Unlinked, error) {
		return c.Profiles().Unlink(ctx, args[0], args[1])
	}, func(t *command.Tool, u api.Unlinked) error {
		_, err := fmt.Fprintf(t.Out, "unlinked; evidence received up to %s links them no more\n",
			event.FormatTime(u.UnlinkedUntil.UnixMilli()))
		return err
	})
	f.add(cmd)
	cmd.Flags().BoolVar(&yes, "yes", false, "with many links: do not ask")
	one, many := cmd.RunE, t.With(func(ctx context.Context, c *client.Client, _ []string) error {
		return unlinkMany(ctx, t, c, f, yes)
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return many(cmd, args)
		}
		return one(cmd, args)
	}
	return cmd
}

func refusedLinksCommand(t *command.Tool) *cobra.Command {
	reason, cursor := "", ""
	cmd := command.Show(t, &cobra.Command{
		Use:   "refused",
		Short: "List the events that asked for a link and got none, with the reason",
		Long: "List how many events of the last days asked for a link between their two tokens and got none, by day and\n" +
			"reason, and the latest ones of each reason. The API reference says what the reasons mean.",
		Example: "  affinity identity refused\n  affinity identity refused --reason late",
		Args:    cli.Subcommand,
	}, "list refused links", func(ctx context.Context, c *client.Client, _ []string) (api.RefusedLinks, error) {
		return c.Profiles().RefusedLinks(ctx, reason, cursor)
	}, showRefusedLinks)
	flags := cmd.Flags()
	flags.StringVar(&reason, "reason", "", "only those of a reason, such as late")
	flags.StringVar(&cursor, "cursor", "", "go on after those of an earlier call, which printed it")
	return cmd
}

func showRefusedLinks(t *command.Tool, answer api.RefusedLinks) error {
	if len(answer.Days) == 0 {
		_, err := fmt.Fprintf(t.Out, "no link was refused in the last %s\n", cli.Count(api.MaxRefusedLinksDays, "day"))
		return err
	}
	type count struct {
		day, reason string
		n           int64
	}
	var counts []count
	for _, d := range answer.Days {
		for _, reason := range slices.Sorted(maps.Keys(d.Counts)) {
			counts = append(counts, count{d.Day, reason, d.Counts[reason]})
		}
	}
	err := cli.Table(t.Out, "DAY\tREASON\tEVENTS", counts, func(c count) []any { return []any{c.day, c.reason, c.n} })
	if err != nil || len(answer.Refused) == 0 {
		return err
	}
	fmt.Fprintln(t.Out)
	err = cli.Table(t.Out, "AT\tREASON\tANONYMOUS\tUSER\tTIME\tEVENT", answer.Refused, func(l api.RefusedLink) []any {
		return []any{shortTime(l.At), l.Reason, l.UserToken, l.AuthenticatedUserToken, shortTime(l.Time), l.Event}
	})
	if err == nil && answer.Cursor != "" {
		fmt.Fprintf(t.Err, "more follow: --cursor %s\n", answer.Cursor)
	}
	return err
}

// bothTokens takes an anonymous token and a user.
func bothTokens(_ *cobra.Command, args []string) error {
	if len(args) != 2 {
		return cli.Usagef("want an anonymous token and the user who has signed in under it")
	}
	return nil
}

func showIdentity(t *command.Tool, i api.Identity) error {
	fmt.Fprintf(t.Out, "%s: role %s, %d links\n", cli.Printable(i.UserToken), i.Role, len(i.Links))
	if len(i.Links) == 0 {
		return nil
	}
	const header = "ANONYMOUS\tUSER\tSINCE\tTO\tSIGNED IN\tSTATE\tSTRENGTH\tKEY\tEVENTS\tBY"
	return cli.Table(t.Out, header, i.Links, func(l api.Link) []any {
		return []any{l.UserToken, l.AuthenticatedUserToken, shortTime(l.Since), endOf(l), shortTime(l.From), l.State,
			l.Strength, keyOf(l), eventsOf(l), evidenceOf(l)}
	})
}

// endOf is when a link ends, - while it is open.
func endOf(l api.Link) string {
	if l.To == nil {
		return "-"
	}
	return shortTime(*l.To)
}

// evidenceOf is the kind of evidence, with its id or reason. It has one of the three.
func evidenceOf(l api.Link) string { return l.By + " " + l.Event + l.MessageID + l.Reason }

// keyOf is the ID of the key of the evidence, - of a request.
func keyOf(l api.Link) string { return cmp.Or(l.Key, "-") }

// eventsOf is how many events count by a link, such as 12 or 10000+.
func eventsOf(l api.Link) string {
	switch {
	case l.Events == nil:
		return "-" // an engine of an earlier release
	case l.MoreEvents:
		return fmt.Sprintf("%d+", *l.Events)
	}
	return fmt.Sprint(*l.Events)
}

func shortTime(t api.Time) string { return t.UTC().Format(time.RFC3339) }
