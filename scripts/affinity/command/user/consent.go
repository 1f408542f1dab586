package user

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
)

// Consent returns the command consent.
func Consent(t *command.Tool) *cobra.Command {
	return cli.Group(&cobra.Command{
		Use:   "consent",
		Short: "Grant or withdraw what the events of a user may be used for",
		Long: "Grant or withdraw what the events of a user may be used for. The operator names the purposes of an app:\n" +
			"`affinity app purposes`. Requires a key with the permission deleteObject, or a secured key of the user.",
	}, setConsentCommand(t), forgetConsentCommand(t), showConsentCommand(t))
}

func setConsentCommand(t *command.Tool) *cobra.Command {
	var granted, withdrawn []string
	grants := map[string]bool{}
	cmd := consentsOf(t, "set USER", "Grant some purposes for a user, and withdraw some",
		func(ctx context.Context, c *client.Client, user string) (api.Consents, error) {
			return c.Profiles().SetConsents(ctx, user, grants)
		})
	cmd.Long = "Grant some purposes for a user, and withdraw some. The others stay as they are. What counts for\n" +
		"withdrawn purposes alone is left out at once and removed. A purpose that is granted again begins empty.\n" +
		"With the same purposes again, nothing changes."
	cmd.Example = "  affinity consent set ann --grant ads --withdraw analytics"
	cmd.Flags().StringSliceVar(&granted, "grant", nil, "purposes that the user grants")
	cmd.Flags().StringSliceVar(&withdrawn, "withdraw", nil, "purposes that the user withdraws")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		for _, name := range granted {
			grants[name] = true
		}
		for _, name := range withdrawn {
			if grants[name] {
				return cli.Usagef("%q is granted and withdrawn: name it once", name)
			}
			grants[name] = false
		}
		if len(grants) == 0 {
			return cli.Usagef("name a purpose with --grant or --withdraw")
		}
		return nil
	}
	return cmd
}

func forgetConsentCommand(t *command.Tool) *cobra.Command {
	cmd := consentsOf(t, "forget USER", "Take back what a user has said, so that the defaults of the purposes hold",
		func(ctx context.Context, c *client.Client, user string) (api.Consents, error) {
			return c.Profiles().ForgetConsents(ctx, user)
		})
	cmd.Example = "  affinity consent forget ann"
	return cmd
}

func showConsentCommand(t *command.Tool) *cobra.Command {
	cmd := consentsOf(t, "show USER", "Show which purposes a user grants",
		func(ctx context.Context, c *client.Client, user string) (api.Consents, error) {
			return c.Profiles().Consents(ctx, user)
		})
	cmd.Example = "  affinity consent show ann"
	return cmd
}

// consentsOf is a command that sends one request about a user's consents and shows the answer.
func consentsOf(t *command.Tool, use, short string,
	do func(context.Context, *client.Client, string) (api.Consents, error)) *cobra.Command {
	return command.Show(t, &cobra.Command{
		Use: use, Short: short, Args: command.UserArg,
	}, "consents of %s", func(ctx context.Context, c *client.Client, args []string) (api.Consents, error) {
		return do(ctx, c, args[0])
	}, showConsents)
}

func showConsents(t *command.Tool, c api.Consents) error {
	var b strings.Builder
	for _, p := range c.Purposes {
		fmt.Fprintf(&b, "%s: %s is %s\n", cli.Printable(c.UserToken), cli.Printable(p.Name), purposeWords(p))
	}
	used := map[string][]string{}
	for _, on := range slices.Sorted(maps.Keys(c.Surfaces)) {
		used[c.Surfaces[on]] = append(used[c.Surfaces[on]], on)
	}
	for _, use := range []struct{ of, words string }{
		{"all", "all that is kept of the user is used for"}, {"part", "a part is used for"}, {"none", "nothing is used for"},
	} {
		if on := used[use.of]; len(on) > 0 {
			fmt.Fprintf(&b, "%s %s\n", use.words, cli.Printable(strings.Join(on, ", ")))
		}
	}
	if c.Words != "" {
		fmt.Fprintln(&b, cli.Printable(c.Words))
	}
	_, err := fmt.Fprint(t.Out, b.String())
	return err
}

func purposeWords(p api.UserPurpose) string {
	words := "not granted by default"
	switch {
	case p.Asked && p.Granted:
		words = "granted by the user"
	case p.Asked:
		words = "withdrawn by the user"
	case p.Granted:
		words = "granted by default"
	}
	if p.Since != nil {
		words += " since " + p.Since.UTC().Format(time.RFC3339)
	}
	return words
}
