package linkpreview

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/judge/preview"
	"github.com/affinityengine/affinity/shared/profile/links"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/serve/ranker"
	"github.com/affinityengine/affinity/shared/store"
)

const (
	// comparedObjects is how many objects are ranked for each user.
	comparedObjects = 100
	// maxUserEvents is how many events a user of the sample may have with all their tokens.
	maxUserEvents = 100_000
)

// sampleMemory bounds the values of a user of the sample above freeMemory, which each of the two profiles may have.
var (
	sampleMemory = affinity.Hold{Values: 400_000, Bytes: 64 << 20}
	freeMemory   = affinity.Hold{Values: 20_000, Bytes: 4 << 20}
)

// orders compares, for a sample of the users who would be linked, the order of objects by their own events with that
// by the events of their tokens as well. It returns nil if there is nothing to order by, or nobody to compare.
func (t *task) orders(ctx context.Context, jobID string, run *links.DryRun) (*api.LinkPreviewOrders, error) {
	intervals := map[string][]store.UserRange{} // of the tokens of each user
	for token, entries := range run.Linked() {
		for _, e := range entries {
			intervals[e.Known] = append(intervals[e.Known], store.UserRange{User: token, From: history.Pos{Time: e.Since},
				To: history.Pos{Time: min(e.To, t.params.AsOf.UnixMilli()+1)}})
		}
	}
	if len(intervals) == 0 || t.app.StrategyVersion == 0 {
		return nil, nil
	}
	index, candidates, err := ranker.SampleCandidates(ctx, t.Store.Catalog, t.app.ID, comparedObjects)
	if err != nil || len(candidates) == 0 {
		return nil, err
	}
	compared := newComparison(t, preview.NewRanked(t.app.Strategy, t.app.Strategy, candidates))
	defer compared.share.Close()
	for _, known := range sample(jobID, intervals) {
		if !t.Now().Before(t.until) {
			break // the counts say of how many users they are
		}
		if err := t.checkSchema(ctx); err != nil {
			return nil, err
		}
		if err := compared.add(ctx, known, intervals[known]); err != nil {
			return nil, err
		}
	}
	o := compared.ranked.Orders()
	return &api.LinkPreviewOrders{Users: o.Compared, Index: index, Objects: len(candidates), Changed: o.Changed,
		TopTenChanged: o.TopTen, TopChanged: o.TopOne}, nil
}

// sample chooses users at random: the same ones in each attempt of a job.
func sample(jobID string, of map[string][]store.UserRange) []string {
	seed := fnv.New64a()
	_, _ = seed.Write([]byte(jobID))
	users := make([]string, 0, len(of))
	for user := range of {
		users = append(users, user)
	}
	slices.Sort(users)
	chance := rand.New(rand.NewPCG(seed.Sum64(), 0))
	chance.Shuffle(len(users), func(i, j int) { users[i], users[j] = users[j], users[i] })
	return users[:min(len(users), api.MaxLinkPreviewUsers)]
}

// comparison compares the orders of users.
type comparison struct {
	*task
	ranked      *preview.Ranked
	compiled    *affinity.Compiled
	events      *store.LogScorer
	share       *affinity.Share
	own, linked *affinity.Scorer
}

func newComparison(t *task, ranked *preview.Ranked) *comparison {
	c := affinity.Compile(t.app.Strategy)
	w := affinity.Window{Now: t.params.AsOf.UnixMilli(), RetentionDays: t.app.RetentionDays}
	n := &comparison{task: t, ranked: ranked, compiled: c, events: store.NewLogScorer(c),
		share: affinity.NewMemory(sampleMemory, freeMemory).Share(),
		own:   affinity.NewScorer(c, w), linked: affinity.NewScorer(c, w)}
	n.own.Hold(n.share)
	n.linked.Hold(n.share)
	return n
}

// errLeftOut ends the reading of a user whom the sample leaves out.
var errLeftOut = errors.New("the user has too many events, or a damaged one")

// add compares the orders of a user. It leaves out one with too many events or values, or a damaged event.
func (c *comparison) add(ctx context.Context, known string, tokens []store.UserRange) error {
	w := affinity.Window{Now: c.params.AsOf.UnixMilli(), RetentionDays: c.app.RetentionDays}
	c.own.Reset(w)
	c.linked.Reset(w)
	ranges := append([]store.UserRange{{User: known, To: history.Pos{Time: w.Now + 1}}}, tokens...)
	n, log := 0, c.Store.In(c.app.Region).Events.Log(c.app.ID, c.app.Log)
	err := log.ReadFor(ctx, ranges, c.compiled, func(user string, row store.LogRow) error {
		n++
		if n > maxUserEvents || user == known && c.events.Score(row, c.own) != nil || c.events.Score(row, c.linked) != nil {
			return errLeftOut
		}
		return nil
	})
	if errors.Is(err, errLeftOut) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the events of a user and of their tokens: %w", err)
	}
	if c.own.Full() || c.linked.Full() {
		return nil
	}
	own, linked := c.own.Profile(), c.linked.Profile()
	now := max(own.Anchor, linked.Anchor)
	c.ranked.Add(own.At(now), linked.At(now))
	return nil
}
