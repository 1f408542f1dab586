package render

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/api"
)

// Identity writes what links between the tokens of persons are worth on the cases of a backtest.
func Identity(out io.Writer, i api.BacktestIdentity, b api.Backtest, colors *Palette) error {
	var text bytes.Buffer
	fmt.Fprintf(&text, "\n%s\n", colors.Bold("links between the tokens of a person"))
	if i.Evidence == 0 {
		fmt.Fprintln(&text, "no event has both tokens: nothing to link")
		_, err := out.Write(text.Bytes())
		return err
	}
	writeLinkCounts(&text, i.LinkCounts)
	fmt.Fprintf(&text, "the history of %d of %s in the whole catalog is another one by links\n", i.Changed,
		plural(int64(b.Cases), "case"))
	if w := i.Within; w != nil && b.Within != nil {
		writeLinked(&text, *w, "within "+cli.Printable(b.Within.Facet), b.At, colors)
	}
	if w := i.Whole; w != nil {
		writeLinked(&text, *w, "in the whole catalog", b.At, colors)
		fmt.Fprintf(&text, "\n%s is the order by the events of all tokens that were linked to the person by then.\n"+
			"Candidates, and what all users did, are the same as by tokens. All evidence is taken as that of a server.\n",
			api.LinkedPrefix+"NAME")
	}
	_, err := out.Write(text.Bytes())
	return err
}

// LinkPreview writes which links the events of the last days would have made.
func LinkPreview(out io.Writer, j api.IdentityPreview) error {
	var text bytes.Buffer
	fmt.Fprintf(&text, "%s of %s in %s\n", plural(j.Events, "event"), plural(j.Users, "user"),
		plural(int64(j.Days), "day"))
	switch l := j.Links; {
	case l == nil || l.Evidence == 0:
		fmt.Fprintln(&text, "no event has both tokens: nothing to link")
	default:
		writeLinkCounts(&text, l.LinkCounts)
		fmt.Fprintf(&text, "%s of these tokens would count for the users, whose profiles and orders change\n",
			plural(l.GainedEvents, "event"))
		if o := l.Orders; o != nil {
			fmt.Fprintf(&text, "of %s at random, %d get another first object and %d another order of the first ten, ",
				plural(int64(o.Users), "such user"), o.TopChanged, o.TopTenChanged)
			fmt.Fprintf(&text, "of %s of %s\n", plural(int64(o.Objects), "object"), cli.Printable(o.Index))
		}
	}
	_, err := out.Write(text.Bytes())
	return err
}

// writeLinked writes the judgement of all cases, and of those whose history changes.
func writeLinked(text *bytes.Buffer, l api.BacktestLinked, among string, at int, colors *Palette) {
	writePair := func(what string, p api.BacktestPair) {
		fmt.Fprintf(text, "\n%s, %s:\n\n", among, what)
		writeResults(text, p.Results, at, p.Gains, colors)
		fmt.Fprintln(text)
		for _, g := range p.Linked {
			fmt.Fprintf(text, "  %s: %s over %s\n", cli.Printable(g.Name), g.Percent(), cli.Printable(g.Over))
		}
	}
	writePair("all "+plural(int64(l.All.Cases), "case"), l.All)
	if c := l.Changed; c != nil {
		writePair("the "+plural(int64(c.Cases), "case")+" with another history", *c)
	}
}

// writeLinkCounts writes which links events would make.
func writeLinkCounts(text *bytes.Buffer, c api.LinkCounts) {
	fmt.Fprintf(text, "%s of a userToken with another authenticatedUserToken: they link %s to %s\n",
		plural(c.Evidence, "event"), plural(c.Tokens, "token"), plural(c.Users, "user"))
	var parts []string
	for _, n := range c.PerUser {
		parts = append(parts, fmt.Sprintf("%s with %s", plural(n.Users, "user"), plural(n.Tokens, "token")))
	}
	if len(parts) > 0 {
		fmt.Fprintf(text, "  %s\n", strings.Join(parts, ", "))
	}
	for _, u := range c.Largest {
		if len(u.UserTokens) > 1 {
			fmt.Fprintf(text, "  %s has %s\n", cli.Printable(u.AuthenticatedUserToken),
				cli.Printable(strings.Join(u.UserTokens, ", ")))
		}
	}
	parts = nil
	if c.Closed > 0 {
		parts = append(parts, plural(c.Closed, "link")+" closed by the sign-in of another user")
	}
	if c.Limited > 0 {
		parts = append(parts, plural(c.Limited, "link")+" closed by a limit")
	}
	for _, r := range c.Refused {
		parts = append(parts, fmt.Sprintf("%s refused as %s, such as %s with %s", plural(r.Count, "event"),
			cli.Printable(r.Reason), cli.Printable(r.UserToken), cli.Printable(r.AuthenticatedUserToken)))
	}
	for _, p := range parts {
		fmt.Fprintf(text, "  %s\n", p)
	}
}
