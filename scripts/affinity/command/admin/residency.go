package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/kinds/residents"
	"github.com/affinityengine/affinity/shared/local/operator"
)

// residencyFlags are the changes of an app's residency that a command line asks for.
type residencyFlags struct {
	mode, rule, header string
	regions            []string
	countries, leave   map[string]string
}

func (a *appTool) residencyCommand() *cobra.Command {
	var f residencyFlags
	cmd := &cobra.Command{
		Use:   "residency ID",
		Short: "Show or set whether each user of an app has a region of their own",
		Long: "Show or set whether each user of an app has a region of their own. In a new app all users live in the\n" +
			"region of the app.\n\n" +
			"Turn it on in two steps. --mode prepare gives each user a location, which is still the region of the app.\n" +
			"--mode on lets users begin elsewhere and move, once no process can be at work that does not know\n" +
			"locations: some ten minutes later. Residency that is on stays on.\n\n" +
			"A rule says where a user begins whom nobody knows. With --rule key that is the region of the key that\n" +
			"sends their first event (affinity app key add --in). With --rule header it is that of the country which\n" +
			"the header " + config.DefaultResidencyHeader + " names; the load balancer of the deployment sets it,\n" +
			"and --country says the region of each country. Where a rule names no region, the user begins in the\n" +
			"region of the app. `affinity user region` moves one user.\n\n" +
			"--leave us=eu moves all users of us to eu. A job begins at once, and each night goes on with those whom it\n" +
			"has left. Once us is empty, the app does not name it any more.",
		Example: "  affinity app residency shop --mode prepare --live-in eu,us\n" +
			"  affinity app residency shop --mode on --rule header --country US=us --country CA=us\n" +
			"  affinity app residency shop --leave us=eu",
		Args: idArgs("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd, func(s engine) error { return a.residency(cmd, s, args[0], f) })
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.mode, "mode", "", "off, prepare or on")
	flags.StringSliceVar(&f.regions, "live-in", nil, "the regions in which users may live, that of the app among them")
	flags.StringVar(&f.rule, "rule", "", "app, key or header: what names the region in which a user begins (default app)")
	flags.StringVar(&f.header, "header", "", "the header that names the country of a client (default "+
		config.DefaultResidencyHeader+")")
	flags.StringToStringVar(&f.countries, "country", nil, "the region of a country, such as US=us; give all at once")
	flags.StringToStringVar(&f.leave, "leave", nil,
		"a region that users leave, and the one to which they move, such as us=eu")
	a.queueFlag(cmd)
	return cmd
}

// apply returns a setting with the changes of the flags that are set.
func (f residencyFlags) apply(to config.Residency, set func(flag string) bool) (config.Residency, error) {
	switch f.mode {
	case "":
	case "off":
		return config.Residency{}, nil
	case "prepare", "on":
		to.Mode = config.ResidencyMode(f.mode)
	default:
		return to, cli.Usagef("--mode %q: must be off, prepare or on", f.mode)
	}
	if len(f.regions) > 0 {
		to.Regions = f.regions
	}
	switch f.rule {
	case "":
	case "app", "key":
		to.Rule, to.Header, to.Map = config.ResidencyRule(strings.TrimPrefix(f.rule, "app")), "", nil
	case "header":
		to.Rule = config.ByHeader
	default:
		return to, cli.Usagef("--rule %q: must be app, key or header", f.rule)
	}
	if set("header") {
		to.Header = f.header
	}
	if set("country") {
		to.Map = f.countries
	}
	if set("leave") {
		to.Leave = f.leave
	}
	return to, nil
}

// residency changes the residency of an app by the flags, and prints it.
func (a *appTool) residency(cmd *cobra.Command, s operator.Store, id string, f residencyFlags) error {
	ctx := cmd.Context()
	app, err := s.App(ctx, id)
	if err != nil {
		return fmt.Errorf("read app %s: %w", id, missingApp(err))
	}
	changes := false
	for _, name := range []string{"mode", "live-in", "rule", "header", "country", "leave"} {
		changes = changes || cmd.Flags().Changed(name)
	}
	if changes {
		to, err := f.apply(app.Residency, cmd.Flags().Changed)
		if err != nil {
			return err
		}
		if app, err = a.setResidency(ctx, s, id, to); err != nil {
			return fmt.Errorf("set the residency of app %s: %w", id, missingApp(err))
		}
	}
	a.printResidency(app)
	return nil
}

// setResidency sets it in the engine. A local one knows its regions, those of a deployment are given.
func (a *appTool) setResidency(ctx context.Context, s operator.Store, id string,
	to config.Residency) (config.App, error) {
	if len(a.regions) > 0 {
		var err error
		if to, err = operator.ResidencyIn(a.regions, to); err != nil {
			return config.App{}, err
		}
	}
	return s.SetResidency(ctx, id, to, config.IdentitySettle)
}

// SetResidency is that of auditlog.Operated. It begins to move users who leave a region.
func (s *deployedStore) SetResidency(ctx context.Context, appID string, to config.Residency,
	settle time.Duration) (app config.App, err error) {
	if len(to.Leave) == 0 {
		return s.Operated.SetResidency(ctx, appID, to, settle)
	}
	tasks, closeTasks, err := s.queue(ctx)
	if err != nil {
		return app, err
	}
	defer func() { err = errors.Join(err, closeTasks()) }()
	if app, err = s.Operated.SetResidency(ctx, appID, to, settle); err != nil {
		return app, err
	}
	err = residents.New(job.Runner{
		Jobs:   job.Detailed(job.In(s.documents, residents.Collection), s.details, residents.Collection),
		Config: s.Store, Queue: tasks, Propagation: 2 * config.TTL, Now: time.Now, Log: slog.New(slog.DiscardHandler),
	}, residents.Work{Config: s.Store}).Leave(ctx, app)
	if err != nil {
		err = fmt.Errorf("it is set, and users begin to leave in the next night; run the command again to begin now: %w", err)
	}
	return app, err
}

func (a *appTool) printResidency(app config.App) {
	r := app.Residency
	if !r.On() {
		fmt.Fprintf(a.Out, "app %s: all users live in its region; begin with: "+
			"affinity app residency %s --mode prepare --live-in REGION,REGION\n", app.ID, app.ID)
		return
	}
	if r.Mode == config.ResidencyOn {
		fmt.Fprintf(a.Out, "app %s: since %s users live in %s\n", app.ID, r.Since.Format(time.RFC3339),
			strings.Join(r.Regions, ", "))
	} else {
		fmt.Fprintf(a.Out, "app %s: since %s each user has a location, in %s; "+
			"from %s on: affinity app residency %s --mode on\n", app.ID, r.Since.Format(time.RFC3339), r.Home, r.Since.Add(config.IdentitySettle).Format(time.RFC3339), app.ID)
	}
	switch r.Rule {
	case config.ByKey:
		fmt.Fprintf(a.Out, "a user begins in the region of the key that sends their first event, else in %s\n", r.Home)
	case config.ByHeader:
		fmt.Fprintf(a.Out, "a user begins in the region of the country in the header %s, else in %s:", r.Header, r.Home)
		for _, country := range slices.Sorted(maps.Keys(r.Map)) {
			fmt.Fprintf(a.Out, " %s=%s", country, r.Map[country])
		}
		fmt.Fprintln(a.Out)
	default:
		fmt.Fprintf(a.Out, "a user begins in %s\n", r.Home)
	}
	for _, region := range slices.Sorted(maps.Keys(r.Leave)) {
		fmt.Fprintf(a.Out, "users leave %s for %s; once they have, this command no longer names %s\n", region, r.Leave[region], region)
	}
}
