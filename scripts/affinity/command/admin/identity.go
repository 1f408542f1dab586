package admin

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/operator"
)

// identityFlags are the changes of an app's identity that a command line asks for.
type identityFlags struct{ mode, lookback, trust, serve string }

func (a *appTool) identityCommand() *cobra.Command {
	var f identityFlags
	cmd := &cobra.Command{
		Use:   "identity ID",
		Short: "Show or set whether the tokens of one person are linked",
		Long: "Show or set whether the tokens of one person are linked: the events of an anonymous token count for the user who\n" +
			"has signed in under it, and `affinity identity unlink` undoes it. It is off in a new app.\n\n" +
			"Turn it on in two steps. --mode collect makes links, and nothing counts by them yet. --mode link lets them count, once no\n" +
			"process can be at work that does not know them: some ten minutes later. The way back is the same.\n\n" +
			"Evidence is an event with both tokens. By default it must come with a server's key, or with a secured key of the user who\n" +
			"signed in: anybody can read a key in a web page and name any token. --trust pages takes evidence of such keys, too; these\n" +
			"links are weak, and marked so.\n\n" +
			"By default an anonymous token is served by its own events alone, signed in or not. With --serve person its orders, boosts\n" +
			"and feeds are those of the user who has signed in under it, by strong evidence, while the link is open. An answer then says\n" +
			"\"person\": true, and does not name the user.",
		Example: "  affinity app identity shop\n" +
			"  affinity app identity shop --mode collect\n" +
			"  affinity app identity shop --mode link --lookback 30d",
		Args: idArgs("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, _, err := f.apply(config.Identity{}); err != nil {
				return err
			}
			return a.with(cmd, func(s engine) error { return a.identity(cmd.Context(), s, args[0], f) })
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.mode, "mode", "", "off, collect or link")
	flags.StringVar(&f.lookback, "lookback", "",
		"how long before a sign-in the events of the anonymous token count, such as 30d or 12h (default 30d)")
	flags.StringVar(&f.trust, "trust", "", "server or pages: whose evidence links (default server)")
	flags.StringVar(&f.serve, "serve", "",
		"token or person: whom orders, boosts and feeds of an anonymous token go by (default token)")
	return cmd
}

// apply returns a setting with the changes, and whether there are any.
func (f identityFlags) apply(to config.Identity) (config.Identity, bool, error) {
	if !to.On() && to.Lookback == 0 {
		to.Lookback = config.DefaultLookback
	}
	switch f.mode {
	case "":
	case "off":
		to.Mode = config.IdentityOff
	case "collect", "link":
		to.Mode = config.IdentityMode(f.mode)
	default:
		return to, false, cli.Usagef("--mode %q: must be off, collect or link", f.mode)
	}
	if f.lookback != "" {
		lookback, err := days(f.lookback)
		if err != nil || lookback < 0 || lookback > config.MaxLookback {
			return to, false, cli.Usagef("--lookback %q: must be a duration such as 30d or 12h, at most %d days", f.lookback,
				int(config.MaxLookback.Hours()/24))
		}
		to.Lookback = lookback
	}
	switch f.trust {
	case "":
	case "server", "pages":
		to.TrustPages = f.trust == "pages"
	default:
		return to, false, cli.Usagef("--trust %q: must be server or pages", f.trust)
	}
	switch f.serve {
	case "":
	case "token", "person":
		to.ServePersons = f.serve == "person"
	default:
		return to, false, cli.Usagef("--serve %q: must be token or person", f.serve)
	}
	return to, f != identityFlags{}, nil
}

// days parses a duration that may end in d for days.
func days(text string) (time.Duration, error) {
	if n, ok := strings.CutSuffix(text, "d"); ok {
		d, err := strconv.Atoi(n)
		return time.Duration(d) * 24 * time.Hour, err
	}
	return time.ParseDuration(text)
}

// identity changes the identity of an app by the flags, and prints it.
func (a *appTool) identity(ctx context.Context, s operator.Store, id string, f identityFlags) error {
	app, err := s.App(ctx, id)
	if err != nil {
		return fmt.Errorf("read app %s: %w", id, missingApp(err))
	}
	to, changes, err := f.apply(app.Identity)
	if err != nil {
		return err
	}
	if changes {
		if app, err = s.SetIdentity(ctx, id, to, config.IdentitySettle); err != nil {
			return fmt.Errorf("set the identity of app %s: %w", id, missingApp(err))
		}
	}
	i := app.Identity
	switch {
	case !i.On():
		fmt.Fprintf(a.Out, "app %s: tokens are not linked; begin with: affinity app identity %s --mode collect\n", id, id)
		return nil
	case i.Counts():
		fmt.Fprintf(a.Out, "app %s: tokens are linked since %s\n", id, i.Since.Format(time.RFC3339))
	default:
		fmt.Fprintf(a.Out, "app %s: links are made since %s, and do not count; "+
			"from %s on: affinity app identity %s --mode link\n", id, i.Since.Format(time.RFC3339),
			i.Since.Add(config.IdentitySettle).Format(time.RFC3339), id)
	}
	keys := "servers"
	if i.TrustPages {
		keys = "servers and pages"
	}
	served := "their own events"
	if i.ServePersons {
		served = "those of the user who has signed in"
	}
	fmt.Fprintf(a.Out, "lookback %s, evidence of the keys of %s, orders for anonymous tokens by %s\n", i.Lookback, keys,
		served)
	return nil
}
