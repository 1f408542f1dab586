package boost

import (
	"strconv"
	"strings"
)

// rerankDocs is how many of the best documents Solr reranks.
const rerankDocs = "200"

// rerank blends: Solr scales text and profile to 0..1 among the best documents,
// and adds impact / 100 x profile to the text. Below them, the text decides.
func rerank(terms []term, impact int) map[string]any {
	return map[string]any{
		"rq": "{!rerank reRankQuery=$rqq reRankDocs=" + rerankDocs + " reRankWeight=" + decimal(impact, MaxImpact) +
			" reRankScale=0-1 reRankMainScale=0-1}",
		"rqq": constantScores(terms),
	}
}

// product multiplies the text score by the factor. The parameter boost is one
// of the parser edismax.
func product(terms []term, impact int) map[string]any {
	return map[string]any{
		"boost": "sum(1,product(" + decimal(impact, MaxImpact) + ",min(1,query($aff,0))))",
		"aff":   constantScores(terms),
	}
}

// constantScores returns clauses field:"value"^=weight. A document's score is
// the sum of the weights that match: ^= replaces the score of a term, whose
// frequencies would leak into the affinity otherwise. The prefix makes the
// clauses alternatives, whatever operator the request sets.
func constantScores(terms []term) string {
	var s strings.Builder
	s.Grow(40 * len(terms))
	s.WriteString("{!lucene q.op=OR}")
	for i, t := range terms {
		if i > 0 {
			s.WriteByte(' ')
		}
		s.WriteString(t.field)
		s.WriteString(`:"`)
		s.WriteString(solrEscapes.Replace(t.value))
		s.WriteString(`"^=`)
		s.WriteString(decimal(t.weight, unit))
	}
	return s.String()
}

// solrEscapes escapes what ends a quoted value. Solr replaces ${name} by another
// parameter before it parses, except after a backslash, which the parser then
// takes away.
var solrEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, `$`, `\$`)

// decimal returns part / of in digits: Solr's grammar has no exponents.
func decimal(part, of int) string {
	return strconv.FormatFloat(float64(part)/float64(of), 'f', -1, 64)
}

func solrRefuses(t term) string {
	switch {
	case !fieldName.MatchString(t.field):
		return "a field name that Solr reads as something else"
	case t.field == "_query_" || t.field == "_val_":
		return "Solr parses the values of this field as queries"
	case t.field == "AND" || t.field == "OR" || t.field == "NOT":
		return "a field name that is an operator"
	case t.value == "":
		return "an empty value matches nothing"
	}
	return ""
}
