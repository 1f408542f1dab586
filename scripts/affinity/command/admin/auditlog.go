package admin

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/app/auditlog"
)

// AuditLog returns the command audit-log.
func AuditLog(t *command.Tool) *cobra.Command {
	q := api.AuditLogQuery{}
	actions := make([]string, len(auditlog.Actions))
	for i, a := range auditlog.Actions {
		actions[i] = string(a)
	}
	cmd := command.ShowAll(t, &cobra.Command{
		Use:   "audit-log",
		Short: "Print who changed what of an app: strategies, settings, jobs, keys, deleted users",
		Long: "Print who changed what of an app in the last 400 days, the newest first. ACTOR is the name of the key, or the start of\n" +
			"its hash if it has no name, or operator. USER is a keyed hash of the user token: with --user you find the entries\n" +
			"about a user, also after their deletion. OUTCOME failed: some of the\n" +
			"change may have been applied; unknown: all of it may have been.\n" +
			"Requires a key with the permission admin. Actions: " + strings.Join(actions, ", ") + ".",
		Example: "  affinity audit-log\n  affinity audit-log --action user.delete --limit 20\n  affinity audit-log --user user-1 --json",
		Args:    cli.Subcommand,
		PreRunE: func(*cobra.Command, []string) error {
			if q.Limit < 1 {
				return cli.Usagef("--limit must be at least 1")
			}
			if q.Action != "" && !slices.Contains(actions, q.Action) {
				return cli.Usagef("--action %q does not exist: there are %s", q.Action, strings.Join(actions, ", "))
			}
			return nil
		},
	}, "read the audit log", func(ctx context.Context, c *client.Client, _ []string) (api.AuditLog, error) {
		return readAuditLog(ctx, c, q)
	}, printAuditLog)
	flags := cmd.Flags()
	flags.IntVar(&q.Limit, "limit", 50, "how many entries to print")
	flags.StringVar(&q.Cursor, "cursor", "", "go on after the entries of an earlier call, which printed it")
	flags.StringVar(&q.Action, "action", "", "only entries of this action")
	flags.StringVar(&q.UserToken, "user", "", "only entries about the user with this token")
	return cmd
}

// readAuditLog reads pages until it has as many entries as were asked for.
func readAuditLog(ctx context.Context, c *client.Client, q api.AuditLogQuery) (api.AuditLog, error) {
	list := api.AuditLog{Entries: []api.AuditLogEntry{}, Cursor: q.Cursor}
	err := command.ReadPages(q.Limit, api.MaxAuditEntries, func(limit int) (int, bool, error) {
		q.Limit, q.Cursor = limit, list.Cursor
		page, err := c.AuditLog(ctx, q)
		list.Entries, list.Cursor = append(list.Entries, page.Entries...), page.Cursor
		return len(list.Entries), page.Cursor != "", err
	})
	return list, err
}

func printAuditLog(t *command.Tool, list api.AuditLog) error {
	header := "TIME\tACTOR\tACTION\tSUBJECT\tUSER\tOUTCOME\tDETAIL"
	err := cli.Table(t.Out, header, list.Entries, func(e api.AuditLogEntry) []any {
		cells := []any{e.At.UTC().Format(time.RFC3339)}
		for _, cell := range []string{e.Actor, e.Action, e.Subject, e.User, e.Outcome, e.Detail} {
			cells = append(cells, cmp.Or(cell, "-"))
		}
		return cells
	})
	if err != nil {
		return err
	}
	if list.Cursor != "" {
		fmt.Fprintf(t.Err, "there may be more: --cursor %s\n", cli.Printable(list.Cursor))
	}
	return nil
}
