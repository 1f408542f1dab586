package admin

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/web/auth"
)

func (a *appTool) securedKeyCommand() *cobra.Command {
	only, ends := client.Secured{}, validity{}
	cmd := &cobra.Command{
		Use:   "secured --user TOKEN",
		Short: "Make a secured key of a parent, without asking an engine",
		Long: "Make a secured key of the key that --key-file, AFFINITY_KEY or --key gives, its parent, and print\n" +
			"it. The engine is not asked: the command knows neither whether the key is a parent nor whether the\n" +
			"engine takes it. A server makes such a key for each user when it renders a page: the guide \"In a\n" +
			"web page\" has the code in five languages, and shared/api/client that in Go.\n" +
			"\n" +
			"The key sends events of its user, orders objects for them and renders their boosts, whatever the\n" +
			"browser ranking of the app says. It ends with its parent.",
		Example: "  affinity app key secured --user user-1 --valid-for 1h --key-file parent\n" +
			"  affinity app key secured --user user-1 --valid-until 2027-01-01T00:00:00Z --indexes 'products*' --sources 192.0.2.0/24",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			var err error
			if only.ValidUntil, err = ends.end(time.Now()); err == nil {
				err = checkSecured(only)
			}
			if err != nil {
				return cli.Usagef("%v", err)
			}
			parent, err := a.GivenKey()
			if err != nil {
				return err
			}
			key := client.SecuredKey(parent, only)
			if len(key) > auth.MaxSecured {
				return cli.Usagef("the key has %d characters, and an engine takes %d: name fewer indexes or sources", len(key),
					auth.MaxSecured)
			}
			_, err = fmt.Fprintln(a.Out, key)
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&only.UserToken, "user", "", "the only user of the key")
	ends.add(flags)
	flags.StringSliceVar(&only.Indexes, "indexes", nil,
		"indexes that the key is for; * stands for any characters (default: those of the parent)")
	flags.StringSliceVar(&only.Sources, "sources", nil,
		"addresses and networks that may use the key, such as 192.0.2.0/24 (default: all)")
	return cmd
}

// checkSecured refuses restrictions that an engine would refuse or not understand.
func checkSecured(only client.Secured) error {
	switch {
	case only.UserToken == "" && len(only.Indexes)+len(only.Sources) == 0 && only.ValidUntil.IsZero():
		return errors.New("nothing restricts the key: give --user, --valid-for, --valid-until, --indexes or --sources")
	case only.UserToken != "" && !event.ValidUserToken(only.UserToken):
		return fmt.Errorf("--user %q: a user token has 1 to 129 letters, digits and _=/+-", only.UserToken)
	}
	for _, index := range only.Indexes {
		if index == "" || strings.Contains(index, ",") {
			return fmt.Errorf("--indexes %q: an index must not be empty, nor contain a comma", index)
		}
	}
	for _, source := range only.Sources {
		_, network := netip.ParsePrefix(source)
		if _, address := netip.ParseAddr(source); network != nil && address != nil {
			return fmt.Errorf("--sources %q: neither an address nor a network such as 192.0.2.0/24", source)
		}
	}
	return nil
}
