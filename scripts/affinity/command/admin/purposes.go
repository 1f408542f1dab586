package admin

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/operator"
	"github.com/affinityengine/affinity/shared/score/consent"
)

func (a *appTool) purposesCommand() *cobra.Command {
	var file string
	var off bool
	cmd := &cobra.Command{
		Use:   "purposes ID",
		Short: "Show or set what an app uses events for, and which of that users must grant",
		Long: "Show or set what an app uses events for. A new app has no purposes: all events count, and nobody is asked.\n" +
			"In an app with purposes an event counts if it serves one that the user grants (affinity consent).\n\n" +
			"The file is a JSON list, which replaces the purposes of before:\n\n" +
			`  [{"name": "personalization", "default": true, "surfaces": ["rank", "boosts", "feeds"]},` + "\n" +
			`   {"name": "ads", "types": ["view"], "facets": ["brand"], "surfaces": ["segments", "export"],` + "\n" +
			`    "signals": ["ad_storage", "Advertising"]}]` + "\n\n" +
			"types, names and facets say which events and facets serve a purpose: all where a list is absent. surfaces\n" +
			"say where it lets the app use them: nowhere without. default says whether users grant it who were never\n" +
			"asked. signals are names, beside that of the purpose, by which the consent that an event carries may deny\n" +
			"it: such an event is dropped. A change makes all profiles of the app be computed again, and deletes nothing.",
		Example: "  affinity app purposes shop\n" +
			"  affinity app purposes shop --file purposes.json\n" +
			"  affinity app purposes shop --off",
		Args: idArgs("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var to []consent.Purpose
			if off && file != "" {
				return cli.Usagef("--file and --off cannot both be given")
			}
			if file != "" {
				var err error
				if to, err = readPurposes(file); err != nil {
					return err
				}
			}
			return a.with(cmd, func(s engine) error { return a.purposes(cmd.Context(), s, args[0], to, off || file != "") })
		},
	}
	cmd.Flags().StringVar(&file, "file", "", "file that holds the purposes")
	cmd.Flags().BoolVar(&off, "off", false, "remove all purposes: all events count")
	return cmd
}

// readPurposes reads a list of purposes, one at least.
func readPurposes(path string) ([]consent.Purpose, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read purposes: %w", err)
	}
	var purposes []consent.Purpose
	if err := json.Unmarshal(text, &purposes, json.RejectUnknownMembers(true)); err != nil {
		return nil, cli.Usagef("--file %s: want a JSON list of purposes: %v", path, err)
	}
	if len(purposes) == 0 {
		return nil, cli.Usagef("--file %s: has no purpose; --off removes all", path)
	}
	if _, err := (consent.Setting{}).With(purposes); err != nil {
		return nil, cli.Usagef("--file %s: %v", path, err)
	}
	return purposes, nil
}

// purposes changes the purposes of an app if set says so, and prints them.
func (a *appTool) purposes(ctx context.Context, s operator.Store, id string, to []consent.Purpose, set bool) error {
	app, err := s.App(ctx, id)
	if err != nil {
		return fmt.Errorf("read app %s: %w", id, missingApp(err))
	}
	if set {
		if app, err = s.SetPurposes(ctx, id, to); err != nil {
			return fmt.Errorf("set the purposes of app %s: %w", id, missingApp(err))
		}
	}
	a.printPurposes(app)
	return nil
}

func (a *appTool) printPurposes(app config.App) {
	if !app.Purposes.On() {
		fmt.Fprintf(a.Out, "app %s has no purposes: all events count; name some with: affinity app purposes %s --file FILE\n",
			app.ID, app.ID)
		return
	}
	for _, p := range app.Purposes.Purposes {
		granted := "not granted by default"
		if p.Default {
			granted = "granted by default"
		}
		fmt.Fprintf(a.Out, "%s: %s; served by %s; used for %s\n", p.Name, granted, servedBy(p), list(p.Surfaces, "nothing"))
	}
	if none := app.Purposes.Unserved(); len(none) > 0 {
		fmt.Fprintf(a.Err, "warning: events of the types %s serve no purpose: the engine drops them\n", list(none, ""))
	}
}

func servedBy(p consent.Purpose) string {
	words := "all events"
	if len(p.Types) > 0 {
		words = "events of the types " + list(p.Types, "")
	}
	if len(p.Names) > 0 {
		words += ", of the names " + list(p.Names, "")
	}
	if len(p.Facets) > 0 {
		words += ", by the facets " + list(p.Facets, "")
	}
	if len(p.Signals) > 0 {
		words += ", unless they deny " + list(p.Signals, "")
	}
	return words
}

// list names what a list holds, or says that it is empty.
func list[T ~string](of []T, empty string) string {
	var all []string
	for _, v := range of {
		all = append(all, cli.Printable(string(v)))
	}
	if len(all) == 0 {
		return empty
	}
	return strings.Join(all, ", ")
}
