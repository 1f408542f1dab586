package admin

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/usage"
)

// usesTimeout is how long the list of keys waits for their last uses.
const usesTimeout = 15 * time.Second

func (a *appTool) listKeysCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list ID",
		Short: "List the keys of an app with their names, permissions, restrictions and last uses",
		Long: fmt.Sprintf("List the keys of an app with their names, permissions and restrictions, and the last "+
			"day, in UTC, on which each was used. A\n"+
			"use shows within seconds, and for %d days. A use of a secured key counts for its parent. For a deployed "+
			"engine, last uses\n"+
			"come from the Bigtable table usage; without access to it they are omitted, and the command says so.", usage.Keep),
		Example: "  affinity app key list shop",
		Args:    cli.Args("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withApp(cmd, args[0], func(s engine) error { return a.listKeys(cmd.Context(), s, args[0]) })
		},
	}
	a.JSONFlag(cmd, command.JSONUsage)
	return cmd
}

// listedKey is a key as the list prints it in JSON.
type listedKey struct {
	Name        string    `json:"name"`
	Hash        string    `json:"hash"`
	ACL         []string  `json:"acl"`
	Description string    `json:"description"`
	Indexes     []string  `json:"indexes"`
	Referers    []string  `json:"referers"`
	AddressRate int       `json:"addressRate"`
	HashTokens  bool      `json:"hashTokens"`
	Region      string    `json:"region,omitempty"`
	Parent      bool      `json:"parent"`
	CreatedAt   time.Time `json:"createdAt"`
	ValidUntil  time.Time `json:"validUntil,omitzero"`
}

func printKeys(out io.Writer, keys []config.Key) error {
	listed := make([]listedKey, len(keys))
	for i, k := range keys {
		listed[i] = listedKey{k.Name, k.Hash, k.ACL, k.Description, k.Indexes, k.Referers, k.AddressRate,
			k.HashTokens, k.Region, len(k.Parent) > 0, k.CreatedAt.UTC(), k.ValidUntil.UTC()}
	}
	return cli.PrintJSON(out, map[string]any{"keys": listed})
}

func (a *appTool) listKeys(ctx context.Context, s engine, id string) error {
	keys, err := s.Keys(ctx, id)
	if err != nil {
		return fmt.Errorf("list the keys of app %s: %w", id, err)
	}
	slices.SortStableFunc(keys, func(a, b config.Key) int { return strings.Compare(a.Name, b.Name) })
	if a.JSON {
		return printKeys(a.Out, keys)
	}
	uses := func(config.Key) string { return "" }
	if len(keys) > 0 {
		uses = a.lastUses(ctx, s, id)
	}
	for _, key := range keys {
		fmt.Fprintln(a.Out, describeKey(key, time.Now(), uses(key)))
	}
	if len(keys) == 0 {
		fmt.Fprintf(a.Err, "app %s has no keys: add one with `affinity app key add %s --acl ...`\n", id, id)
	}
	return nil
}

// lastUses returns what to say of a key's last use. If the uses cannot be read it
// says so once, and of no key anything.
func (a *appTool) lastUses(ctx context.Context, s operations, id string) func(config.Key) string {
	ctx, cancel := context.WithTimeout(ctx, usesTimeout)
	defer cancel()
	days, err := s.LastUsed(ctx, id)
	if err != nil {
		fmt.Fprintf(a.Err, "the last uses of the keys cannot be read: %s\n", cli.Printable(err.Error()))
		return func(config.Key) string { return "" }
	}
	return func(key config.Key) string {
		if day, ok := days[key.Hash]; ok {
			return "used " + day.String()
		}
		return "not used"
	}
}

// describeKey is the line of a key in a list. used says when the key was used, "" if
// that is not known.
func describeKey(key config.Key, now time.Time, used string) string {
	name := key.Name
	if name == "" {
		name = "(no name)"
	}
	parts := []string{name, key.Hash, strings.Join(key.ACL, ","), "created " + key.CreatedAt.UTC().Format(time.RFC3339)}
	if used != "" {
		parts = append(parts, used)
	}
	if !key.ValidUntil.IsZero() {
		ends := "ends "
		if key.Ended(now) {
			ends = "ended "
		}
		parts = append(parts, ends+key.ValidUntil.UTC().Format(time.RFC3339))
	}
	if key.HashTokens {
		parts = append(parts, "hashes tokens")
	}
	if len(key.Parent) > 0 {
		parts = append(parts, "parent")
	}
	if len(key.Indexes) > 0 {
		parts = append(parts, "indexes "+strings.Join(key.Indexes, ","))
	}
	if len(key.Referers) > 0 {
		parts = append(parts, "referers "+strings.Join(key.Referers, ","))
	}
	if key.AddressRate > 0 {
		parts = append(parts, fmt.Sprintf("%d requests a minute from an address", key.AddressRate))
	}
	if key.Description != "" {
		parts = append(parts, fmt.Sprintf("%q", key.Description))
	}
	return strings.Join(parts, "  ")
}
