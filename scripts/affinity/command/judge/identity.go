package judge

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/scripts/affinity/importer"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/judge/backtest"
	"github.com/affinityengine/affinity/shared/profile/links"
	"github.com/affinityengine/affinity/shared/profile/view"
)

// signIns are the events of files that say who had signed in under a token.
type signIns []importer.SignIn

func (s *signIns) add(one importer.SignIn) { *s = append(*s, one) }

// run links the tokens as an engine would with the default lookback. A file does not say with which keys its
// events came, so all evidence is taken as strong.
func (s signIns) run() *links.DryRun {
	slices.SortFunc(s, func(a, b importer.SignIn) int {
		return cmp.Or(cmp.Compare(a.Time, b.Time), strings.Compare(a.UserToken, b.UserToken), strings.Compare(a.ID, b.ID))
	})
	run := links.NewDryRun(config.DefaultLookback)
	for _, e := range slices.Compact(s) {
		run.Take(e.UserToken, links.Evidence{Known: e.AuthenticatedUserToken, Time: e.Time, Receipt: e.Time, By: e.ID})
	}
	return run
}

// judge judges the strategies of a report once more, by persons.
func (s signIns) judge(ctx context.Context, t *command.Tool, report *backtest.Report,
	given []backtest.Given) (*api.BacktestIdentity, error) {
	run := s.run()
	var all []backtest.Link
	for token, entries := range run.Linked() {
		for _, e := range entries {
			all = append(all, backtest.Link{User: token, Known: e.Known, Since: e.Since, To: e.To, From: e.From})
		}
	}
	bar := cli.NewProgress(t.Err)
	defer bar.Finish()
	identity, err := report.Linked(ctx, given, all, func(what string) { bar.Set("judging "+what, 0) })
	identity.LinkCounts = view.Links(run)
	return &identity, err
}
