// Package user holds the commands about single users: user lists and deletes them,
// profile, explain, rank and boosts show what an engine knows and orders for one, and
// optout keeps the events of one out. It keeps nothing.
package user

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/event"
)

// Command returns the command user.
func Command(t *command.Tool) *cobra.Command {
	return cli.Group(&cobra.Command{
		Use:   "user",
		Short: "List users, find some by their tokens or by what they just did, move one to another region, and delete one",
	}, listUsersCommand(t), recentUsersCommand(t), regionCommand(t), deleteUserCommand(t))
}

func recentUsersCommand(t *command.Tool) *cobra.Command {
	limit := api.DefaultRecentUsers
	cmd := command.Show(t, &cobra.Command{
		Use:   "recent",
		Short: "List users who have just sent events",
		Long: "List users of the sample of events that the engine received in the last 15 minutes, those of the newest event first. EVENTS is\n" +
			"how many of their events are in the sample. `affinity events tail` prints the events. Requires a key with " +
			"the permission admin.",
		Example: "  affinity user recent\n  affinity user recent --limit 1 --json | jq -r .users[0].userToken",
		Args:    cli.Subcommand,
		PreRunE: func(*cobra.Command, []string) error { return cli.Within("limit", limit, 1, api.MaxRecentUsers) },
	}, "list recent users", func(ctx context.Context, c *client.Client, _ []string) (api.RecentUsers, error) {
		return c.Profiles().RecentUsers(ctx, limit)
	}, func(t *command.Tool, answer api.RecentUsers) error {
		if len(answer.Users) == 0 {
			fmt.Fprintln(t.Err, "no event arrived in the last 15 minutes")
			return nil
		}
		return cli.Table(t.Out, "USER\tLAST EVENT\tEVENTS", answer.Users, func(u api.RecentUser) []any {
			return []any{u.UserToken, u.LastEventAt.UTC().Format(time.RFC3339), u.Events}
		})
	})
	cmd.Flags().IntVar(&limit, "limit", limit, "users to list")
	return cmd
}

func deleteUserCommand(t *command.Tool) *cobra.Command {
	return &cobra.Command{
		Use:   "delete USER",
		Short: "Delete all that the engine has of a user",
		Long: "Delete all that the engine has of a user. From the answer on, no read counts an event that was received before; a task then\n" +
			"removes the events from the log. What the user does from now on starts a new profile: `affinity optout set` drops that too.\n" +
			"It reaches neither files that were exported, dumped or archived nor backups. The audit log records it. The key needs the\n" +
			"permission deleteObject.",
		Example: "  affinity export ann --out ann.ndjson && affinity user delete ann",
		Args:    cli.Args("USER"),
		RunE: t.Tell("delete user %s", func(ctx context.Context, c *client.Client, args []string) (string, error) {
			answer, err := c.Profiles().Delete(ctx, args[0])
			return fmt.Sprintf("%s is deleted: nothing received up to %s counts", cli.Printable(args[0]),
				event.FormatTime(answer.DeletedUntil.UnixMilli())), err
		}),
	}
}

func listUsersCommand(t *command.Tool) *cobra.Command {
	q := api.UsersQuery{}
	cmd := command.ShowAll(t, &cobra.Command{
		Use:   "list",
		Short: "List users, or find some by how their tokens begin",
		Long: "List users who have an event within the retention, in the order in which they are stored: that of their tokens. VALUES is how\n" +
			"many values their events score. `affinity segment query` finds users by what they like. Requires a key " +
			"with the permission admin.",
		Example: "  affinity user list --prefix ann\n  affinity user list --limit 100000 -o csv > users.csv",
		Args:    cli.Subcommand,
		PreRunE: func(*cobra.Command, []string) error {
			if q.Limit < 1 {
				return cli.Usagef("--limit must be at least 1")
			}
			return nil
		},
	}, "list users", func(ctx context.Context, c *client.Client, _ []string) (api.Users, error) {
		return readUsers(ctx, c, q)
	}, printUserList)
	flags := cmd.Flags()
	flags.StringVar(&q.Prefix, "prefix", "", "only users whose tokens begin with this")
	flags.IntVar(&q.Limit, "limit", api.DefaultUsers, "how many users to print")
	flags.StringVar(&q.Cursor, "cursor", "", "go on after the users of an earlier call, which printed it")
	return cmd
}

// readUsers reads pages until it has as many users as were asked for.
func readUsers(ctx context.Context, c *client.Client, q api.UsersQuery) (api.Users, error) {
	list := api.Users{Users: []api.ListedUser{}, Cursor: q.Cursor}
	err := command.ReadPages(q.Limit, api.MaxProfiles, func(limit int) (int, bool, error) {
		q.Limit, q.Cursor = limit, list.Cursor
		page, err := c.Profiles().Users(ctx, q)
		list.Users, list.Faulty, list.Cursor = append(list.Users, page.Users...), append(list.Faulty, page.Faulty...),
			page.Cursor
		return len(list.Users), page.Cursor != "", err
	})
	return list, err
}

func printUserList(t *command.Tool, list api.Users) error {
	err := cli.Table(t.Out, "USER\tLAST EVENT\tVALUES", list.Users, func(u api.ListedUser) []any {
		return []any{u.UserToken, u.LastEventAt.UTC().Format(time.RFC3339), u.Total}
	})
	if err != nil {
		return err
	}
	for _, user := range list.Faulty {
		fmt.Fprintf(t.Err, "the profile of %s cannot be read: the log of the engine says why\n", cli.Printable(user))
	}
	if list.Cursor != "" {
		fmt.Fprintf(t.Err, "more follow: --cursor %s\n", list.Cursor)
	}
	return nil
}
