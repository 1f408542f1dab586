package local

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/shared/local/backup"
	"github.com/affinityengine/affinity/shared/local/stack"
)

// backupFlags are the flags of backup and its commands as they were given.
type backupFlags struct {
	to, from, data, key, scratch, out string
	keep, users                       int
}

// Backup returns the command backup, about copies of data folders.
func Backup(t *command.Tool) *cobra.Command {
	f := &backupFlags{}
	cmd := cli.Group(&cobra.Command{
		Use:   "backup",
		Short: "Back up the data folder of an engine, and restore it",
		Long: "Write all that an engine keeps to a new folder in --to, whose name is the time: the database, keys and\n" +
			"settings, waiting events and tasks, and the files with secrets. It needs no pause: the engine at --url is asked\n" +
			"for it with the operator's token ($AFFINITY_OPERATOR), and --data DIR reads a folder that no engine uses. What\n" +
			"was acknowledged before the command began is in the backup. The engine reads all of it first: a damaged folder\n" +
			"becomes no backup. Files of --archive and --warehouse are not in it.\n" +
			"A backup holds secrets and data about persons. --backup-key FILE encrypts each file with age: with its public\n" +
			"key alone (`affinity backup key` prints it) the machine can write backups and not read them.",
		Example: "  affinity backup --to /mnt/backups --url http://127.0.0.1:9090\n" +
			"  affinity backup drill --from /mnt/backups\n" +
			"  affinity backup restore --from /mnt/backups/20261201T060000.000Z --data /var/lib/affinity",
	}, f.verify(t), f.restore(t), f.drill(t), f.makeKey(t))
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return f.write(cmd.Context(), t) }
	flags := cmd.Flags()
	flags.StringVar(&f.to, "to", "", "folder that holds the backups of this engine (required)")
	flags.StringVar(&f.data, "data", "", "data folder that no engine uses (default: ask the engine at --url)")
	flags.IntVar(&f.keep, "keep", 0,
		"how many backups the folder holds at most; older ones are removed (default: all)")
	f.addKey(cmd, "encrypts")
	t.JSONFlag(cmd, "print the folder and the counts as JSON")
	return cmd
}

func (f *backupFlags) addKey(cmd *cobra.Command, does string) {
	cmd.Flags().StringVar(&f.key, "backup-key", "", "file with the key of age that "+does+" the backup")
}

// addFrom defines the flags of the commands that read a backup.
func (f *backupFlags) addFrom(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().StringVar(&f.from, "from", "",
		"the backup, or a folder of backups, of which the newest is taken (required)")
	f.addKey(cmd, "decrypts")
	cmd.Args = cli.Subcommand
	return cmd
}

// write writes a backup.
func (f *backupFlags) write(ctx context.Context, t *command.Tool) error {
	if f.to == "" {
		return cli.Usagef("name the folder of backups with --to DIR")
	}
	if f.keep < 0 {
		return cli.Usagef("--keep %d: must be at least 0", f.keep)
	}
	key, err := backup.ReadKey(f.key)
	if err != nil {
		return err
	}
	take := func(content backup.Source) error {
		done, err := backup.Write(f.to, content, backup.Options{Keep: f.keep, Key: key, Paced: f.data == ""})
		if done.Dir == "" {
			return err
		}
		if t.JSON {
			return errors.Join(err, cli.PrintJSON(t.Out, map[string]any{"backup": done.Dir, "files": len(done.Manifest.Files),
				"bytes": done.Manifest.Bytes(), "newBytes": done.New, "values": done.Manifest.Values}))
		}
		_, printed := fmt.Fprintf(t.Out, "%s: %s, %s of which %s are new\n", done.Dir,
			cli.Count(len(done.Manifest.Files), "file"), megabytes(done.Manifest.Bytes()), megabytes(done.New))
		return errors.Join(err, printed)
	}
	if f.data != "" {
		if err := outside(f.to, f.data); err != nil {
			return cli.Usagef("--to: %v", err)
		}
		return stack.SaveData(ctx, f.data, take)
	}
	engine, err := command.OperatorClient(t)
	if err != nil {
		return err
	}
	stream, err := engine.Backup(ctx)
	if err != nil {
		return err
	}
	content, err := backup.Receive(stream)
	if err == nil {
		err = take(content)
	}
	return errors.Join(err, stream.Close())
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }

// scheduleFlags are the flags of the backups that an engine makes itself.
type scheduleFlags struct {
	to, key string
	every   time.Duration
	keep    int
}

func (f *scheduleFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.to, "backup", "", "folder to write backups to while it serves, as `affinity backup` does")
	flags.DurationVar(&f.every, "backup-every", 6*time.Hour, "time from one backup to the next, 1m or more")
	flags.IntVar(&f.keep, "backup-keep", 28, "how many backups the folder holds at most, 0 for all")
	flags.StringVar(&f.key, "backup-key", "", "file with the key of age that encrypts the backups; a public one is enough")
}

// options checks the flags.
func (f *scheduleFlags) options(cmd *cobra.Command, data string) (stack.Backups, error) {
	o := stack.Backups{To: f.to, Every: f.every, Keep: f.keep}
	for _, name := range []string{"backup-every", "backup-keep", "backup-key"} {
		if f.to == "" && cmd.Flags().Changed(name) {
			return o, cli.Usagef("--%s is about the backups of --backup DIR: give both", name)
		}
	}
	switch err := outside(f.to, data); {
	case f.to == "":
		return o, nil
	case err != nil:
		return o, cli.Usagef("--backup: %v", err)
	case f.every < time.Minute:
		return o, cli.Usagef("--backup-every %s: must be at least 1m", f.every)
	case f.keep < 0:
		return o, cli.Usagef("--backup-keep %d: must be at least 0", f.keep)
	}
	var err error
	o.Key, err = backup.ReadKey(f.key)
	return o, err
}

// outside refuses a folder of backups within the data folder that they save.
func outside(to, data string) error {
	within, err := filepath.Abs(to)
	root, rootErr := filepath.Abs(data)
	if err = errors.Join(err, rootErr); err != nil {
		return err
	}
	if rel, err := filepath.Rel(root, within); err == nil && filepath.IsLocal(rel) {
		return fmt.Errorf("the folder %s is within the data folder %s and would be lost with it: name one elsewhere, best "+
			"on another disk", to, data)
	}
	return nil
}

// load reads the key and the manifest of the backup.
func (f *backupFlags) load() (dir string, m backup.Manifest, key *backup.Key, err error) {
	if f.from == "" {
		return dir, m, nil, cli.Usagef("name the backup with --from")
	}
	if key, err = backup.ReadKey(f.key); err != nil {
		return dir, m, nil, err
	}
	dir, m, err = backup.Load(f.from)
	return dir, m, key, err
}

func (f *backupFlags) verify(t *command.Tool) *cobra.Command {
	return f.addFrom(&cobra.Command{
		Use:   "verify",
		Short: "Compare every file of a backup with its manifest",
		Long: "Read a backup and compare every file with the manifest. Without --backup-key an encrypted one is read as\n" +
			"it lies there, and with it decrypted too. The exit code is 0 if the backup is whole, and else 1.",
		Example: "  affinity backup verify --from /mnt/backups",
		RunE: func(*cobra.Command, []string) error {
			dir, m, key, err := f.load()
			if err == nil {
				err = backup.Verify(dir, m, key)
			}
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(t.Out, "%s is whole: %s\n", dir, contents(m))
			return err
		},
	})
}

func contents(m backup.Manifest) string {
	return fmt.Sprintf("%s, %s, of version %s at %s", cli.Count(len(m.Files), "file"), megabytes(m.Bytes()),
		cli.Printable(m.Version), m.Time.Format(time.RFC3339))
}

func (f *backupFlags) restore(t *command.Tool) *cobra.Command {
	cmd := f.addFrom(&cobra.Command{
		Use:   "restore",
		Short: "Make a data folder of a backup",
		Long: "Make a data folder of a backup, and compare each file with the manifest on the way. --data must be new or\n" +
			"empty. What the engine acknowledged after the backup is not in it: users who were deleted since are there\n" +
			"again, so delete them once more. Run it as the user of the engine.",
		Example: "  affinity backup restore --from /mnt/backups --data /var/lib/affinity",
		RunE: func(*cobra.Command, []string) error {
			if f.data == "" {
				return cli.Usagef("name the new data folder with --data DIR")
			}
			dir, m, key, err := f.load()
			if err == nil {
				err = backup.Restore(dir, m, f.data, key)
			}
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(t.Out, "%s holds the backup %s: %s. Start the engine with it.\n", f.data, dir, contents(m))
			return err
		},
	})
	cmd.Flags().StringVar(&f.data, "data", "", "the data folder to make (required)")
	return cmd
}

// drilled is what a drill prints as JSON.
type drilled struct {
	Backup string    `json:"backup"`
	Time   time.Time `json:"time"`
	Values int       `json:"values"`
	stack.Drilled
}

func (f *backupFlags) drill(t *command.Tool) *cobra.Command {
	cmd := f.addFrom(&cobra.Command{
		Use:   "drill",
		Short: "Restore a backup to a folder of its own and see that an engine works with it",
		Long: "Restore a backup to a temporary folder, read all of its database, compare the number of values with the\n" +
			"manifest, start an engine with it on this machine, and compare the profiles of --users users of each app with\n" +
			"their events. The folder is removed in the end. The exit code is 0 if everything is equal, and else 1. Run it\n" +
			"after each change of version and from time to time: a backup that was never restored is a hope.",
		Example: "  affinity backup drill --from /mnt/backups --scratch /mnt/scratch",
		RunE:    func(cmd *cobra.Command, _ []string) error { return f.rehearse(cmd.Context(), t) },
	})
	t.JSONFlag(cmd, "print the counts as JSON")
	cmd.Flags().StringVar(&f.scratch, "scratch", "", "folder with room for the data (default: that for temporary files)")
	cmd.Flags().IntVar(&f.users, "users", 50, "how many users of each app are compared")
	return cmd
}

func (f *backupFlags) rehearse(ctx context.Context, t *command.Tool) (err error) {
	if err := cli.Within("users", f.users, 1, 10_000); err != nil {
		return err
	}
	dir, m, key, err := f.load()
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp(f.scratch, "affinity-drill-")
	if err != nil {
		return fmt.Errorf("make a folder for the drill (--scratch): %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	data := filepath.Join(scratch, "data")
	if err := backup.Restore(dir, m, data, key); err != nil {
		return err
	}
	report, err := stack.CheckData(data)
	switch {
	case err != nil:
		return err
	case len(report.Damage) > 0:
		return fmt.Errorf("the backup %s holds a damaged database (%s): use another backup", dir, report.Damage[0])
	case report.Values != m.Values:
		return fmt.Errorf("the backup %s has %d values and its manifest says %d: use another backup", dir, report.Values,
			m.Values)
	}
	log := slog.New(slog.NewTextHandler(t.Err, &slog.HandlerOptions{Level: slog.LevelError}))
	d, err := stack.Drill(ctx, data, f.users, log)
	if err != nil {
		return fmt.Errorf("an engine with the backup %s: %w", dir, err)
	}
	if t.JSON {
		err = cli.PrintJSON(t.Out, drilled{dir, m.Time, m.Values, d})
	} else {
		_, err = fmt.Fprintf(t.Out, "%s of %s: %s as the manifest says, %s; of %s with %s, %d have a profile that is not "+
			"that of their events\n", dir, m.Time.Format(time.RFC3339), cli.Count(report.Values, "value"),
			cli.Count(d.Apps, "app"), cli.Count(d.Users, "user"), cli.Count(d.Events, "event"), d.Differing)
	}
	if err == nil && d.Differing > 0 {
		err = fmt.Errorf("%s of the backup have a profile that is not that of their events: start an engine with it and "+
			"let `affinity recompute start` correct them", cli.Count(d.Differing, "user"))
	}
	return err
}

func (f *backupFlags) makeKey(t *command.Tool) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "key",
		Short: "Make a key that encrypts backups",
		Long: "Make a key of age in a new file that only its owner can read, and print its public key. A file with the\n" +
			"public key alone is enough to write backups. Keep the secret one away from the engine's machine: without it\n" +
			"nobody reads the backups.",
		Example: "  affinity backup key --out backup.key > backup.pub",
		Args:    cli.Subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cli.Require(cmd, "out", "name the file"); err != nil {
				return err
			}
			public, err := backup.MakeKey(f.out)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(t.Out, public)
			return err
		},
	}
	cmd.Flags().StringVar(&f.out, "out", "", "file to make (required)")
	return cmd
}
