// Command release makes the files of a release: for each platform an archive with
// the command line tool, its completions and the licences of what it links, and an
// SPDX list of that; for Linux a package for Debian with a unit of systemd; and the checksums of all.
//
// It builds the checkout that it runs in, into dist/. The same commit and the same
// Go give the same bytes. The Dockerfile beside it makes the container image.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/shared/api"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command(os.Stdout).ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "release: %v\n", err)
		os.Exit(1)
	}
}

// platforms are those that a release has an archive for.
var platforms = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64", "windows/arm64"}

func command(out io.Writer) *cobra.Command {
	var dir string
	var only []string
	cmd := &cobra.Command{
		Use:   "release VERSION",
		Short: "Make the archives, checksums and SPDX lists of a release",
		Long: "Build the command line tool for each platform and write its archive, its SPDX list and SHA256SUMS. VERSION\n" +
			"must be the constant Version of shared/api, and nothing in the checkout may differ from its commit. Files have\n" +
			"the time of the commit, or SOURCE_DATE_EPOCH (seconds since 1970). Nothing is uploaded; Go may download modules.",
		Example: "  go run ./scripts/release " + api.Version + "\n  go run ./scripts/release " + api.Version +
			" --platform linux/amd64",
		Args:          cobra.ExactArgs(1),
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, args []string) error {
			root, err := moduleRoot(cmd.Context())
			if err != nil {
				return err
			}
			return release(cmd.Context(), out, root, dir, args[0], only)
		},
	}
	cmd.Flags().StringVar(&dir, "out", "dist", "folder of the files")
	cmd.Flags().StringSliceVar(&only, "platform", platforms, "build for these platforms alone, as GOOS/GOARCH")
	return cmd
}

// release writes the files of a version of the module at root into dir.
func release(ctx context.Context, out io.Writer, root, dir, version string, platforms []string) error {
	if version = strings.TrimPrefix(version, "v"); version != api.Version {
		return fmt.Errorf("the version is %s and not %s: set Version in shared/api/version.go and commit, as "+
			".github/CONTRIBUTING.md says under Releases",
			api.Version, version)
	}
	at, err := commitTime(ctx, root)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the folder of the release: %w", err)
	}
	scratch, err := os.MkdirTemp("", "affinity-release")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	b := builder{root: root, scratch: scratch, version: version, at: at}
	if err := b.completions(ctx); err != nil {
		return err
	}
	sums := map[string]string{}
	for _, platform := range platforms {
		files, err := b.release(ctx, platform)
		if err != nil {
			return fmt.Errorf("%s: %w", platform, err)
		}
		for name, data := range files {
			sums[name] = sha256Of(data)
			if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
				return err
			}
			fmt.Fprintf(out, "%s: %d kB\n", filepath.Join(dir, name), (len(data)+999)/1000)
		}
	}
	return os.WriteFile(filepath.Join(dir, "SHA256SUMS"), checksums(sums), 0o644)
}

// commitTime returns the time that the files of a release have: SOURCE_DATE_EPOCH,
// or that of the commit. It fails if the checkout differs from its commit, since
// nobody could build such a release again.
func commitTime(ctx context.Context, root string) (time.Time, error) {
	changed, err := output(ctx, root, nil, "git", "status", "--porcelain")
	if err != nil {
		return time.Time{}, fmt.Errorf("a release is built in a checkout of Git: %w", err)
	}
	if len(changed) > 0 {
		return time.Time{}, fmt.Errorf("the checkout differs from its commit; commit these or remove them:\n%s", changed)
	}
	text := os.Getenv("SOURCE_DATE_EPOCH")
	if text == "" {
		log, err := output(ctx, root, nil, "git", "log", "-1", "--format=%ct")
		if err != nil {
			return time.Time{}, err
		}
		text = strings.TrimSpace(string(log))
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil || seconds < 315532800 { // zip archives cannot hold a time before 1980
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH %q: must be seconds since 1970, of 1980 or later", text)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// moduleRoot returns the folder of the module that the command runs in.
func moduleRoot(ctx context.Context) (string, error) {
	out, err := output(ctx, "", nil, "go", "env", "GOMOD")
	if err != nil {
		return "", err
	}
	file := strings.TrimSpace(string(out))
	if file == "" || file == os.DevNull {
		return "", errors.New("this is not a folder of a Go module: run it in the checkout")
	}
	return filepath.Dir(file), nil
}

// output runs a command in a folder, with environment added to this process's. The
// error holds what the command wrote to its standard error.
func output(ctx context.Context, dir string, environment []string, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), environment...)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, strings.TrimSpace(said.String()))
	}
	return out, nil
}
