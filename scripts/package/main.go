// Command package makes the zips from which Cloud Functions builds the functions,
// and checks them by building them in the same way.
//
// A zip holds the files of this module that the function links, and no others, so
// a deployment updates only the functions that a change concerns. The command
// packs the checkout that it runs in, into dist/, and says in release.json which
// commit that is.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/terraform"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command(os.Stdout).ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "package: %v\n", err)
		os.Exit(1)
	}
}

func command(out io.Writer) *cobra.Command {
	var dir string
	root := &cobra.Command{
		Use:   "package [functions...]",
		Short: "Make the zip of each function",
		Long: "Write <function>.zip and its SPDX list for the functions named, or for all, and then release.json, which says of\n" +
			"which commit the zips are. The same sources always give the same bytes.",
		Args:          cobra.ArbitraryArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, args []string) error {
			return packAll(cmd.Context(), out, dir, args)
		},
	}
	root.PersistentFlags().StringVar(&dir, "out", "dist", "folder of the zips")
	root.AddCommand(&cobra.Command{
		Use:   "check [functions...]",
		Short: "Build each zip as Cloud Functions does, and start it",
		Long: "Build the zips of the functions named, or of all, as Cloud Functions does. Start each without a configuration, and\n" +
			"check that it answers 503 with the variables that it lacks. This needs only Go and the modules.",
		RunE: func(cmd *cobra.Command, args []string) error {
			return checkAll(cmd.Context(), out, dir, args)
		},
	})
	return root
}

// chosen returns the functions with these names, or all functions if there are no
// names.
func chosen(names []string) ([]terraform.Function, error) {
	deployment, err := terraform.ReadDeployment()
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return deployment.Functions, nil
	}
	list := make([]terraform.Function, len(names))
	for i, name := range names {
		if list[i], err = deployment.Function(name); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func namesOf(list []terraform.Function) []string {
	names := make([]string, len(list))
	for i, fn := range list {
		names[i] = fn.Name
	}
	return names
}

func zipPath(dir, function string) string { return filepath.Join(dir, function+".zip") }

func packAll(ctx context.Context, out io.Writer, dir string, names []string) error {
	list, err := chosen(names)
	if err != nil {
		return err
	}
	root, err := moduleRoot(ctx)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the folder of the zips: %w", err)
	}
	zips, err := pack(ctx, root, namesOf(list)...)
	if err != nil {
		return err
	}
	for i, fn := range list {
		path := zipPath(dir, fn.Name)
		if err := os.WriteFile(path, zips[i].data, 0o644); err != nil {
			return fmt.Errorf("package %s: %w", fn.Name, err)
		}
		fmt.Fprintf(out, "%s: %d kB\n", path, (len(zips[i].data)+999)/1000)
	}
	release, err := writeLists(ctx, root, dir, namesOf(list), zips, len(names) == 0)
	if err == nil {
		_, err = fmt.Fprintf(out, "release %s\n", release.identity())
	}
	return err
}

// checkAll checks every zip, also after a fault in another one.
func checkAll(ctx context.Context, out io.Writer, dir string, names []string) error {
	list, err := chosen(names)
	if err != nil {
		return err
	}
	var faults []error
	for _, fn := range list {
		began := time.Now()
		lacks, err := check(ctx, zipPath(dir, fn.Name), fn)
		if ctx.Err() != nil {
			return fmt.Errorf("check %s: %w", fn.Name, errors.Join(ctx.Err(), err))
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("check %s: %w", fn.Name, err))
			continue
		}
		fmt.Fprintf(out, "%s: built, started as %s, answers that it lacks %s (%.1f s)\n",
			fn.Name, fn.EntryPoint, cmp.Or(strings.Join(lacks, ", "), "nothing"), time.Since(began).Seconds())
	}
	return errors.Join(faults...)
}
