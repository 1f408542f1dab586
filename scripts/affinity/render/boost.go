package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/api"
)

// Boost writes a user's profile in the syntax of a search engine: the affinities
// with their weights, the query, what it leaves out and why, and a request to the
// engine that has the query in it.
func Boost(out io.Writer, b api.Boost, colors *Palette) error {
	var text bytes.Buffer
	fmt.Fprintf(&text, "%s  %s %s  strategy version %d%s  impact %d\n", colors.Bold(cli.Printable(b.UserToken)),
		cli.Printable(b.Engine), cli.Printable(b.Mode), b.StrategyVersion, inArm(b.Experiment), b.Impact)
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, a := range b.Affinities {
		fmt.Fprintf(table, "  %.3f\t%s\n", a.Weight, label(api.Affinity{Facet: a.Facet, Value: a.Value}))
	}
	if len(b.Dropped) > 0 {
		fmt.Fprint(table, "\nleft out\n")
	}
	leftOut(table, b.Dropped)
	if err := table.Flush(); err != nil {
		return err
	}
	if len(b.Query) == 0 {
		fmt.Fprint(&text, "\nThe query is empty: the search works as without personalization.\n")
		_, err := out.Write(text.Bytes())
		return err
	}
	query, err := shellJSON(b.Query)
	if err != nil {
		return err
	}
	fmt.Fprintf(&text, "\nthe query, to merge into a search\n%s\n", query)
	search, err := searchWith(b)
	if err != nil {
		return err
	}
	fmt.Fprintf(&text, "\n%s", search)
	_, err = out.Write(text.Bytes())
	return err
}

// maxLeftOut is how many affinities are named of those left out for one reason.
const maxLeftOut = 5

// leftOut writes a line for the first affinities of each reason, and one for the
// number of the others.
func leftOut(table io.Writer, dropped []api.DroppedAffinity) {
	named, of := map[string]int{}, map[string]int{}
	for _, d := range dropped {
		of[d.Reason]++
	}
	for _, d := range dropped {
		if named[d.Reason]++; named[d.Reason] > maxLeftOut {
			continue
		}
		fmt.Fprintf(table, "  %s\t%s\n", label(api.Affinity{Facet: d.Facet, Value: d.Value}), cli.Printable(d.Reason))
		if more := of[d.Reason] - maxLeftOut; named[d.Reason] == maxLeftOut && more > 0 {
			fmt.Fprintf(table, "  and %d more\t%s\n", more, cli.Printable(d.Reason))
		}
	}
}

// sample is a request to a search engine, without a boost. Words in capitals stand
// for what only the reader knows.
type sample struct {
	replace string // the words in capitals
	url     string
	header  string
	// with returns the body of the request with a query in it.
	with func(query map[string]any) any
}

// words stand for what a visitor searches.
const words = "SEARCH WORDS"

// samples by engine; "engine mode" where the mode decides.
var samples = map[string]sample{
	"algolia": {"ALGOLIA_APP, SEARCH_KEY, INDEX",
		"https://ALGOLIA_APP-dsn.algolia.net/1/indexes/INDEX/query?x-algolia-application-id=ALGOLIA_APP",
		"X-Algolia-API-Key: SEARCH_KEY", beside(map[string]any{"query": words})},
	"elasticsearch":              elastic(map[string]any{"query": match}),
	"elasticsearch rank_feature": elastic(mustMatch),
	"elasticsearch function_score": elastic(map[string]any{
		"query": map[string]any{"function_score": map[string]any{"query": match}}}),
	"meilisearch": {"SEARCH_HOST, SEARCH_KEY, INDEX", "https://SEARCH_HOST/indexes/INDEX/search",
		"Authorization: Bearer SEARCH_KEY", beside(map[string]any{"q": words})},
	"prompt": {"LLM_HOST, LLM_KEY, MODEL", "https://LLM_HOST/v1/chat/completions",
		"Authorization: Bearer LLM_KEY", chat},
	"solr": {"SEARCH_HOST, USER_AND_PASSWORD (in base64), COLLECTION, title",
		"https://SEARCH_HOST/solr/COLLECTION/query", "Authorization: Basic USER_AND_PASSWORD", solrParams},
	"typesense": {"SEARCH_HOST, SEARCH_KEY, COLLECTION, title", "https://SEARCH_HOST/multi_search",
		"X-TYPESENSE-API-KEY: SEARCH_KEY", multiSearch},
}

var (
	match     = map[string]any{"match": map[string]any{"title": words}}
	mustMatch = map[string]any{"query": map[string]any{"bool": map[string]any{"must": []any{match}}}}
)

// elastic is a search of Elasticsearch.
func elastic(body map[string]any) sample {
	return sample{"SEARCH_HOST, SEARCH_KEY, INDEX, title", "https://SEARCH_HOST/INDEX/_search",
		"Authorization: ApiKey SEARCH_KEY", beside(body)}
}

// beside merges a query into a body.
func beside(body map[string]any) func(map[string]any) any {
	return func(query map[string]any) any { return merged(body, query) }
}

func multiSearch(query map[string]any) any {
	search := merged(map[string]any{"collection": "COLLECTION", "q": words, "query_by": "title"}, query)
	return map[string]any{"searches": []any{search}}
}

func solrParams(query map[string]any) any {
	return map[string]any{"query": words, "params": merged(map[string]any{"defType": "edismax", "qf": "title"}, query)}
}

func chat(query map[string]any) any {
	return map[string]any{"model": "MODEL", "messages": []any{
		map[string]any{"role": "system", "content": query["prompt"]}, map[string]any{"role": "user", "content": words},
	}}
}

// merged returns a with b in it, deeply. Where both have a value that is not an
// object, that of b counts.
func merged(a, b map[string]any) map[string]any {
	all := make(map[string]any, len(a)+len(b))
	for k, v := range a {
		all[k] = v
	}
	for k, v := range b {
		old, isObject := all[k].(map[string]any)
		if inner, ok := v.(map[string]any); ok && isObject {
			v = merged(old, inner)
		}
		all[k] = v
	}
	return all
}

// libraries say what to do with the query of an engine that no request reaches.
var libraries = map[string]string{
	"minisearch": "MiniSearch runs in the page: shared/rank/boost/README.md has the function that takes this query.\n",
	"postgres": "In SQL: multiply your score by the expression, bind the params in their order, and add your " +
		"own parameters behind them.\n",
}

// searchWith returns a command that sends a search with the query of a boost.
func searchWith(b api.Boost) (string, error) {
	if how, ok := libraries[b.Engine]; ok {
		return how, nil
	}
	engine := b.Engine
	if engine == "opensearch" { // it takes the same, but for the key
		engine = "elasticsearch"
	}
	s, ok := samples[engine+" "+b.Mode]
	if !ok {
		s, ok = samples[engine]
	}
	if !ok {
		return "", nil // an engine that is newer than this tool
	}
	if b.Engine == "opensearch" {
		s.replace, s.header = "SEARCH_HOST, USER_AND_PASSWORD (in base64), INDEX, title",
			"Authorization: Basic USER_AND_PASSWORD"
	}
	body, err := shellJSON(s.with(b.Query))
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("# a search with it: replace %s and %s\ncurl -sS '%s' \\\n  -H 'Content-Type: "+
		"application/json' \\\n  -H '%s' \\\n"+
		"  --data-binary @- <<'END'\n%s\nEND\n", s.replace, words, s.url, s.header, body), nil
}

// shellJSON encodes a value for a person who copies it into a shell, between
// <<'END' and END. There the shell expands nothing, but an interactive one replaces
// words after ! before it looks for quotes. So ! is escaped, and so is all that a
// terminal does not print as it is.
func shellJSON(v any) (string, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(v); err != nil {
		return "", err
	}
	var text strings.Builder
	for _, r := range strings.TrimSuffix(b.String(), "\n") {
		switch {
		case r == '\n' || r != '!' && unicode.IsPrint(r):
			text.WriteRune(r)
		case r > 0xFFFF:
			r -= 0x10000
			fmt.Fprintf(&text, `\u%04x\u%04x`, 0xD800+r>>10, 0xDC00+r&0x3FF)
		default:
			fmt.Fprintf(&text, `\u%04x`, r)
		}
	}
	return text.String(), nil
}
