package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/shared/api"
)

func versionCommand(t *command.Tool) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of this tool",
		Args:  cli.Subcommand,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(t.Out, version())
			return err
		},
	}
}

// version describes this program in one line.
func version() string {
	info, _ := debug.ReadBuildInfo()
	return describe(info)
}

// describe names the version, the commit or the module's version if the build
// recorded one, Go's version and the platform. `go run` records neither.
func describe(info *debug.BuildInfo) string {
	line := "affinity " + api.Version
	if source := cmp.Or(commit(info), module(info)); source != "" {
		line += " (" + source + ")"
	}
	return fmt.Sprintf("%s %s %s/%s", line, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// commit returns the short hash of the commit that the program was built from,
// or "". A build of changed sources says so.
func commit(info *debug.BuildInfo) string {
	hash, dirty := strings.CutSuffix(api.Release(info), "-dirty")
	if hash == "" {
		return ""
	}
	hash = "commit " + hash[:min(len(hash), 12)]
	if dirty {
		hash += ", modified"
	}
	return hash
}

// module returns the version of the module that `go install` built, or "" if that
// is the version of its tag: commits without a tag have versions of their own.
func module(info *debug.BuildInfo) string {
	if info == nil || info.Main.Version == "" || info.Main.Version == "(devel)" || info.Main.Version == "v"+api.Version {
		return ""
	}
	return "module " + info.Main.Version
}
