package admin

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/googleapis/gax-go/v2"
	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/job/kinds/move"
	"github.com/affinityengine/affinity/shared/local/operator"
)

// moveOptions are the flags of `affinity app move`.
type moveOptions struct {
	to                         string
	back, dryRun, wait, noWait bool
}

func (a *appTool) moveCommand() *cobra.Command {
	o := moveOptions{}
	cmd := &cobra.Command{
		Use:   "move ID",
		Short: "Move an app to another region while it is in use",
		Long: "Move an app to another region, or with --back back to where it was. Its users send events and its pages read profiles\n" +
			"all the time: no request fails, and no event is lost or counted twice. The command returns when the new region owns every\n" +
			"user; behind it the job deletes what the old region holds, which --wait waits for. If you interrupt it, run it again.\n\n" +
			"Until the job begins to delete, --back undoes the move. Jobs over all users of the app wait until it has arrived.\n" +
			"functions/docs/design/regions.md says how users move, and what is where until when.",
		Example: "  affinity app move shop --to us --dry-run\n  affinity app move shop --to us\n  affinity app move " +
			"shop --back",
		Args: idArgs("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case (o.to == "") == !o.back:
				return cli.Usagef("give either --to REGION or --back")
			case o.to != "" && !config.ValidRegion(o.to):
				return cli.Usagef("--to %q: a region has 1 to 40 of a-z, 0-9 and -", o.to)
			case o.back && o.dryRun, o.wait && o.noWait:
				return cli.Usagef("--dry-run goes with --to, and --wait excludes --no-wait")
			}
			return a.moving(cmd, !o.dryRun, func(m command.Mover) error { return a.move(cmd.Context(), m, args[0], o) })
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.to, "to", "", "the region to which the app moves")
	flags.BoolVar(&o.back, "back", false, "undo the move")
	a.moveFlags(cmd, &o)
	return cmd
}

// moveFlags adds the flags of every move.
func (a *appTool) moveFlags(cmd *cobra.Command, o *moveOptions) {
	flags := cmd.Flags()
	flags.BoolVar(&o.dryRun, "dry-run", false, "say what would move, and move nothing")
	flags.BoolVar(&o.wait, "wait", false, "wait until the old place holds nothing of the app")
	flags.BoolVar(&o.noWait, "no-wait", false, "begin, and do not wait")
	a.queueFlag(cmd)
}

func (a *appTool) isolateCommand() *cobra.Command {
	o, tables, common := moveOptions{}, "", false
	cmd := &cobra.Command{
		Use:   "isolate ID",
		Short: "Move an app to tables of its own in its region, or back to the common ones, while it is in use",
		Long: "Move an app to a set of Bigtable tables of its own in the instance of its region, or with --common back to the common\n" +
			"ones. It is a move as `affinity app move` makes it, so `affinity app move ID --back` undoes it. A large app then has\n" +
			"its own tablets, charts and backups. The sets are those of `affinity up --tables`, or of dedicated_tables " +
			"in Terraform.",
		Example: "  affinity app isolate shop\n  affinity app isolate shop --tables big --dry-run\n  affinity app isolate shop --common",
		Args:    idArgs("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if common && tables != "" || o.wait && o.noWait {
				return cli.Usagef("--common excludes --tables, and --wait excludes --no-wait")
			}
			return a.moving(cmd, !o.dryRun, func(m command.Mover) (err error) {
				if o.to, err = m.Isolation(cmd.Context(), args[0], tables, common); err != nil {
					return fmt.Errorf("isolate app %s: %w", args[0], missingApp(err))
				}
				return a.move(cmd.Context(), m, args[0], o)
			})
		},
	}
	cmd.Flags().StringVar(&tables, "tables", "", "the set of tables (default: the only one of the region)")
	cmd.Flags().BoolVar(&common, "common", false, "move the app back to the common tables of its region")
	a.moveFlags(cmd, &o)
	return cmd
}

func (a *appTool) regionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "region ID",
		Short:   "Print the region of an app, and how far its move is",
		Example: "  affinity app region shop",
		Args:    idArgs("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.moving(cmd, false, func(m command.Mover) error {
				s, err := m.Moving(cmd.Context(), args[0])
				if err != nil {
					return fmt.Errorf("region of app %s: %w", args[0], missingApp(err))
				}
				_, err = fmt.Fprintln(a.Out, movePlace(args[0], s))
				return err
			})
		},
	}
}

// moving calls do with what moves apps. begin says whether do begins anything.
func (a *appTool) moving(cmd *cobra.Command, begin bool, do func(command.Mover) error) error {
	return a.with(cmd, func(s engine) error {
		if s.local != nil {
			return do(s.local)
		}
		return a.deployedMoves(cmd.Context(), s.deployed, begin, do)
	})
}

func (a *appTool) move(ctx context.Context, m command.Mover, id string, o moveOptions) error {
	if o.dryRun {
		p, err := m.PlanMove(ctx, id, o.to)
		if err != nil {
			return fmt.Errorf("move app %s: %w", id, missingApp(err))
		}
		users := cli.Count(p.Users, "user")
		if p.Users == move.MaxCounted {
			users = "at least " + users
		}
		_, err = fmt.Fprintf(a.Out, "app %s can move from %s to %s: %s, in %s or more; nothing has moved\n", id,
			p.From, p.To, users, p.Least.Round(time.Second))
		return err
	}
	begin := func() (operator.MoveStatus, error) {
		if p, err := m.PlanMove(ctx, id, o.to); err == nil {
			fmt.Fprintf(a.Err, "app %s is in region %s in %s or more: three times, everything waits until every process "+
				"knows how far the move is; after three more waits, %s holds nothing of it\n", id, p.To,
				p.Arrival.Round(time.Second), p.From)
		}
		return m.Move(ctx, id, o.to)
	}
	if o.back {
		begin = func() (operator.MoveStatus, error) { return m.MoveBack(ctx, id) }
	}
	s, err := begin()
	if err != nil {
		return fmt.Errorf("move app %s: %w", id, missingApp(err))
	}
	if o.noWait {
		_, err := fmt.Fprintln(a.Out, command.MoveProgress(id, s))
		return err
	}
	return a.watchMove(ctx, m, id, s, o.wait)
}

// watchMove prints how far a move is until the new region owns every user or, with end, until
// it has ended. It fails if another command turns the move back or begins another one.
func (a *appTool) watchMove(ctx context.Context, m command.Mover, id string, begun operator.MoveStatus,
	end bool) error {
	shown := ""
	for {
		s, err := m.Moving(ctx, id)
		if err != nil {
			return fmt.Errorf("watch the move of app %s: %w", id, err)
		}
		if turned(begun, s) {
			return fmt.Errorf("the move of app %s to %s has been changed by another command: %s", id, begun.Move.To,
				movePlace(id, s))
		}
		switch p := s.Move.Phase; {
		case p != "" && command.MoveStopped(s):
			return fmt.Errorf("the move of app %s has stopped in phase %s; run the command again: %s", id, p,
				cmp.Or(s.Error, "its job is "+string(s.State)))
		case p == "":
			_, err := fmt.Fprintf(a.Out, "app %s is in region %s, and no other region holds anything of it\n", id, s.Region)
			return err
		case !end && p == config.MoveFinishing:
			_, err := fmt.Fprintf(a.Out, "app %s is in region %s, and no other region holds anything of it; its move "+
				"is about to end\n", id, s.Region)
			return err
		case !end && (p == config.MoveDropping || p == config.MoveErasing):
			_, err := fmt.Fprintf(a.Out, "app %s is in region %s; a job deletes what the other region holds (affinity "+
				"app region %s says how far it is)\n", id, s.Region, id)
			return err
		}
		if now := command.MoveProgress(id, s); now != shown {
			fmt.Fprintln(a.Err, now)
			shown = now
		}
		if err := gax.Sleep(ctx, a.WatchEvery); err != nil {
			return fmt.Errorf("%w; the move goes on, and the command may be repeated", err)
		}
	}
}

// turned reports whether an app has another move than the one that a command began, or rests
// elsewhere than that led to.
func turned(begun, now operator.MoveStatus) bool {
	switch {
	case begun.Move.Phase == "":
		return false // it rested at once
	case now.Move.Phase == "":
		return now.Region != begun.Move.To
	}
	return now.Move.ID != begun.Move.ID || now.Move.Back != begun.Move.Back
}

// movePlace says where an app is, or how far its move is.
func movePlace(id string, s operator.MoveStatus) string {
	if s.Move.Phase == "" {
		return "app " + id + " is in region " + s.Region
	}
	return command.MoveProgress(id, s)
}
