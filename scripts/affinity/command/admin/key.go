package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/operator"
	"github.com/affinityengine/affinity/shared/web/auth"
)

func (a *appTool) keyCommand() *cobra.Command {
	group := cli.Group(&cobra.Command{
		Use:   "key",
		Short: "Add, list, rotate and remove the keys of an app, and make secured keys",
	})
	group.AddCommand(a.addKeyCommand(), a.listKeysCommand(), a.rotateKeyCommand(), a.removeKeyCommand(),
		a.securedKeyCommand())
	group.PersistentFlags().StringVar(&a.kmsKey, "kms-key", "",
		"Cloud KMS key of parents, on a deployed engine: terraform output -raw parents_kms_key")
	return group
}

// keyFlags are the attributes of a new key as they were given.
type keyFlags struct {
	validity
	name, description      string
	region                 string
	acl, indexes, referers []string
	perAddress             int
	parent, hashTokens     bool
}

func (f *keyFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringSliceVar(&f.acl, "acl", nil, "permissions of the key: "+strings.Join(auth.All, ", "))
	flags.StringVar(&f.name, "name", "", "name of the key, by which it is rotated and removed")
	flags.StringVar(&f.description, "description", "", "text for people")
	f.validity.add(flags)
	flags.StringSliceVar(&f.indexes, "indexes", nil,
		"indexes that the key is for; * stands for any characters (default: all)")
	flags.StringSliceVar(&f.referers, "referers", nil,
		"pages that the key is for, such as https://*.shop.example/* (default: all, and servers)")
	flags.BoolVar(&f.parent, "parent", false, "make the key a parent of secured keys")
	flags.BoolVar(&f.hashTokens, "hash-tokens", false,
		"put a hash in the place of each id of a user in calls of SDKs, such as an e-mail address")
	flags.StringVar(&f.region, "in", "", "region in which users begin whose first event comes with the key, by affinity app "+
		"residency --rule key")
	flags.IntVar(&f.perAddress, "per-address", 0, "requests a minute that one address may send, 0 for no limit")
}

// key returns a key with the attributes, without its hash.
func (f *keyFlags) key(now time.Time) (config.Key, error) {
	if err := checkACL(f.acl); err != nil {
		return config.Key{}, err
	}
	if i := slices.IndexFunc(f.acl, func(permission string) bool {
		return !slices.Contains(auth.ParentPermissions,
			permission)
	}); f.parent && i >= 0 {
		return config.Key{}, fmt.Errorf("--parent: a parent cannot have the permission %s, only %s: no other route "+
			"takes secured keys",
			f.acl[i], strings.Join(auth.ParentPermissions, ", "))
	}
	if f.hashTokens && !slices.Equal(f.acl, []string{auth.Search}) {
		return config.Key{}, errors.New("--hash-tokens: such a key is for calls of SDKs alone, so give it --acl search " +
			"and no other permission")
	}
	key := config.Key{
		ACL: f.acl, CreatedAt: now, Name: f.name, Description: f.description, Indexes: f.indexes,
		Referers: f.referers, AddressRate: f.perAddress, HashTokens: f.hashTokens,
		Region: f.region,
	}
	var err error
	if key.ValidUntil, err = f.end(now); err != nil {
		return key, err
	}
	checked := key
	checked.Hash = auth.Hash("")
	_, err = checked.Prepare()
	return key, err
}

// validity says when a key ends, as it was given.
type validity struct {
	validUntil string
	validFor   time.Duration
}

func (v *validity) add(flags *pflag.FlagSet) {
	flags.DurationVar(&v.validFor, "valid-for", 0, "how long the key is valid, such as 720h (default: without an end)")
	flags.StringVar(&v.validUntil, "valid-until", "", "when the key ends, such as 2026-11-21T10:00:00Z")
}

// end returns when the key ends; the zero value: never.
func (v *validity) end(now time.Time) (time.Time, error) {
	switch {
	case v.validFor != 0 && v.validUntil != "":
		return time.Time{}, errors.New("--valid-for and --valid-until both say when the key ends: give one of them")
	case v.validFor < 0:
		return time.Time{}, fmt.Errorf("--valid-for %v: must be positive", v.validFor)
	case v.validFor > 0:
		return now.Add(v.validFor), nil
	case v.validUntil == "":
		return time.Time{}, nil
	}
	ms, err := event.ParseDate(v.validUntil)
	if err != nil {
		return time.Time{}, fmt.Errorf("--valid-until %q: %w", v.validUntil, err)
	}
	until := time.UnixMilli(ms).UTC()
	if !until.After(now) {
		return time.Time{}, fmt.Errorf("--valid-until %s has passed", v.validUntil)
	}
	return until, nil
}

func (a *appTool) addKeyCommand() *cobra.Command {
	f := &keyFlags{}
	cmd := &cobra.Command{
		Use:   "add ID --acl PERMISSIONS",
		Short: "Add a key to an app",
		Long: "Add a key to an app. The key is printed once and stored as a hash only. A key for web pages gets the permission search\n" +
			"alone: it can send events and nothing else.\n\n" +
			"The command waits until the engine takes the key, as `affinity app create` does.\n\n" +
			"With --parent your server can make secured keys of the key, each for one user, for a time or for some indexes: see\n" +
			"\"Secured keys\" in functions/docs/reference/keys.md. The text of a parent is stored too, encrypted by Cloud KMS.\n" +
			"Never put a parent into a web page: with its text anybody can make a key of every user.\n\n" +
			"With --hash-tokens the calls of SDKs of Segment and RudderStack may come with any ids of users: the " +
			"user token is the\nbase64url of the SHA-256 of userId or anonymousId, also of one that is a token. Who reads " +
			"profiles or deletes users\ncomputes it too: see \"Ids that are no tokens\" in\nfunctions/docs/reference/segment-sdks.md.",
		Example: "  affinity app key add shop --name web --acl search --referers 'https://*.shop.example/*'\n" +
			"  affinity app key add shop --name loader --acl addObject,settings --indexes 'products*' --valid-for 720h\n" +
			"  affinity app key add shop --name segment --acl search --indexes products --hash-tokens " +
			"--project my-project\n" +
			"  affinity app key add shop --name server --acl search --parent",
		Args: cli.Args("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			key, err := f.key(time.Now())
			if err != nil {
				return cli.Usagef("%v", err)
			}
			return a.withApp(cmd, args[0], func(s engine) error { return a.addNamed(cmd.Context(), s, args[0], key, f.parent) })
		},
	}
	f.add(cmd)
	return cmd
}

// withApp is with for an app that must exist.
func (a *appTool) withApp(cmd *cobra.Command, id string, do func(engine) error) error {
	if err := checkID(id); err != nil {
		return cli.Usagef("%v", err)
	}
	return a.with(cmd, func(s engine) error {
		if _, err := s.App(cmd.Context(), id); err != nil {
			return fmt.Errorf("read app %s: %w", id, missingApp(err))
		}
		return do(s)
	})
}

// addNamed adds a key whose name no other key has.
func (a *appTool) addNamed(ctx context.Context, s engine, id string, key config.Key, parent bool) error {
	if key.Name != "" {
		same, err := keysNamed(ctx, s, id, key.Name)
		if err != nil {
			return err
		}
		if len(same) > 0 {
			return fmt.Errorf("app %s has a key %s: to replace it run `affinity app key rotate %s %s`", id, key.Name, id,
				key.Name)
		}
	}
	text, err := addKey(ctx, s, id, key, parent)
	if err != nil {
		return err
	}
	a.awaitKeys(ctx, s, id, text)
	if parent {
		fmt.Fprintln(a.Err, neverInAPage)
	}
	fmt.Fprintf(a.Err, "a new key of app %s with the permissions %s; it is printed only once:\n", id,
		strings.Join(key.ACL, ","))
	_, err = fmt.Fprintln(a.Out, text)
	return err
}

const neverInAPage = "this key is a parent of secured keys: keep it on your server and never put it into a web page"

// addKey gives an app a new key with the attributes, and returns its text.
func addKey(ctx context.Context, s engine, id string, key config.Key, parent bool) (string, error) {
	text := auth.NewKey()
	key.Hash, key.Parent = auth.Hash(text), nil
	put := s.PutKey
	if parent {
		put = func(ctx context.Context, id string, key config.Key) error { return s.AddParent(ctx, id, key, text) }
	}
	if err := put(ctx, id, key); err != nil {
		return "", fmt.Errorf("add a key to app %s: %w", id, err)
	}
	return text, nil
}

// keysNamed returns the keys of an app with that name, newest first.
func keysNamed(ctx context.Context, s operator.Store, id, name string) ([]config.Key, error) {
	keys, err := s.Keys(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("list the keys of app %s: %w", id, err)
	}
	keys = slices.DeleteFunc(keys, func(k config.Key) bool { return k.Name != name })
	slices.SortStableFunc(keys, func(a, b config.Key) int { return b.CreatedAt.Compare(a.CreatedAt) })
	return keys, nil
}

func (a *appTool) removeKeyCommand() *cobra.Command {
	name := ""
	cmd := &cobra.Command{
		Use:   "remove ID HASH | remove ID --name NAME",
		Short: "Revoke a key; it stops working within 5 seconds",
		Long: "Revoke a key. HASH is its hash, or the first 12 digits of it, by which the audit log and the " +
			"console name keys.",
		Example: "  affinity app key remove shop --name web\n  affinity app key remove shop 3f1c09ab27de",
		Args:    cobra.MaximumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return cli.Usagef("ID is missing: affinity app key %s", cmd.Use)
			case (len(args) == 2) == (name != ""):
				return cli.Usagef("give either the HASH of the key or its --name: affinity app key list %s shows both", args[0])
			case name != "":
				return a.withApp(cmd, args[0], func(s engine) error { return a.removeNamed(cmd.Context(), s, args[0], name) })
			}
			return a.withApp(cmd, args[0], func(s engine) error { return a.removeKey(cmd.Context(), s, args[0], args[1]) })
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "name of the key")
	return cmd
}

// removeNamed revokes the one key with that name.
func (a *appTool) removeNamed(ctx context.Context, s operator.Store, id, name string) error {
	keys, err := keysNamed(ctx, s, id, name)
	if err != nil {
		return err
	}
	switch len(keys) {
	case 0:
		return fmt.Errorf("app %s has no key %s (affinity app key list %s shows all)", id, cli.Printable(name), id)
	case 1:
		return a.removeKey(ctx, s, id, keys[0].Hash)
	}
	lines := make([]string, len(keys))
	for i, k := range keys {
		lines[i] = describeKey(k, time.Now(), "")
	}
	return fmt.Errorf("app %s has %d keys %s, remove one by its hash:\n%s", id, len(keys), name, strings.Join(lines, "\n"))
}

func (a *appTool) removeKey(ctx context.Context, s operator.Store, id, hash string) error {
	keys, err := s.Keys(ctx, id)
	if err != nil {
		return fmt.Errorf("list the keys of app %s: %w", id, err)
	}
	keys = slices.DeleteFunc(keys, func(k config.Key) bool {
		return k.Hash != hash && (len(hash) < len(k.ID()) || !strings.HasPrefix(k.Hash, hash))
	})
	switch len(keys) {
	case 0:
		return fmt.Errorf("app %s has no key with the hash %s (affinity app key list %s shows all)", id,
			cli.Printable(hash), id)
	case 1:
	default:
		return fmt.Errorf("app %s has %d keys whose hashes begin with %s: give the whole hash (affinity app key "+
			"list %s shows all)", id, len(keys), cli.Printable(hash), id)
	}
	if err := s.DeleteKey(ctx, id, keys[0].Hash); err != nil && !errors.Is(err, config.ErrNotFound) {
		return fmt.Errorf("remove a key of app %s: %w", id, err)
	}
	fmt.Fprintln(a.Out, "the key is revoked: it stops working within 5 seconds")
	return nil
}

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
		Example: "  affinity app key rotate shop web\n  affinity app key rotate shop web --overlap 0s",
		Args:    cli.Args("ID", "NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if remains < 0 {
				return cli.Usagef("--overlap %v: must not be negative", remains)
			}
			return a.withApp(cmd, args[0], func(s engine) error {
				return a.rotateKey(cmd.Context(), s, args[0], args[1],
					remains)
			})
		},
	}
	cmd.Flags().DurationVar(&remains, "overlap", remains,
		"how long the old key stays valid, such as 24h; 0s ends it within 5 seconds")
	return cmd
}

// rotateKey adds a key and lets all others of its name end. A rotation that was
// interrupted may be repeated.
func (a *appTool) rotateKey(ctx context.Context, s engine, id, name string, remains time.Duration) error {
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
	a.awaitKeys(ctx, s, id, text)
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
				return fmt.Errorf("the new key works, but the old one %s did not get an end, run the command again: %w",
					k.Hash, err)
			}
		}
		fmt.Fprintf(a.Err, "the old key %s ends at %s\n", k.Hash, k.ValidUntil.UTC().Format(time.RFC3339))
	}
	return nil
}
