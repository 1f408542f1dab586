package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/auditlog"
)

func auditLogCommand(t *tool) *cobra.Command {
	q := api.AuditLogQuery{}
	asJSON := false
	actions := make([]string, len(auditlog.Actions))
	for i, a := range auditlog.Actions {
		actions[i] = string(a)
	}
	cmd := &cobra.Command{
		Use:   "audit-log",
		Short: "Print who changed what of an app: strategies, settings, jobs, keys, deleted users",
		Long: "Print who changed what of an app in the last 400 days, the newest first. ACTOR is the name of the key, or the start of\n" +
			"its hash if it has no name, or operator. USER is a keyed hash of the user token: with --user you find the entries\n" +
			"about a user, also after their deletion. An OUTCOME of failed may have changed a part, and of unknown the whole.\n" +
			"The key needs the permission admin. Actions: " + strings.Join(actions, ", ") + ".",
		Example: "  affinity audit-log\n  affinity audit-log --action user.delete --limit 20\n  affinity audit-log --user user-1 --json",
		Args:    cli.Subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if q.Limit < 1 {
				return cli.Usagef("--limit must be at least 1")
			}
			if q.Action != "" && !slices.Contains(actions, q.Action) {
				return cli.Usagef("--action %q does not exist: there are %s", q.Action, strings.Join(actions, ", "))
			}
			list, err := readAuditLog(cmd, t, q)
			if err != nil {
				return fmt.Errorf("read the audit log: %w", err)
			}
			if asJSON {
				return cli.PrintJSON(t.out, list)
			}
			return printAuditLog(t, list)
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&q.Limit, "limit", 50, "how many entries to print")
	flags.StringVar(&q.Cursor, "cursor", "", "go on after the entries of an earlier call, which printed it")
	flags.StringVar(&q.Action, "action", "", "only entries of this action")
	flags.StringVar(&q.UserToken, "user", "", "only entries about the user with this token")
	flags.BoolVar(&asJSON, "json", false, jsonUsage)
	return cmd
}

// readAuditLog reads pages until it has as many entries as were asked for.
func readAuditLog(cmd *cobra.Command, t *tool, q api.AuditLogQuery) (api.AuditLog, error) {
	c, err := t.client()
	if err != nil {
		return api.AuditLog{}, err
	}
	list := api.AuditLog{Entries: []api.AuditLogEntry{}, Cursor: q.Cursor}
	err = readPages(q.Limit, api.MaxAuditEntries, func(limit int) (int, bool, error) {
		q.Limit, q.Cursor = limit, list.Cursor
		page, err := c.AuditLog(cmd.Context(), q)
		list.Entries, list.Cursor = append(list.Entries, page.Entries...), page.Cursor
		return len(list.Entries), page.Cursor != "", err
	})
	return list, err
}

// readPages reads pages of at most most items until it has read wanted items or no page
// follows. read is given how many items to ask for; it returns how many there are so far,
// and whether a page follows.
func readPages(wanted, most int, read func(limit int) (have int, more bool, err error)) error {
	for have, more := 0, true; more && have < wanted; {
		var err error
		if have, more, err = read(min(wanted-have, most)); err != nil {
			return err
		}
	}
	return nil
}

func printAuditLog(t *tool, list api.AuditLog) error {
	table := tabwriter.NewWriter(t.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "TIME\tACTOR\tACTION\tSUBJECT\tUSER\tOUTCOME\tDETAIL")
	for _, e := range list.Entries {
		cells := []string{e.At.UTC().Format(time.RFC3339), e.Actor, e.Action, e.Subject, e.User, e.Outcome, e.Detail}
		for i, cell := range cells {
			cells[i] = cli.Printable(cmp.Or(cell, "-"))
		}
		fmt.Fprintln(table, strings.Join(cells, "\t"))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if list.Cursor != "" {
		fmt.Fprintf(t.err, "there may be more: --cursor %s\n", cli.Printable(list.Cursor))
	}
	return nil
}
