package console

import (
	"errors"
	"fmt"

	"github.com/affinityengine/affinity/shared/api"
)

// boostEngine is a search engine for which the page shows a boost.
type boostEngine struct {
	Key, Name, Where string
}

// boostEngines are in the order of the tabs. Where says what to do with the query, as the page of
// the engine in functions/docs/guides/engines does in detail.
var boostEngines = []boostEngine{
	{"algolia", "Algolia", "Put these parameters beside the others of a search."},
	{"elasticsearch", "Elasticsearch", "Wrap your query: it goes into query.function_score.query of this body."},
	{"opensearch", "OpenSearch", "Wrap your query: it goes into query.function_score.query of this body."},
	{"typesense", "Typesense", "Put sort_by beside the other parameters of a search, sent with POST /multi_search."},
	{"solr", "Solr", "Put rq and rqq beside the other parameters of a search."},
	{"meilisearch", "Meilisearch", "Put personalize beside the other parameters of a search. Personalization " +
		"must be turned on."},
	{"postgres", "PostgreSQL", "Multiply the score of your statement by the expression. Its parameters come " +
		"before your own."},
	{"minisearch", "MiniSearch", "Give these data to the function boostDocument of the page about MiniSearch."},
	{"prompt", "Language model", "Put the sentence into the user's part of the prompt, before their question, " +
		"and never into the system's part."},
}

// boosted is a person's profile in the syntax of a search engine.
type boosted struct {
	Engine  boostEngine
	Query   string // JSON
	Text    string // the sentence of a prompt
	Empty   bool
	NoneDue bool // the impact leaves out a profile
	Dropped []api.DroppedAffinity
	More    int // dropped, beyond those that are listed
	Refused string
}

// Engines are the tabs.
func (*boosted) Engines() []boostEngine { return boostEngines }

// maxDropped is how many affinities are listed that a query leaves out.
const maxDropped = 20

// boost reads the person's boost for the chosen engine. The page goes on without it.
func (s *simulation) boost(v *visit) error {
	b, f := &boosted{NoneDue: s.Person.Known && s.Form.Impact == 0}, s.Form
	s.Boost = b
	for _, e := range boostEngines {
		if e.Key == f.Engine {
			b.Engine = e
		}
	}
	answer, err := v.engine.Boost(v.Context(), f.Token(),
		api.BoostQuery{Engine: f.Engine, Impact: &f.Impact, HalfLife: f.halfLife(s.Strategy)})
	if refusal, ok := errors.AsType[*api.Error](err); ok {
		b.Refused = refusal.Message
		return nil
	}
	if err != nil {
		return fmt.Errorf("render a boost: %w", err)
	}
	b.Query, b.Empty = jsonLines(answer.Query), len(answer.Query) == 0
	b.Text, _ = answer.Query["prompt"].(string)
	b.Dropped = answer.Dropped[:min(len(answer.Dropped), maxDropped)]
	b.More = len(answer.Dropped) - len(b.Dropped)
	return nil
}
