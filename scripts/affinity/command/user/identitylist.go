package user

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
)

// linkFlags choose links of the app.
type linkFlags struct {
	day, by, key string
	weak         bool
}

func (f *linkFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.day, "day", "",
		"only links by evidence that the engine received on this day in UTC, such as 2026-11-22")
	flags.BoolVar(&f.weak, "weak", false, "only links by keys that stand in pages")
	flags.StringVar(&f.key, "by-key", "",
		"only links by events and calls with this key: its ID, as `affinity app key list` shows it")
	flags.StringVar(&f.by, "by", "", "only links by this evidence: event, call or request")
}

// query returns the query for the links.
func (f *linkFlags) query() (api.LinksQuery, error) {
	q := api.LinksQuery{Day: f.day, By: f.by, Key: f.key}
	if f.weak {
		q.Strength = "weak"
	}
	if _, err := time.Parse(time.DateOnly, f.day); f.day != "" && err != nil {
		return q, cli.Usagef("--day %q: must be a day in UTC such as 2026-11-22", f.day)
	}
	return q, nil
}

func listLinksCommand(t *command.Tool) *cobra.Command {
	f, state, limit, cursor := linkFlags{}, "", api.DefaultLinks, ""
	cmd := command.ShowAll(t, &cobra.Command{
		Use:   "list",
		Short: "List the links of the app, or those of a day or a key",
		Long: "List the links of the app, in the order in which their anonymous tokens are stored. --weak lists those by\n" +
			"keys that stand in pages, and leaves out those by keys of servers.",
		Example: "  affinity identity list --day 2026-11-22 --weak --state open\n" +
			"  affinity identity list --limit 100000 -o csv > links.csv",
		Args:    cli.Subcommand,
		PreRunE: func(*cobra.Command, []string) error { return cli.Within("limit", limit, 1, math.MaxInt) },
	}, "list links", func(ctx context.Context, c *client.Client, _ []string) (api.Links, error) {
		q, err := f.query()
		if err != nil {
			return api.Links{}, err
		}
		q.State, q.Cursor = state, cursor
		return readLinks(ctx, c, q, limit)
	}, printLinks)
	f.add(cmd)
	flags := cmd.Flags()
	flags.StringVar(&state, "state", "", "only links in this state: open, closed, limit, unlinked or deleted")
	flags.IntVar(&limit, "limit", limit, "how many links to print; more if a token has more")
	flags.StringVar(&cursor, "cursor", "", "go on after the links of an earlier call, which printed it")
	return cmd
}

// readLinks reads pages until it has as many links as were asked for.
func readLinks(ctx context.Context, c *client.Client, q api.LinksQuery, wanted int) (api.Links, error) {
	list := api.Links{Links: []api.Link{}, Cursor: q.Cursor}
	err := command.ReadPages(wanted, api.MaxLinks, func(limit int) (int, bool, error) {
		q.Limit, q.Cursor = limit, list.Cursor
		page, err := c.Profiles().Links(ctx, q)
		list.Links, list.Faulty = append(list.Links, page.Links...), append(list.Faulty, page.Faulty...)
		list.Cursor = page.Cursor
		return len(list.Links), page.Cursor != "", err
	})
	return list, err
}

func printLinks(t *command.Tool, list api.Links) error {
	const header = "ANONYMOUS\tUSER\tSINCE\tTO\tSIGNED IN\tSTATE\tSTRENGTH\tKEY\tBY"
	err := cli.Table(t.Out, header, list.Links, func(l api.Link) []any {
		return []any{l.UserToken, l.AuthenticatedUserToken, shortTime(l.Since), endOf(l), shortTime(l.From), l.State,
			l.Strength, keyOf(l), evidenceOf(l)}
	})
	if err != nil {
		return err
	}
	printFaulty(t, list)
	if list.Cursor != "" {
		fmt.Fprintf(t.Err, "more follow: --cursor %s\n", list.Cursor)
	}
	return nil
}

func printFaulty(t *command.Tool, list api.Links) {
	for _, token := range list.Faulty {
		fmt.Fprintf(t.Err, "the links of %s cannot be read\n", cli.Printable(token))
	}
}

// unlinkAtOnce is how many links are undone at a time.
const unlinkAtOnce = 4

// unlinked says what has become of many links, and is printed with --json.
type unlinked struct {
	Links  int `json:"links"` // that were found; a pair of tokens may have several
	Users  int `json:"users"`
	Undone int `json:"undone"`
	Failed int `json:"failed"`
}

// pair is an anonymous token with the user of its links.
type pair struct{ token, known string }

// unlinkMany undoes all links that the flags choose.
func unlinkMany(ctx context.Context, t *command.Tool, c *client.Client, f linkFlags, yes bool) error {
	q, err := f.query()
	if err != nil {
		return err
	}
	c = t.Patient(c)
	list, err := readLinks(ctx, c, q, math.MaxInt)
	if err != nil {
		return fmt.Errorf("list links: %w", err)
	}
	printFaulty(t, list)
	found, users, report := map[pair]int{}, map[string]bool{}, unlinked{}
	for _, l := range list.Links {
		if l.State == "unlinked" || l.State == "deleted" {
			continue // nothing counts by it
		}
		found[pair{l.UserToken, l.AuthenticatedUserToken}]++
		users[l.AuthenticatedUserToken] = true
		report.Links++
	}
	if report.Users = len(users); report.Links > 0 && !yes {
		if err := confirm(t, report); err != nil {
			return err
		}
	}
	failed := undo(ctx, t, c, found, &report)
	if t.JSON {
		err = cli.PrintJSON(t.Out, report)
	} else {
		_, err = fmt.Fprintf(t.Out, "%d of %s undone, of %s\n", report.Undone, cli.Count(report.Links, "link"),
			cli.Count(report.Users, "user"))
	}
	switch {
	case failed != nil:
		return fmt.Errorf("%s not undone, run the command again: %w", cli.Count(report.Links-report.Undone, "link"), failed)
	case len(list.Faulty) > 0:
		return fmt.Errorf("the links of %s cannot be read", cli.Count(len(list.Faulty), "token"))
	}
	return err
}

// confirm asks whether to undo links.
func confirm(t *command.Tool, r unlinked) error {
	fmt.Fprintf(t.Err, "This undoes %s of %s: `%s identity list` with the same flags shows them. Type yes to go on: ",
		cli.Count(r.Links, "link"), cli.Count(r.Users, "user"), command.CalledAs())
	typed, err := bufio.NewReader(t.In).ReadString('\n')
	if strings.TrimSpace(typed) == "yes" {
		return nil
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return errors.Join(errors.New("no link is undone: yes was not typed"), err)
}

// undo undoes the links between pairs of tokens, and counts them. It returns the first error. One that is about a
// single link, as far as its status tells, does not keep it from the others.
func undo(ctx context.Context, t *command.Tool, c *client.Client, found map[pair]int, report *unlinked) error {
	var lock sync.Mutex
	var first error
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(unlinkAtOnce)
	for p, n := range found {
		group.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			_, err := c.Profiles().Unlink(ctx, p.token, p.known)
			status := command.StatusOf(err)
			lock.Lock()
			defer lock.Unlock()
			if err == nil || status == http.StatusNotFound { // forgotten since it was listed
				report.Undone += n
				return nil
			}
			report.Failed += n
			if first == nil {
				first = err
			}
			if status < http.StatusInternalServerError {
				return err
			}
			fmt.Fprintf(t.Err, "link of %s to %s: %s\n", cli.Printable(p.token), cli.Printable(p.known),
				cli.Printable(err.Error()))
			return nil
		})
	}
	if err := group.Wait(); first == nil {
		return err
	}
	return first
}
