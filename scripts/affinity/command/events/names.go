package events

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/api/track"
)

func namesCommand(t *command.Tool) *cobra.Command {
	change := api.TrackNames{Names: map[string]string{}}
	return command.Show(t, &cobra.Command{
		Use:   "names [NAME=TYPE...]",
		Short: "Give names of track calls a type of event, or list those that have one",
		Long: "Give names of track calls of Segment and RudderStack a type of event: view, click or conversion. " +
			"An empty type takes\nthat of a name away; other names keep theirs. Without arguments, list the names. Calls " +
			"follow within 5 s. Requires a\nkey with the permission settings. These names have a type already:\n" + known(),
		Example: "  affinity events names\n" +
			"  affinity events names 'Recipe Saved=conversion' 'Recipe Opened=view' 'Old Name='",
		PreRunE: func(_ *cobra.Command, args []string) error {
			for _, arg := range args {
				at := strings.LastIndexByte(arg, '=')
				if at < 1 {
					return cli.Usagef("%q: want a name and its type, such as 'Recipe Saved=conversion'", arg)
				}
				name := track.Trim(arg[:at])
				if _, twice := change.Names[name]; twice {
					return cli.Usagef("%q: the name is there twice", name)
				}
				change.Names[name] = arg[at+1:]
			}
			return nil
		},
	}, "name track calls", func(ctx context.Context, c *client.Client, args []string) (api.TrackNames, error) {
		if len(args) == 0 {
			return c.Events().Names(ctx)
		}
		return c.Events().SetNames(ctx, change)
	}, func(t *command.Tool, all api.TrackNames) error {
		if len(all.Names) == 0 {
			_, err := fmt.Fprintln(t.Out, "the app has given no name of a track call a type")
			return err
		}
		return cli.Table(t.Out, "TYPE\tNAME", slices.Sorted(maps.Keys(all.Names)), func(name string) []any {
			return []any{all.Names[name], name}
		})
	})
}

// known lists the names of the specification that have a type, in lines.
func known() string {
	var text strings.Builder
	for i, name := range track.Names() {
		if i > 0 && i%5 == 0 {
			text.WriteString("\n")
		} else if i > 0 {
			text.WriteString(" ")
		}
		text.WriteString(name + ",")
	}
	return strings.TrimSuffix(text.String(), ",") + "."
}
