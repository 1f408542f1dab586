package ranker

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/catalog"
	"github.com/affinityengine/affinity/shared/catalog/where"
	"github.com/affinityengine/affinity/shared/rank/ranking"
	"github.com/affinityengine/affinity/shared/rank/recommend"
	"github.com/affinityengine/affinity/shared/store"
)

const (
	// poolSize is how many objects the model of a recommendation brings in at most.
	poolSize = 1_000
	// likedFilters is how many of a user's filters bring in objects.
	likedFilters = 10
	// fillStep is how many popular objects are looked at in one read.
	fillStep = 200
)

// Recommendation asks for objects. Its Request has no candidates and a Limit.
type Recommendation struct {
	Request
	Model     recommend.Model
	ObjectIDs []string // the given objects, of a model that asks for some
	Exclude   []string // objects that the answer does not have
	Where     where.Condition
}

// Recommended are objects in order.
type Recommended struct {
	Answer
	Sources []string // of the items: what brought each in
	// Strengths are those of the items' links, or trends, from 0 to 1: their relevancies.
	Strengths []float64
	// Links are those that the model took into account: of the given objects that the statistics
	// know, or of the objects of the user's session.
	Links []ranking.Neighbours
}

// Recommend returns the objects that a model brings in, in the order in which Order has
// them: the score of the model is their relevancy, and for-you gives none. Where they are
// fewer than the limit the most popular objects follow, among themselves in the same
// order. The answer holds no given object and none of Exclude. Errors are those of Order.
func (o *Orderer) Recommend(ctx context.Context, app config.App, r Recommendation) (Recommended, error) {
	app, a, err := o.asked(ctx, app, r.Request)
	if err != nil {
		return Recommended{}, err
	}
	in, err := o.readBase(ctx, app, a)
	if err != nil {
		return Recommended{}, err
	}
	links, err := o.linksFor(ctx, app, r, in)
	if err != nil {
		return Recommended{}, err
	}
	pool := recommend.NewPool(r.ObjectIDs, r.Exclude)
	pool.Add(poolSize, recommend.Linked(r.Model, links)...)
	if r.Model == recommend.Trending {
		pool.Add(poolSize, recommend.OfTrends(in.statistics.rising)...)
	}
	if r.Model == recommend.ForYou {
		liked, err := o.statistics.liked(ctx, in.statistics, strongest(&in, likedFilters))
		if err != nil {
			return Recommended{}, err
		}
		pool.Add(poolSize, recommend.From(recommend.Likes, recommend.ListedIDs(liked))...)
		newest, err := o.newest(ctx, in.user.App, r.Index)
		if err != nil {
			return Recommended{}, err
		}
		pool.Add(poolSize+fillStep, recommend.From(recommend.New, newest)...)
	}
	p := &picker{o: o, app: in.user.App, request: r, in: in, pool: pool}
	if err := p.take(ctx, pool.Entries); err != nil {
		return Recommended{}, err
	}
	groups, err := p.fillUp(ctx)
	if err != nil {
		return Recommended{}, err
	}
	in.neighbours = links // the ranking leaves out what has no weight
	if r.Model != recommend.ForYou {
		if in.neighbours, err = o.neighbours(ctx, app, a, &in); err != nil {
			return Recommended{}, err
		}
	}
	answer, err := p.order(ctx, a, in, groups)
	answer.Links = links
	return answer, err
}

// RisingValues returns the values of a facet whose objects rise, as far as these meet the condition, the highest trend
// first. Errors are those of Recommend.
func (o *Orderer) RisingValues(ctx context.Context, app config.App, r Recommendation, facet string) ([]recommend.Value, error) {
	app, err := o.under(ctx, app, r.Request)
	if err != nil {
		return nil, err
	}
	statistics, err := o.statistics.get(ctx, app.ID, r.Index)
	if err != nil {
		return nil, err
	}
	p := &picker{o: o, app: app, request: r, in: input{statistics: statistics}}
	if err := p.take(ctx, recommend.OfTrends(statistics.rising)); err != nil {
		return nil, err
	}
	values := recommend.Values{Facet: facet}
	for _, c := range p.candidates {
		values.Add(c.Object.Filters(), c.Relevancy)
	}
	return values.Sorted(), nil
}

// readBase reads what does not depend on the candidates.
func (o *Orderer) readBase(ctx context.Context, app config.App, a asked) (input, error) {
	var in input
	g, group := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		in.statistics, err = o.statistics.get(group, app.ID, a.Index)
		return err
	})
	err := o.readUser(group, app, a, &in)
	g.Go(func() error { return err })
	return in, g.Wait()
}

// linksFor reads the links that the model asks for: of the given objects, or of those of
// the user's session.
func (o *Orderer) linksFor(ctx context.Context, app config.App, r Recommendation,
	in input) ([]ranking.Neighbours, error) {
	if r.Model.OfObjects() {
		var past []ranking.Past
		for _, id := range r.ObjectIDs {
			if in.statistics.knows(id) {
				past = append(past, ranking.Past{ObjectID: id, Last: true})
			}
		}
		return o.statistics.neighbours(ctx, in.statistics, past)
	}
	if r.Model != recommend.ForYou {
		return nil, nil
	}
	return o.sessionLinks(ctx, app, r.Request, &in, false)
}

// picker collects the candidates of a recommendation.
type picker struct {
	o          *Orderer
	app        config.App // with the strategy that ranks
	request    Recommendation
	in         input
	pool       *recommend.Pool
	candidates []ranking.Candidate
	sources    []string
}

// take makes candidates of those entries that the catalog holds, that meet the condition,
// and that are not left out because the user has seen them.
func (p *picker) take(ctx context.Context, entries []recommend.Entry) error {
	some := make([]ranking.Candidate, 0, len(entries))
	sources := make([]string, 0, len(entries))
	for _, e := range entries {
		if p.request.Seen == ranking.Exclude && p.in.seen[e.ObjectID] {
			continue
		}
		c := ranking.Candidate{ObjectID: e.ObjectID}
		if p.request.Model != recommend.ForYou && e.Score > 0 {
			c.Relevancy, c.HasRelevancy = e.Score, true
		}
		some, sources = append(some, c), append(sources, e.Source)
	}
	if len(some) == 0 {
		return nil
	}
	if err := p.o.objects.fill(ctx, p.app.ID, p.request.Index, dateOf(p.app.Strategy), some); err != nil {
		return err
	}
	numbers, err := p.numbers(ctx, some)
	if err != nil {
		return err
	}
	for i, c := range some {
		if c.Object != nil && p.request.Where.Holds(filtered{c.Object, numbers[c.ObjectID]}) {
			p.candidates, p.sources = append(p.candidates, c), append(p.sources, sources[i])
		}
	}
	return nil
}

// filtered is an object as a condition asks for it.
type filtered struct {
	*ranking.Object
	numbers map[string][]float64
}

// Numbers returns the numbers of an attribute.
func (f filtered) Numbers(attribute string) []float64 { return f.numbers[attribute] }

// numbers reads the numbers that the condition compares, by objectID.
func (p *picker) numbers(ctx context.Context, of []ranking.Candidate) (map[string]map[string][]float64, error) {
	attributes := p.request.Where.Attributes()
	if len(attributes) == 0 {
		return nil, nil
	}
	refs := make([]store.ObjectRef, len(of))
	for i, c := range of {
		refs[i] = store.ObjectRef{Index: p.request.Index, ID: c.ObjectID}
	}
	all := map[string]map[string][]float64{}
	err := p.o.objects.store.Catalog.ScanRecords(ctx, p.app.ID, refs, func(ref store.ObjectRef, record []byte) error {
		numbers := map[string][]float64{} // the record is let go
		for _, a := range attributes {
			numbers[a] = catalog.Numbers(record, a)
		}
		all[ref.ID] = numbers
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read numbers of candidates of %s/%s: %w", p.app.ID, p.request.Index, err)
	}
	return all, nil
}

// Records returns the records of objects that the catalog holds, by objectID.
func (o *Orderer) Records(ctx context.Context, app, index string, ids []string) (map[string][]byte, error) {
	refs, all := make([]store.ObjectRef, len(ids)), make(map[string][]byte, len(ids))
	for i, id := range ids {
		refs[i] = store.ObjectRef{Index: index, ID: id}
	}
	err := o.objects.store.Catalog.ScanRecords(ctx, app, refs, func(ref store.ObjectRef, record []byte) error {
		all[ref.ID] = bytes.Clone(record)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read records of %s/%s: %w", app, index, err)
	}
	return all, nil
}

// fillUp adds popular objects until the limit is reached: for-you takes all of the first
// step, because the ranking chooses among them. Objects of the catalog follow where these are
// too few: objects that have no events yet are not among the popular ones. It returns where
// the groups of candidates end that follow each other in the answer.
func (p *picker) fillUp(ctx context.Context) (groups []int, err error) {
	all := p.request.Model == recommend.ForYou
	if !all {
		groups = append(groups, len(p.candidates))
	}
	// Few of the popular objects may have a filter that the condition asks for: what is
	// popular among those that have it comes first.
	lists, err := p.o.statistics.liked(ctx, p.in.statistics, p.request.Where.Required())
	if err != nil {
		return nil, err
	}
	popular := p.in.statistics.popular
	if listed := recommend.ListedIDs(lists); len(listed) > 0 {
		popular = slices.Concat(listed, popular)
	}
	if err := p.fillWith(ctx, recommend.Popular, popular, all); err != nil {
		return nil, err
	}
	groups = append(groups, len(p.candidates))
	if len(p.candidates) >= p.request.Limit {
		return groups, nil
	}
	ids, err := p.o.lists.of(ctx, listName{indexName{p.app.ID, p.request.Index}, ""})
	if err != nil {
		return nil, err
	}
	err = p.fillWith(ctx, recommend.Catalog, ids, all && len(popular) == 0)
	return append(groups, len(p.candidates)), err
}

// fillWith adds objects of a source until the limit is reached, or all of the first step.
func (p *picker) fillWith(ctx context.Context, source string, ids []string, all bool) error {
	for step := 0; len(ids) > 0; step++ {
		if len(p.candidates) >= p.request.Limit && !(all && step == 0) {
			return nil
		}
		before := len(p.pool.Entries)
		n := min(max(fillStep, p.request.Limit), len(ids))
		p.pool.Add(before+n, recommend.From(source, ids[:n])...)
		if err := p.take(ctx, p.pool.Entries[before:]); err != nil {
			return err
		}
		ids = ids[n:]
	}
	return nil
}

// order orders each group of candidates, until the limit is reached. Without candidates it
// ranks none, so that the answer says what it was made from.
func (p *picker) order(ctx context.Context, a asked, in input, groups []int) (Recommended, error) {
	limit, from := p.request.Limit, 0
	var answer Answer
	for i, to := range groups {
		items := answer.Items
		last := i == len(groups)-1
		if len(items) >= limit || from == to && !(last && from == 0) {
			continue
		}
		a.Candidates, a.Limit = p.candidates[from:to], limit-len(items)
		in.counts = in.statistics.of(a.Candidates)
		part, err := p.o.rank(ctx, a, in)
		if err != nil {
			return Recommended{}, err
		}
		for i := range part.Items {
			part.Items[i].Candidate += from
		}
		answer, from = part, to
		answer.Items = append(items, part.Items...)
	}
	n := len(answer.Items)
	out := Recommended{Answer: answer, Sources: make([]string, n), Strengths: make([]float64, n)}
	for i, item := range answer.Items {
		out.Sources[i], out.Strengths[i] = p.sources[item.Candidate], p.candidates[item.Candidate].Relevancy
	}
	return out, nil
}
