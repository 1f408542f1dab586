package backtest

import (
	"cmp"
	"slices"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/rank/ranking"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// Shown is one case in names, for people to read.
type Shown struct {
	User string
	Time int64 // ms
	// History are the objects of the user's earlier instants, each once, in the
	// order of their first instant.
	History  []string
	Relevant []string // what the user turned to
	// Popular is the top list by popularity, and Items the one under the strategy
	// with the reasons.
	Popular []string
	Items   []ranking.Item
}

// Show ranks case i under a valid strategy, as Judge does.
func (c *Cases) Show(i int, s strategy.Strategy) (Shown, error) {
	if err := Check(s); err != nil {
		return Shown{}, err
	}
	in, l := &c.cases[i], c.log
	w := newWorker(c, popular(nil))
	w.findCandidates(in)
	shown := Shown{User: l.users[in.user], Time: in.time, History: l.names(c.history[in.seenStart:in.seenEnd]),
		Relevant: l.names(in.relevant)}
	byPopularity := slices.Clone(w.candidates)
	slices.SortFunc(byPopularity, func(a, b int32) int { return cmp.Compare(c.crowd.rank[a], c.crowd.rank[b]) })
	shown.Popular = l.names(byPopularity[:min(len(byPopularity), c.options.At)])
	shown.Items = ranking.New(s).Rank(c.query(in, w.candidates, s)).Items
	return shown, nil
}

// Query returns what a request for the candidates of case i would rank under a valid
// strategy, and the objects that the user turned to.
func (c *Cases) Query(i int, s strategy.Strategy) (q *ranking.Query, relevant []string, err error) {
	if err := Check(s); err != nil {
		return nil, nil, err
	}
	in := &c.cases[i]
	w := newWorker(c, popular(nil))
	w.findCandidates(in)
	return c.query(in, w.candidates, s), c.log.names(in.relevant), nil
}

// query returns what a request for a case's candidates would rank.
func (c *Cases) query(in *instant, candidates []int32, s strategy.Strategy) *ranking.Query {
	l, full := c.log, s.RankingOrDefault()
	q := &ranking.Query{Now: in.time, Limit: c.options.At, Explain: true,
		Frequencies: &ranking.Frequencies{Objects: c.crowd.objects, Filters: map[event.Filter]int{}}}
	for i, f := range l.filters {
		q.Frequencies.Filters[f] = int(c.crowd.frequency[i])
	}
	var past, scored []affinity.Event
	scorer := c.compile(s).ranker()
	for _, i := range l.past(in, nil) {
		e := l.scoring(&l.events[i])
		past = append(past, e)
		if s.EventScore(e.Type, e.Name) > 0 {
			scored = append(scored, e)
		}
	}
	slices.Reverse(scored)
	q.Affinities = affinity.Reference(past, s, affinity.Window{Now: in.time}).Affinities
	q.Session = affinity.NewSession(affinity.Compile(s), scored[:min(len(scored), affinity.MaxSessionEvents)])
	scorer.walk.to(in)
	scorer.addSession(in)
	for _, a := range scorer.past {
		n := ranking.Neighbours{Past: ranking.Past{ObjectID: l.objects[a.object], Last: a.last, Age: a.age},
			Events: float64(len(c.crowd.times[a.object]))}
		for kind, list := range n.Lists() {
			p := &c.crowd.links[kind][a.object]
			for k, b := range p.objects {
				*list = append(*list, ranking.Pair{ObjectID: l.objects[b], Count: float64(p.counts[k])})
			}
		}
		q.Neighbours = append(q.Neighbours, n)
	}
	counts, highest := c.crowd.counts(c.cut, full.Popularity.HalfLife.Millis())
	q.HighestCount = highest
	published := l.dates[full.Freshness.Attribute]
	for _, o := range candidates {
		candidate := ranking.Candidate{ObjectID: l.objects[o], Object: ranking.Compile(l.filtersOf(o)), Count: counts[o]}
		if published != nil {
			candidate.Published, candidate.Dated = published.at[o], published.dated[o]
		}
		q.Candidates = append(q.Candidates, candidate)
	}
	return q
}

// scoring returns an event as scoring takes it.
func (l *Log) scoring(e *entry) affinity.Event {
	k := l.kinds[e.kind]
	out := affinity.Event{Time: e.time, Type: k.typ, Name: k.name, Index: l.index, ObjectIDs: l.names(l.objectsOf(e))}
	add := func(filters []event.Filter) {
		for _, f := range filters {
			out.Counts = append(out.Counts, affinity.Count{Facet: f.Facet, Value: f.Value, N: 1})
		}
	}
	for _, o := range l.countedOf(e) {
		add(l.filtersOf(o))
	}
	if e.direct >= 0 {
		for _, f := range l.direct.at(e.direct) {
			add(l.filters[f : f+1])
		}
	}
	return out
}

func (l *Log) filtersOf(o int32) []event.Filter {
	var filters []event.Filter
	for _, f := range l.carried.at(o) {
		filters = append(filters, l.filters[f])
	}
	return filters
}

func (l *Log) names(objects []int32) []string {
	var ids []string
	for _, o := range objects {
		ids = append(ids, l.objects[o])
	}
	return ids
}
