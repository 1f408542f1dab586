package measure

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"

	"github.com/affinityengine/affinity/functions/rank"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/rank/crowd"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/strategy"
	"github.com/affinityengine/affinity/shared/store"
)

const (
	// shopFacets is the number of facets of an object, one value each.
	shopFacets = 5
	// rankedEvents is the number of events of the ranked user.
	rankedEvents = 500
	// shopDate is the attribute with the date of an object.
	shopDate       = "publishedAt"
	shopGeneration = "g1"
)

// rankShop is a catalog whose objects have a value of each facet.
type rankShop struct {
	random  *rand.Rand
	values  int // of a facet
	objects []store.Object
}

// newRankShop returns a shop of so many objects, whose facets have so many values
// together.
func newRankShop(values, objects int) *rankShop {
	s := &rankShop{random: rand.New(rand.NewPCG(seed, 0)), values: values / shopFacets}
	for i := range objects {
		o := store.Object{ID: fmt.Sprintf("product-%06d", i)}
		record := map[string]any{"objectID": o.ID, shopDate: window.Now - int64(s.random.IntN(windowDays))*dayMS}
		for f := range shopFacets {
			value := fmt.Sprintf("%s %02d", facetNames[f], s.random.IntN(s.values))
			record[facetNames[f]] = value
			o.Filters.Filters = append(o.Filters.Filters, event.Filter{Facet: facetNames[f], Value: value})
		}
		o.Record, _ = json.Marshal(record) // texts and a number
		s.objects = append(s.objects, o)
	}
	return s
}

func (s *rankShop) strategy() strategy.Strategy {
	all := strategy.Strategy{EventsScoring: kinds, HalfLives: strategy.InDays(halfLife), PersonalizationImpact: 50}
	for f := range shopFacets {
		all.FacetsScoring = append(all.FacetsScoring, strategy.FacetScore{FacetName: facetNames[f], Score: 100 - 10*f})
	}
	return all
}

// freshVersion is the version of freshStrategy, which is set first.
const freshVersion = 1

// freshStrategy ranks by the dates of objects too.
func (s *rankShop) freshStrategy() strategy.Strategy {
	all, ranking := s.strategy(), strategy.DefaultRanking()
	ranking.Freshness = strategy.FullFreshness{Attribute: shopDate, HalfLife: strategy.Days(halfLife), Weight: 50}
	all.Ranking = ranking.Ranking()
	return all
}

// load stores the catalog, its statistics, and the events of the ranked user,
// which name every value.
func (s *rankShop) load(ctx context.Context, to *store.Store, b rank.Backends) error {
	if err := to.Catalog.PutObjects(ctx, appID, rankIndex, s.objects); err != nil {
		return err
	}
	if err := s.loadStatistics(ctx, to); err != nil {
		return err
	}
	app, err := b.Config.App(ctx, appID)
	if err != nil {
		return fmt.Errorf("read the app: %w", err)
	}
	var events []store.LogEvent
	for i := range rankedEvents {
		kind, o := kinds[i%len(kinds)], s.objects[s.random.IntN(len(s.objects))]
		e := store.LogEvent{
			User: rankedUser, Time: window.Now - int64(i+1)*3_600_000, ID: fmt.Sprintf("%011d", i), Type: kind.EventType,
			Name:  kind.EventName,
			Index: rankIndex, ObjectIDs: []string{o.ID}, Original: []byte("{}"),
		}
		for f, filter := range o.Filters.Filters {
			filter.Value = fmt.Sprintf("%s %02d", facetNames[f], i%s.values)
			e.Counts = append(e.Counts, affinity.Count{Facet: filter.Facet, Value: filter.Value, N: 1})
		}
		events = append(events, e)
	}
	profiles := profile.New(b.Store, b.Config, b.CachedConfig, b.Now, b.Log)
	if _, err := profiles.Import(ctx, app, events); err != nil {
		return fmt.Errorf("import events: %w", err)
	}
	if _, err := profiles.Fold(ctx, app, rankedUser); err != nil {
		return fmt.Errorf("fold events: %w", err)
	}
	return nil
}

// loadStatistics stores statistics with the most pairs that an object can have.
func (s *rankShop) loadStatistics(ctx context.Context, to *store.Store) error {
	w := to.Crowd.NewCrowdWriter(ctx, store.CrowdRef{App: appID, Index: rankIndex, Generation: shopGeneration})
	var counts []crowd.Counted
	frequencies := map[event.Filter]int{}
	for i, o := range s.objects {
		counts = append(counts, crowd.Counted{ObjectID: o.ID, Count: float64(i%100) + 1})
		crowd.CountFilters(frequencies, o.Filters.Filters)
		x := crowd.Object{Events: 1000}
		for n := range min(crowd.Best, len(s.objects)-1) {
			x.Links[crowd.Follows] = append(x.Links[crowd.Follows],
				crowd.Pair{ObjectID: s.objects[(i+n*n+1)%len(s.objects)].ID, Count: int64(100 - n)})
		}
		if err := w.Object(o.ID, x.AppendBinary(nil)); err != nil {
			return err
		}
	}
	var cells [][]byte
	for cell := range crowd.PackCounts(counts) {
		cells = append(cells, cell)
	}
	if err := w.Counts(0, cells); err != nil {
		return err
	}
	n := 0
	for cell := range crowd.PackFrequencies(frequencies) {
		if err := w.Frequencies(n, cell); err != nil {
			return err
		}
		n++
	}
	if err := w.Flush(); err != nil {
		return err
	}
	m := crowd.Manifest{Current: crowd.Generation{Name: shopGeneration, AsOf: window.Now, Objects: len(s.objects),
		Share: 1}}
	_, err := crowd.SwapManifest(ctx, to.Crowd, appID, rankIndex, nil, m)
	return err
}

// request names candidates: each call others, the same for the same i.
func (s *rankShop) request(i, candidates int) api.RankRequest {
	r := api.RankRequest{UserToken: rankedUser, Index: rankIndex}
	for _, n := range rand.New(rand.NewPCG(seed, uint64(i))).Perm(len(s.objects))[:candidates] {
		r.ObjectIDs = append(r.ObjectIDs, s.objects[n].ID)
	}
	return r
}

func (s *rankShop) withRelevancies(i, candidates int) api.RankRequest {
	r := s.request(i, candidates)
	for n, id := range r.ObjectIDs {
		r.Items = append(r.Items, api.RankItem{ID: id,
			Fields: []api.RankField{{Name: api.FieldRelevancy, Value: 20 - float64(n)/100}}})
	}
	r.ObjectIDs = nil
	return r
}

func (s *rankShop) explained(i, candidates int) api.RankRequest {
	r := s.withRelevancies(i, candidates)
	r.Limit, r.Explain = 20, true
	return r
}

func (s *rankShop) fresh(i, candidates int) api.RankRequest {
	r := s.request(i, candidates)
	r.Strategy = freshVersion
	return r
}
