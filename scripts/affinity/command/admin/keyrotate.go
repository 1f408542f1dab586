package admin

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/app/config"
)

// overlap is how long a rotated key stays valid unless its operator says
// otherwise: pages that are open hold the old key.
const overlap = 24 * time.Hour

func (a *appTool) rotateKeyCommand() *cobra.Command {
	remains := overlap
	cmd := &cobra.Command{
		Use:   "rotate ID NAME",
		Short: "Add a key in place of the one with that name, which ends later",
		Long: "Add a key with the name, the permissions and the restrictions of another one, and print it once. The old key ends after\n" +
			"--overlap, in which you put the new key in its place. An old key that was to end earlier still does, and the new key\n" +
			"is valid for as long as the old one was made for. Secured keys of an old parent end with it.",
		Example: "  affinity app key rotate shop web --project my-project\n  affinity app key rotate shop web --overlap 0s --project my-project",
		Args:    cli.Args("ID", "NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if remains < 0 {
				return cli.Usagef("--overlap %v: must not be negative", remains)
			}
			return a.withApp(cmd, args[0], func(s appStore) error { return a.rotateKey(cmd.Context(), s, args[0], args[1], remains) })
		},
	}
	cmd.Flags().DurationVar(&remains, "overlap", remains, "how long the old key stays valid, such as 24h; 0s ends it within 5 seconds")
	return cmd
}

// rotateKey adds a key and lets all others of its name end. A rotation that was
// interrupted may be repeated.
func (a *appTool) rotateKey(ctx context.Context, s appStore, id, name string, remains time.Duration) error {
	now := time.Now()
	old, err := keysNamed(ctx, s, id, name)
	if err != nil {
		return err
	}
	valid := slices.DeleteFunc(slices.Clone(old), func(k config.Key) bool { return k.Ended(now) })
	if len(valid) == 0 {
		return fmt.Errorf("app %s has no valid key %s (affinity app key list %s shows all)", id, cli.Printable(name), id)
	}
	key := valid[0]
	key.CreatedAt = now
	if !key.ValidUntil.IsZero() {
		key.ValidUntil = now.Add(valid[0].ValidUntil.Sub(valid[0].CreatedAt))
	}
	parent := len(key.Parent) > 0
	text, err := addKey(ctx, s, id, key, parent)
	if err != nil {
		return err
	}
	if parent {
		fmt.Fprintln(a.Err, neverInAPage)
	}
	fmt.Fprintf(a.Err, "a new key %s of app %s; it is printed only once:\n", name, id)
	if _, err := fmt.Fprintln(a.Out, text); err != nil {
		return err
	}
	if !key.ValidUntil.IsZero() {
		fmt.Fprintf(a.Err, "the new key ends at %s\n", key.ValidUntil.UTC().Format(time.RFC3339))
	}
	end := now.Add(remains)
	for _, k := range valid {
		if k.ValidUntil.IsZero() || k.ValidUntil.After(end) {
			k.ValidUntil = end
			if err := s.PutKey(ctx, id, k); err != nil {
				return fmt.Errorf("the new key works, but the old one %s did not get an end, run the command again: %w", k.Hash, err)
			}
		}
		fmt.Fprintf(a.Err, "the old key %s ends at %s\n", k.Hash, k.ValidUntil.UTC().Format(time.RFC3339))
	}
	return nil
}
