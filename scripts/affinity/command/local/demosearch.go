package local

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/affinityengine/affinity/scripts/affinity/render"
	"github.com/affinityengine/affinity/scripts/affinity/shop"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/local/simulate"
)

const (
	demoQuery      = "yellow runner" // what the two people search for
	demoAffinities = 3               // affinities in a boost
	demoHits       = 5               // hits shown of each engine
)

// searchEngine is an engine that the demo shows a boost for.
type searchEngine struct {
	name string
	// fragment is what to show of a boost's query.
	fragment func(query map[string]any) (string, error)
	order    func([]simulate.Document, map[string]any) ([]simulate.Hit, error)
}

var searchEngines = []searchEngine{
	{
		name:     "elasticsearch",
		fragment: func(query map[string]any) (string, error) { return compact(query["query"]) },
		order: func(docs []simulate.Document, query map[string]any) ([]simulate.Hit, error) {
			return simulated(simulate.FunctionScore, docs, query["query"])
		},
	},
	{
		name:     "typesense",
		fragment: func(query map[string]any) (string, error) { return fmt.Sprintf("sort_by=%v", query["sort_by"]), nil },
		order: func(docs []simulate.Document, query map[string]any) ([]simulate.Hit, error) {
			return simulated(simulate.Typesense, docs, query)
		},
	},
}

func compact(v any) (string, error) {
	text, err := json.Marshal(v)
	return string(text), err
}

func simulated(by func([]simulate.Document,
	[]byte) ([]simulate.Hit, error), docs []simulate.Document, query any) ([]simulate.Hit, error) {
	text, err := compact(query)
	if err != nil {
		return nil, err
	}
	return by(docs, []byte(text))
}

// matches are the products whose names have a word of the query. The text score is
// the number of such words.
func (d *demo) matches(query string) (docs []simulate.Document, names map[string]string) {
	names = map[string]string{}
	for _, o := range d.shop.Objects() {
		text := 0.0
		for _, word := range strings.Fields(query) {
			if strings.Contains(" "+strings.ToLower(o.Name)+" ", " "+word+" ") {
				text++
			}
		}
		if text == 0 {
			continue
		}
		doc := simulate.Document{ID: o.ObjectID, Text: text, Facets: map[string][]string{}}
		for _, f := range o.Filters() {
			doc.Facets[f.Facet] = append(doc.Facets[f.Facet], f.Value)
		}
		docs, names[o.ObjectID] = append(docs, doc), o.Name
	}
	return docs, names
}

// search prints what GET /1/boosts adds to one search for each of the two people
// in the syntax of two search engines, and the orders that follow.
func (d *demo) search(ctx context.Context) error {
	docs, names := d.matches(demoQuery)
	unboosted, err := simulate.Typesense(docs, []byte("{}"))
	if err != nil {
		return fmt.Errorf("order the products by text: %w", err)
	}
	d.print("")
	d.print("%s for %q in the syntax of two engines: GET /1/boosts adds what a person likes",
		d.colors.Bold("one search"), demoQuery)
	d.print("(%d products match, with a text score of one for each word in the name. Neither engine runs here:", len(docs))
	d.print("the orders are those of an engine that applies this fragment as its documentation says.)")
	for _, id := range shownPersonas {
		d.print("")
		d.print("%s searches:", d.colors.Bold("the "+id))
		found := render.SearchResults{Names: names}
		found.Add("by text alone", "", unboosted[:demoHits])
		for _, e := range searchEngines {
			fragment, hits, err := d.boosted(ctx, e, shop.UserToken(id, 0), docs)
			if err != nil {
				return err
			}
			found.Add(e.name, fragment, hits[:demoHits])
		}
		if err := render.Search(d.t.Out, found); err != nil {
			return fmt.Errorf("print the search of %s: %w", id, err)
		}
	}
	return nil
}

// boosted is what a boost adds to a search with an engine, and the order then.
func (d *demo) boosted(ctx context.Context, e searchEngine, user string,
	docs []simulate.Document) (string, []simulate.Hit, error) {
	b, err := d.c.Boost(ctx, user, api.BoostQuery{Engine: e.name, Limit: demoAffinities})
	if err != nil {
		return "", nil, fmt.Errorf("read the boost of %s for %s: %w", user, e.name, err)
	}
	fragment, err := e.fragment(b.Query)
	if err != nil {
		return "", nil, fmt.Errorf("print the boost for %s: %w", e.name, err)
	}
	hits, err := e.order(docs, b.Query)
	if err != nil {
		return "", nil, fmt.Errorf("order the products as %s does: %w", e.name, err)
	}
	return fragment, hits, nil
}
