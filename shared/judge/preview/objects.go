package preview

import (
	"github.com/affinityengine/affinity/shared/rank/ranking"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// Ranked compares the orders of the same objects under two strategies, user by user. The
// objects differ in what the profile makes of them alone: a session, and statistics of an
// index, are the same under both.
type Ranked struct {
	before, after *ranking.Ranker
	candidates    []ranking.Candidate
	orders        Orders
}

// NewRanked returns a comparison without users.
func NewRanked(before, after strategy.Strategy, candidates []ranking.Candidate) *Ranked {
	return &Ranked{before: ranking.New(before), after: ranking.New(after), candidates: candidates}
}

// Add compares the orders for a user, whose profiles are as of one instant. A user who is
// not known is left out.
func (r *Ranked) Add(before, after affinity.Profile) {
	if after.Known && len(r.candidates) > 0 {
		r.orders.add(r.order(r.before, before), r.order(r.after, after))
	}
}

func (r *Ranked) order(ranker *ranking.Ranker, p affinity.Profile) []int {
	result := ranker.Rank(&ranking.Query{Now: p.Anchor, Affinities: p.Affinities, Candidates: r.candidates})
	order := make([]int, len(result.Items))
	for i, item := range result.Items {
		order[i] = item.Candidate
	}
	return order
}

// Orders counts the users whose order of the objects changes.
func (r *Ranked) Orders() Orders { return r.orders }
