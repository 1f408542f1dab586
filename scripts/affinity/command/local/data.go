package local

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/shared/local/stack"
)

// Data returns the command data, about folders of `up --data` that no engine uses.
func Data(t *command.Tool) *cobra.Command {
	return cli.Group(&cobra.Command{
		Use:   "data",
		Short: "Check and repair folders of up --data",
		Long:  "Check and repair folders of `affinity up --data`. No engine may use the folder at the time.",
		Example: "  affinity data check affinity-data\n" +
			"  affinity data salvage affinity-data salvaged && affinity up --data salvaged",
	}, dataCheck(t), dataSalvage(t), dataRekey(t))
}

func dataCheck(t *command.Tool) *cobra.Command {
	return &cobra.Command{
		Use:   "check FOLDER",
		Short: "Read all of a data folder and say what is damaged",
		Long: "Read all of a data folder: the number of its format, the options and the merger of its\n" +
			"database, its log, each block of its tables, and cipher.key. Nothing is written. The exit code\n" +
			"is 0 if all is in order, and 1 if something is damaged or missing, or if the folder cannot be\n" +
			"read at all: it is in use, or of another format.",
		Example: "  affinity data check affinity-data",
		Args:    cli.Args("FOLDER"),
		RunE: func(_ *cobra.Command, args []string) error {
			report, err := stack.CheckData(args[0])
			if printed := printReport(t, args[0], report); printed != nil || err != nil {
				return errors.Join(err, printed)
			}
			switch {
			case len(report.Damage) == 0:
				_, err = fmt.Fprintln(t.Out, "format, options, log, tables and cipher.key are in order")
				return err
			case len(report.Damage) == 1 && !report.Keys:
				return fmt.Errorf("the secured keys of %s are lost without their cipher.key; all else is in order", args[0])
			}
			return fmt.Errorf("%s is damaged: keep it as it is. `affinity data salvage %[1]s NEW` copies what can be read to "+
				"a new folder", args[0])
		},
	}
}

func dataSalvage(t *command.Tool) *cobra.Command {
	return &cobra.Command{
		Use:   "salvage FOLDER NEW",
		Short: "Copy what can be read of a damaged data folder to a new one",
		Long: "Copy what can be read of a damaged data folder to a new one, with which `affinity up --data`\n" +
			"starts, and name what is left out. FOLDER stays as it is. Of a log all but its damaged writes\n" +
			"comes back, of a table all but the blocks from its first damaged one to its last. A missing or\n" +
			"cut table is lost whole. What is lost leaves what was there before: an older setting, or a user\n" +
			"who was deleted: delete them once more. Profiles count lost events until a recompute.",
		Example: "  affinity data salvage affinity-data salvaged",
		Args:    cli.Args("FOLDER", "NEW"),
		RunE: func(_ *cobra.Command, args []string) error {
			report, err := stack.SalvageData(args[0], args[1])
			if err = errors.Join(err, printReport(t, args[0], report)); err != nil {
				return err
			}
			_, err = fmt.Fprintf(t.Out, "%s holds them: start it with `affinity up --data %[1]s`, and for each app "+
				"let `affinity audit` compare profiles with events, or `affinity recompute start` correct them\n", args[1])
			return err
		},
	}
}

func dataRekey(t *command.Tool) *cobra.Command {
	return &cobra.Command{
		Use:   "rekey FOLDER",
		Short: "Make a new cipher.key in place of one that is lost",
		Long: "Make a new cipher.key in place of one that is lost. Secured keys of the parents that the old\n" +
			"one had encrypted are not valid any more. `affinity up --app ID:KEY` makes KEY a parent again,\n" +
			"`affinity app key add --parent` adds a new one.",
		Example: "  affinity data rekey affinity-data",
		Args:    cli.Args("FOLDER"),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := stack.RekeyData(args[0]); err != nil {
				return err
			}
			_, err := fmt.Fprintf(t.Out, "%s has a new cipher.key: start with `affinity up --data %[1]s --app ID:KEY` "+
				"for each parent KEY whose secured keys shall be valid again\n", args[0])
			return err
		},
	}
}

// printReport prints what a data folder holds.
func printReport(t *command.Tool, folder string, r stack.FolderReport) error {
	for _, line := range r.Damage {
		if _, err := fmt.Fprintf(t.Out, "%s: %s\n", folder, cli.Printable(line)); err != nil {
			return err
		}
	}
	if r.Values == 0 {
		return nil
	}
	_, err := fmt.Fprintf(t.Out, "%s: %s can be read\n", folder, cli.Count(r.Values, "value"))
	return err
}
