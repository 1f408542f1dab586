package boost

import (
	"maps"
	"slices"
	"strings"

	"github.com/affinityengine/affinity/shared/fault"
)

// dialect renders for one mode of one engine.
type dialect struct {
	mode string
	// refuse returns the judge of one request: it sees affinities strongest
	// first and returns why the engine cannot express one, or "".
	refuse func(Request) func(term) string
	// query renders at least one term for an impact above 0.
	query func(terms []term, impact int) map[string]any
}

// dialects by engine; the first mode is the default.
var dialects = map[string][]dialect{
	"algolia": {
		{"optionalFilters", algoliaRefuses, optionalFilters},
		{"personalizationFilters", algoliaRefuses, personalizationFilters},
	},
	"elasticsearch": elastic,
	"meilisearch":   {{"personalize", sentenceRefuses, personalize}},
	"minisearch":    {{"boostDocument", each(anything), miniSearch}},
	"opensearch":    elastic,
	"postgres":      {{"expression", each(postgresRefuses), expression}},
	"prompt":        {{"sentence", sentenceRefuses, prompt}},
	"solr":          {{"rerank", each(solrRefuses), rerank}, {"product", each(solrRefuses), product}},
	"typesense":     {{"eval", typesenseRefuses, evalExpression}},
}

// Engines returns the names of all engines, sorted.
func Engines() []string { return slices.Sorted(maps.Keys(dialects)) }

// Modes returns the modes of an engine, its default first; nil for an unknown
// engine.
func Modes(engine string) []string {
	var modes []string
	for _, d := range dialects[engine] {
		modes = append(modes, d.mode)
	}
	return modes
}

// Speaks reports whether an engine gets sentences, which ask Request.Spoken.
func Speaks(engine string) bool { return engine == "meilisearch" || engine == "prompt" }

// dialect returns what the request asks for, and its mode.
func (r Request) dialect() (dialect, string, error) {
	modes := dialects[r.Engine]
	if modes == nil {
		return dialect{}, "", fault.New(fault.Invalid, "engine must be one of %s", strings.Join(Engines(), ", "))
	}
	if r.Mode == "" {
		return modes[0], modes[0].mode, nil
	}
	for _, d := range modes {
		if d.mode == r.Mode {
			return d, d.mode, nil
		}
	}
	return dialect{}, "", fault.New(fault.Invalid, "mode of %s must be one of %s", r.Engine,
		strings.Join(Modes(r.Engine), ", "))
}

// check refuses numbers out of range and facets without a mapping.
func (r Request) check() error {
	if r.Impact < 0 || r.Impact > MaxImpact {
		return fault.New(fault.Invalid, "impact must be an integer from 0 to %d, got %d", MaxImpact, r.Impact)
	}
	if r.Limit < 1 || r.Limit > MaxLimit {
		return fault.New(fault.Invalid, "limit must be an integer from 1 to %d, got %d", MaxLimit, r.Limit)
	}
	for _, facet := range slices.Sorted(maps.Keys(r.FieldMap)) { // the same fault is reported every time
		switch {
		case facet == "":
			return fault.New(fault.Invalid, "fieldMap has an entry without a facet")
		case r.FieldMap[facet] == "":
			return fault.New(fault.Invalid, "fieldMap has no field for the facet %q", facet)
		case r.Fields != nil && !slices.Contains(r.Fields, facet):
			return fault.New(fault.Invalid, "fieldMap names the facet %q, which fields leaves out", facet)
		}
	}
	return nil
}

// each makes a judge of affinities one by one.
func each(refuse func(term) string) func(Request) func(term) string {
	return func(Request) func(term) string { return refuse }
}

// anything refuses nothing: values and names are JSON strings.
func anything(term) string { return "" }
