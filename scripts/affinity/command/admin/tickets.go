package admin

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/app/auditlog"
	"github.com/affinityengine/affinity/shared/store"
)

// ticketStep is more tickets than any user draws in years, and far less than a
// counter or a cell's timestamp can hold.
const ticketStep = 1_000_000_000

func (a *appTool) ticketsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "raise-tickets ID",
		Short: "After the loss of a Bigtable cluster: advance the ticket counters of an app's users",
		Long: "After the loss of a Bigtable cluster, advance the ticket counters of an app's users, so that no ticket is drawn\n" +
			"twice. The engine must be paused. functions/docs/operate/failover.md and restore.md beside it have the\n" +
			"steps before and after.",
		Example: "  affinity app raise-tickets shop",
		Args:    idArgs("ID"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if a.databases.Configuration == "" {
				a.databases.Configuration, a.databases.Keys = "-", "-" // only the instance is opened
			}
			if err := a.aim(cmd); err != nil {
				return err
			}
			s, err := store.Open(cmd.Context(), a.bigtable)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, s.Close()) }()
			n := 0
			change := auditlog.Change{App: args[0], Actor: auditlog.Operator, Action: auditlog.AppTickets}
			err = a.recorder(s.AuditLog).Do(cmd.Context(), change, func() (auditlog.End, error) {
				n, err = s.Users.AdvanceTickets(cmd.Context(), args[0], ticketStep)
				return auditlog.End{Detail: fmt.Sprintf("of %d users, by %d", n, ticketStep)}, err
			})
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(a.Out, "app %s: the ticket counters of %s advanced by %d\n", args[0],
				cli.Count(n, "user"), ticketStep)
			return err
		},
	}
	return cmd
}
