package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/intake/export"
	"github.com/affinityengine/affinity/shared/score/consent"
)

// Warehouse returns the command warehouse.
func Warehouse(t *command.Tool) *cobra.Command {
	to := ""
	exportTo := &cobra.Command{
		Use:   "export --to DIR",
		Short: "Write the app's events, profiles and saved segments as Parquet",
		Long: "Write the app's events, profiles and saved segments to DIR as Parquet, which DuckDB, BigQuery, Spark and others read:\n" +
			"events-*.parquet with the columns of the table in BigQuery, profiles-*.parquet, segments-*.parquet, and export.json, which\n" +
			"says what they hold. DIR appears when all is written. Users who are deleted while the command runs are left out; a later\n" +
			"deletion does not reach into DIR: export again, and remove the folder before. The audit log records the export as a dump.\n" +
			"Requires a key with the permission admin.",
		Example: "  affinity warehouse export --to shop\n  duckdb -c \"SELECT type, count(*) FROM 'shop/events-*.parquet' GROUP BY type\"",
		Args:    cobra.NoArgs,
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			return cli.Require(cmd, "to", "the folder to write")
		},
		RunE: t.With(func(ctx context.Context, c *client.Client, _ []string) error {
			return runWarehouse(ctx, t, []string{"export", "--app", t.App, "--to", to}, func(out io.Writer) error {
				if err := sendProfiles(ctx, t, t.Patient(c), out); err != nil {
					return err
				}
				return (&dumping{t: t, client: t.Patient(c), out: out}).run(ctx)
			})
		}),
	}
	exportTo.Flags().StringVar(&to, "to", "", "folder to write; it must be empty or missing")
	verify := &cobra.Command{
		Use:   "verify DIR",
		Short: "Compare an export with a dump of the app",
		Long: "Compare DIR, which `affinity warehouse export` wrote, with a dump that the command reads now, event by event: the command\n" +
			"fails if an event is missing or differs, if DIR has one that the engine no longer has, such as of a user who was deleted\n" +
			"since, or if a profile or a saved segment is not what it should be. Events that were received since the export do not count.\n" +
			"It keeps about 100 bytes of each event in memory. Requires a key with the permission admin.",
		Example: "  affinity warehouse verify shop",
		Args:    cli.Args("DIR"),
		RunE: t.With(func(ctx context.Context, c *client.Client, args []string) error {
			return runWarehouse(ctx, t, []string{"verify", "--app", t.App, "--", args[0]}, func(out io.Writer) error {
				return (&dumping{t: t, client: t.Patient(c), out: out}).run(ctx)
			})
		}),
	}
	return cli.Group(&cobra.Command{
		Use:   "warehouse",
		Short: "Write the app's events, profiles and segments for analysts, as Parquet",
		Long: "Write the app's events, profiles and segments for analysts, as Parquet. The program affinity-warehouse does it: in a checkout\n" +
			"it is built, elsewhere it must be beside this one or in the PATH. functions/docs/guides/warehouse.md says more.",
	}, exportTo, verify)
}

// profilesAtOnce is how many profiles a request reads, and profileValues more than any has.
const (
	profilesAtOnce = 100
	profileValues  = 1 << 20
)

// sendProfiles writes a line for the profile of each user. They come before the dump, which then says who was
// deleted since.
func sendProfiles(ctx context.Context, t *command.Tool, c *client.Client, out io.Writer) error {
	limit, n := profileValues, 0
	for cursor := ""; ; {
		page, err := c.Profiles().Users(ctx, api.UsersQuery{Limit: profilesAtOnce, Cursor: cursor})
		if err != nil {
			return fmt.Errorf("list the users of %s: %w", t.App, err)
		}
		request := api.ProfilesRequest{Limit: &limit, Surface: new(string(consent.Export))}
		for _, u := range page.Users {
			request.UserTokens = append(request.UserTokens, u.UserToken)
		}
		var profiles api.Profiles
		if len(request.UserTokens) > 0 {
			if profiles, err = c.Profiles().List(ctx, request); err != nil {
				return fmt.Errorf("read profiles of %s: %w", t.App, err)
			}
		}
		if faulty := append(page.Faulty, profiles.Faulty...); len(faulty) > 0 {
			return fmt.Errorf("the profile of %s cannot be read: `affinity explain` says why", cli.Printable(faulty[0]))
		}
		var lines bytes.Buffer
		for i := range profiles.Profiles {
			line, err := export.Encode(api.ExportLine{Profile: &profiles.Profiles[i]})
			if err != nil {
				return err
			}
			lines.Write(line)
		}
		if _, err := out.Write(lines.Bytes()); err != nil {
			return fmt.Errorf("write profiles: %w", err)
		}
		if n += len(profiles.Profiles); page.Cursor == "" {
			fmt.Fprintf(t.Err, "%s\n", cli.Count(n, "profile"))
			return nil
		}
		cursor = page.Cursor
	}
}

// runWarehouse runs the program and gives it the lines that send writes.
func runWarehouse(ctx context.Context, t *command.Tool, args []string, send func(io.Writer) error) error {
	program, remove, err := command.FindProgram(ctx, "affinity-warehouse", "scripts/affinity-warehouse")
	if err != nil {
		return err
	}
	defer remove()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdout, cmd.Stderr = t.Out, t.Err
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", program, err)
	}
	sent := send(in)
	closed := in.Close()
	if err := cmd.Wait(); err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) && (sent == nil || errors.Is(sent, syscall.EPIPE)) {
			return errors.New("affinity-warehouse has failed, as it says above")
		}
		if sent != nil && !errors.Is(sent, syscall.EPIPE) {
			return sent // the engine's error, for which the program got no end
		}
		return fmt.Errorf("run %s: %w", program, err)
	}
	if sent == nil && closed != nil && !errors.Is(closed, os.ErrClosed) {
		sent = closed
	}
	return sent
}
