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
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
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
	var dir, commit string
	root := &cobra.Command{
		Use:   "package [functions...]",
		Short: "Make the zip of each function",
		Long: "Write <function>.zip and its SPDX list for the functions named, or for all, and then release.json, " +
			"which says of\n" +
			"which commit the zips are. The same sources always give the same bytes.\n\n" +
			"With --commit the zips are of another commit than the checkout, whose Terraform configuration then deploys " +
			"them: that\n" +
			"of an upgrade before its functions, or of a release whose functions are rolled back. A function that the " +
			"commit does\n" +
			"not have is of the checkout.",
		Args:          cobra.ArbitraryArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, args []string) error {
			return packAll(cmd.Context(), out, dir, commit, args)
		},
	}
	root.PersistentFlags().StringVar(&dir, "out", "dist", "folder of the zips")
	root.Flags().StringVar(&commit, "commit", "", "pack the sources of this commit instead of the checkout's")
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

// packAll writes the zips of the functions named, of the checkout or of a commit. A zip
// that is made alone leaves the release file as it is, and Terraform refuses the zip if the
// file names another sum.
func packAll(ctx context.Context, out io.Writer, dir, commit string, names []string) error {
	list, err := chosen(names)
	if err != nil {
		return err
	}
	root, err := moduleRoot(ctx)
	if err != nil {
		return err
	}
	release, at, err := releaseOf(ctx, root)
	if err != nil {
		return err
	}
	roots := map[string][]string{root: namesOf(list)}
	if commit != "" {
		sources, err := os.MkdirTemp("", "affinity-sources-")
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(sources) }()
		if release, at, err = sourcesAt(ctx, root, commit, sources); err != nil {
			return err
		}
		roots = split(root, sources, list)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the folder of the zips: %w", err)
	}
	for _, root := range slices.Sorted(maps.Keys(roots)) {
		if err := packFrom(ctx, out, root, dir, release, at, roots[root]); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "release %s\n", release.identity())
	if len(names) > 0 {
		return nil
	}
	return release.writeFile(dir)
}

// split returns from which of two folders each function is packed: from the checkout if the
// sources of the commit do not have it.
func split(checkout, sources string, list []terraform.Function) map[string][]string {
	roots := map[string][]string{}
	for _, fn := range list {
		root := sources
		if _, err := os.Stat(filepath.Join(sources, "functions", fn.Name)); err != nil {
			root = checkout
		}
		roots[root] = append(roots[root], fn.Name)
	}
	return roots
}

// packFrom packs functions from the sources in a folder.
func packFrom(ctx context.Context, out io.Writer, root, dir string, release Release, at time.Time,
	names []string) error {
	version, err := toolchain(root)
	if err != nil {
		return err
	}
	zips, err := pack(ctx, root, names...)
	if err != nil {
		return err
	}
	for i, name := range names {
		path := zipPath(dir, name)
		err := os.WriteFile(path, zips[i].data, 0o644)
		if err == nil {
			err = release.write(dir, name, version, at, zips[i])
		}
		if err != nil {
			return fmt.Errorf("package %s: %w", name, err)
		}
		fmt.Fprintf(out, "%s: %d kB\n", path, (len(zips[i].data)+999)/1000)
	}
	return nil
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
