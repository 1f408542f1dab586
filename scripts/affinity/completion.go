package main

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/score/schema"
)

// lister lists values of an engine that an argument or a flag can have, if they begin with
// what is typed already. The shell drops those that do not.
type lister func(ctx context.Context, c *client.Client, typed string) ([]string, error)

// argumentsOf are the listers of commands' arguments, by the words behind affinity.
var argumentsOf = map[string]lister{
	"feed show": feedNames, "feed set": feedNames, "feed delete": feedNames, "feed read": feedNames,
	"segment show": segmentNames, "segment save": segmentNames, "segment delete": segmentNames,
	"segment export":  segmentNames,
	"experiment show": experimentNames, "experiment start": experimentNames, "experiment stop": experimentNames,
	"experiment promote": experimentNames,
	"recompute watch":    recomputeIDs, "recompute cancel": recomputeIDs, "reenrich cancel": reenrichIDs,
	"backtest cancel":  backtestIDs,
	"strategy restore": strategyVersions, "strategy diff": strategyVersions,
	"profile": userTokens, "explain": userTokens, "boosts": userTokens, "export": userTokens,
	"user delete": userTokens, "recompute user": userTokens,
	"optout show": userTokens, "optout set": userTokens, "optout clear": userTokens,
	"consent show": userTokens, "consent set": userTokens, "consent forget": userTokens, "events send": userTokens,
}

// completeValues makes the shells complete the arguments and flags of all commands.
func completeValues(t *command.Tool, cmd *cobra.Command) {
	_, path, _ := strings.Cut(cmd.CommandPath(), " ")
	if list := argumentsOf[path]; list != nil {
		cmd.ValidArgsFunction = completeBy(t, list)
	}
	of := map[string]cobra.CompletionFunc{
		"context": t.CompleteContexts,
		"output":  cobra.FixedCompletions(command.Outputs, cobra.ShellCompDirectiveNoFileComp),
		"facet":   completeBy(t, facetNames),
		"schema": cobra.FixedCompletions([]string{string(schema.Narrow), string(schema.Wide)},
			cobra.ShellCompDirectiveNoFileComp),
		"to": cobra.FixedCompletions([]string{string(schema.Narrow), string(schema.Wide)},
			cobra.ShellCompDirectiveNoFileComp), // of schema start
		"encoding": cobra.FixedCompletions([]string{string(schema.JSON), string(schema.Compact)},
			cobra.ShellCompDirectiveNoFileComp),
		"type": cobra.FixedCompletions([]string{api.EventView, api.EventClick, api.EventConversion},
			cobra.ShellCompDirectiveNoFileComp),
	}
	for name, complete := range of {
		if cmd.Flag(name) != nil && (name != "to" || path == "schema start") {
			_ = cmd.RegisterFlagCompletionFunc(name,
				complete) // fails only if there is one already: a child has the flags of all commands above it
		}
	}
	for _, child := range cmd.Commands() {
		completeValues(t, child)
	}
}

// completeBy asks the engine. It completes nothing if that fails.
func completeBy(t *command.Tool, list lister) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		const none = cobra.ShellCompDirectiveNoFileComp
		if t.Complete(cmd.Flags().Changed) != nil || t.FromContext(cmd.Flags().Changed) != nil {
			return nil, none
		}
		c, err := t.Client()
		if err != nil {
			return nil, none
		}
		parent := cmd.Context()
		if parent == nil {
			parent = context.Background()
		}
		ctx, cancel := context.WithTimeout(parent, command.CompletionWait)
		defer cancel()
		values, err := list(ctx, c.WithRetry(client.NoRetry), typed)
		if err != nil {
			return nil, none
		}
		return values, none
	}
}

func feedNames(ctx context.Context, c *client.Client, _ string) ([]string, error) {
	answer, err := c.Feeds().List(ctx)
	return each(answer.Feeds, func(f api.FeedDefinition) string { return f.Name }), err
}

func segmentNames(ctx context.Context, c *client.Client, _ string) ([]string, error) {
	answer, err := c.Segments().List(ctx)
	return each(answer.Segments, func(s api.Segment) string { return s.Name }), err
}

func experimentNames(ctx context.Context, c *client.Client, _ string) ([]string, error) {
	answer, err := c.Experiments().List(ctx)
	return each(answer.Experiments, func(e api.Experiment) string { return e.Name }), err
}

func recomputeIDs(ctx context.Context, c *client.Client, _ string) ([]string, error) {
	answer, err := c.Jobs().Recomputes(ctx)
	return each(answer.Recomputes, func(r api.Recompute) string { return r.ID }), err
}

func reenrichIDs(ctx context.Context, c *client.Client, _ string) ([]string, error) {
	answer, err := c.Jobs().Reenrichments(ctx)
	return each(answer.Reenrichments, func(r api.Reenrichment) string { return r.ID }), err
}

func backtestIDs(ctx context.Context, c *client.Client, _ string) ([]string, error) {
	answer, err := c.Jobs().Backtests(ctx)
	return each(answer.Backtests, func(b api.BacktestSummary) string { return b.ID }), err
}

func strategyVersions(ctx context.Context, c *client.Client, _ string) ([]string, error) {
	answer, err := c.Strategies().Versions(ctx)
	return each(answer.Versions, func(v api.StrategyVersion) string { return strconv.FormatInt(v.Version, 10) }), err
}

// userTokens are the first users whose tokens begin with what is typed. The key needs the
// permission admin.
func userTokens(ctx context.Context, c *client.Client, typed string) ([]string, error) {
	answer, err := c.Profiles().Users(ctx, api.UsersQuery{Prefix: typed, Limit: completions})
	return each(answer.Users, func(u api.ListedUser) string { return u.UserToken }), err
}

// completions is how many users a shell offers.
const completions = 50

// facetNames are the facets that the strategy scores, or has aliases of.
func facetNames(ctx context.Context, c *client.Client, _ string) ([]string, error) {
	s, err := c.Strategies().Get(ctx)
	names := slices.Collect(maps.Keys(s.Aliases))
	for _, f := range s.FacetsScoring {
		names = append(names, f.FacetName)
	}
	slices.Sort(names)
	return slices.Compact(names), err
}

// each returns f of each item.
func each[T any](items []T, f func(T) string) []string {
	texts := make([]string, len(items))
	for i, item := range items {
		texts[i] = f(item)
	}
	return texts
}
