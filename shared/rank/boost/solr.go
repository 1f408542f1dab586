package boost

import (
	"strconv"
	"strings"
)

const (
	// rerankDocs is how many of the best documents Solr reranks.
	rerankDocs = "200"
	// everyDocument gives all documents the same small score.
	everyDocument = "*:*^=0.000001"
)

// rerank blends: Solr scales text and profile to 0..1 among the best documents,
// and adds impact / 100 x profile to the text. Below them, the text decides.
//
// Solr scales the scores of the documents that rqq matches, so that the weakest
// of them gets 0. So rqq matches every document, and a document that no affinity
// matches gets 0. The scale removes a common factor of the scores. They hold the
// impact all the same: Solr's cache of results compares rqq and not reRankWeight,
// and would return the order of another impact.
func rerank(terms []term, impact int) map[string]any {
	return map[string]any{
		"rq": "{!rerank reRankQuery=$rqq reRankDocs=" + rerankDocs + " reRankWeight=" + percent(impact) +
			" reRankScale=0-1 reRankMainScale=0-1}",
		"rqq": constantScores(terms, impact) + " " + everyDocument,
	}
}

// product multiplies the text score by the factor. The parameter boost is one
// of the parser edismax.
func product(terms []term, impact int) map[string]any {
	return map[string]any{
		"boost": "sum(1,product(" + percent(impact) + ",min(1,query($aff,0))))",
		"aff":   constantScores(terms, MaxImpact),
	}
}

// constantScores returns clauses field:"value"^=score, where score is impact / 100
// x weight. A document's score is the sum of the scores that match: ^= replaces
// the score of a term, whose frequencies would leak into the affinity otherwise.
// The prefix makes the clauses alternatives, whatever operator the request sets.
func constantScores(terms []term, impact int) string {
	var s strings.Builder
	s.Grow(40 * len(terms))
	s.WriteString("{!lucene q.op=OR}")
	for i, t := range terms {
		if i > 0 {
			s.WriteByte(' ')
		}
		s.WriteString(t.field)
		if t.numbers != nil {
			s.WriteString(solrRange(*t.numbers))
		} else {
			s.WriteString(`:"`)
			s.WriteString(solrEscapes.Replace(t.value))
			s.WriteByte('"')
		}
		s.WriteString("^=")
		s.WriteString(strconv.FormatFloat(t.scaled(impact), 'f', -1, 64)) // Solr's grammar has no exponents
	}
	return s.String()
}

// solrRange returns a range that includes its first number and not its last.
func solrRange(r Range) string {
	from, below, last := "*", "*", "]"
	for _, e := range r.ends() {
		if e.compare == ">=" {
			from = e.digits()
		} else {
			below, last = e.digits(), "}"
		}
	}
	return ":[" + from + " TO " + below + last
}

// percent returns impact / 100 in digits.
func percent(impact int) string {
	return strconv.FormatFloat(float64(impact)/MaxImpact, 'f', -1, 64)
}

// solrEscapes escapes what ends a quoted value. Solr replaces ${name} by another
// parameter before it parses, except after a backslash, which the parser then
// takes away.
var solrEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, `$`, `\$`)

func solrRefuses(t term) string {
	switch {
	case t.typeless():
		return textOfNumbers
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
