package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/auth"
	"github.com/affinityengine/affinity/shared/config"
)

func (a *appTool) keyCommand() *cobra.Command {
	group := cli.Group(&cobra.Command{
		Use:   "key",
		Short: "Add, list and remove the keys of an app",
	})
	group.AddCommand(a.addKeyCommand(), &cobra.Command{
		Use:     "list ID",
		Short:   "List the keys of an app by their hashes",
		Example: "  affinity app key list shop --project my-project",
		Args:    cli.Args("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withApp(cmd, args[0], func(s appStore) error { return a.listKeys(cmd.Context(), s, args[0]) })
		},
	}, &cobra.Command{
		Use:     "remove ID HASH",
		Short:   "Revoke a key; it stops working within 5 seconds",
		Example: "  affinity app key remove shop 3f1c... --project my-project",
		Args:    cli.Args("ID", "HASH"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withApp(cmd, args[0], func(s appStore) error { return a.removeKey(cmd.Context(), s, args[0], args[1]) })
		},
	})
	return group
}

func (a *appTool) addKeyCommand() *cobra.Command {
	var acl []string
	cmd := &cobra.Command{
		Use:   "add ID --acl RIGHTS",
		Short: "Add a key to an app",
		Long: "Add a key to an app. The key is printed once and stored as a hash only. A key for web pages gets the right search\n" +
			"alone: it can send events and nothing else.",
		Example: "  affinity app key add shop --acl search --project my-project",
		Args:    cli.Args("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkACL(acl); err != nil {
				return cli.Usagef("%v", err)
			}
			return a.withApp(cmd, args[0], func(s appStore) error { return a.addKey(cmd.Context(), s, args[0], acl) })
		},
	}
	cmd.Flags().StringSliceVar(&acl, "acl", nil, "rights of the key: "+strings.Join(auth.All, ", "))
	return cmd
}

// withApp is with for an app that must exist.
func (a *appTool) withApp(cmd *cobra.Command, id string, do func(appStore) error) error {
	if err := checkID(id); err != nil {
		return cli.Usagef("%v", err)
	}
	return a.with(cmd, func(s appStore) error {
		if _, err := s.App(cmd.Context(), id); err != nil {
			return fmt.Errorf("read app %s: %w", id, missingApp(err))
		}
		return do(s)
	})
}

func (a *appTool) addKey(ctx context.Context, s appStore, id string, acl []string) error {
	key := auth.NewKey()
	if err := s.PutKey(ctx, id, config.Key{Hash: auth.Hash(key), ACL: acl, CreatedAt: time.Now()}); err != nil {
		return fmt.Errorf("add a key to app %s: %w", id, err)
	}
	fmt.Fprintf(a.err, "a new key of app %s with the rights %s; it is printed only once:\n", id, strings.Join(acl, ","))
	_, err := fmt.Fprintln(a.out, key)
	return err
}

func (a *appTool) listKeys(ctx context.Context, s appStore, id string) error {
	keys, err := s.Keys(ctx, id)
	if err != nil {
		return fmt.Errorf("list the keys of app %s: %w", id, err)
	}
	for _, key := range keys {
		fmt.Fprintf(a.out, "%s  %s  created %s\n", key.Hash, strings.Join(key.ACL, ","), key.CreatedAt.UTC().Format(time.RFC3339))
	}
	if len(keys) == 0 {
		fmt.Fprintf(a.err, "app %s has no keys: add one with `affinity app key add %s --acl ...`\n", id, id)
	}
	return nil
}

func (a *appTool) removeKey(ctx context.Context, s appStore, id, hash string) error {
	keys, err := s.Keys(ctx, id)
	if err != nil {
		return fmt.Errorf("list the keys of app %s: %w", id, err)
	}
	if !slices.ContainsFunc(keys, func(k config.Key) bool { return k.Hash == hash }) {
		return fmt.Errorf("app %s has no key with the hash %s (affinity app key list %s shows all)", id, cli.Printable(hash), id)
	}
	if err := s.DeleteKey(ctx, id, hash); err != nil && !errors.Is(err, config.ErrNotFound) {
		return fmt.Errorf("remove a key of app %s: %w", id, err)
	}
	fmt.Fprintln(a.out, "the key is revoked: it stops working within 5 seconds")
	return nil
}
