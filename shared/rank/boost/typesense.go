package boost

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

const (
	// typesenseClauses is how many clauses an expression has at most. Typesense
	// evaluates each of them over the whole collection for every query.
	typesenseClauses = 64
	// typesenseTerms leaves half of the clauses to conjunctions.
	typesenseTerms = 32
	// typesenseValue is the maximum length of a value in bytes: up to half of the
	// clauses repeat it.
	typesenseValue = 256
)

// evalExpression orders documents by an expression of Typesense. The first
// clause that matches gives the score, and nothing adds scores up. So the
// strongest affinities stand in every combination of one value a facet, with
// the sum of their weights, highest first. The weaker ones that would make more
// than 64 clauses stand alone.
//
// The text score comes first, in buckets. Fewer buckets leave more of the order
// to the affinities: that is the impact. At 100 the expression comes first.
func evalExpression(terms []term, impact int) map[string]any {
	clauses := conjunctions(terms)
	var s strings.Builder
	s.Grow(60 * len(clauses))
	eval := func() {
		s.WriteString("_eval([")
		for i, c := range clauses {
			if i > 0 {
				s.WriteByte(',')
			}
			c.write(&s, terms)
		}
		s.WriteString("]):desc")
	}
	if impact == MaxImpact {
		eval()
		s.WriteString(",_text_match:desc")
	} else {
		s.WriteString("_text_match(buckets:" + buckets(impact) + "):desc,")
		eval()
	}
	return map[string]any{"sort_by": s.String()}
}

// buckets is the nearest of three steps: 50 at 25 percent, 20 at 50, 10 at 75.
func buckets(impact int) string {
	switch {
	case impact < 38:
		return "50"
	case impact < 63:
		return "20"
	}
	return "10"
}

// clause is a conjunction of terms, by their indexes, strongest first.
type clause struct {
	terms []int
	total int // parts of unit
}

func (c clause) write(s *strings.Builder, terms []term) {
	s.WriteByte('(')
	for i, n := range c.terms {
		if i > 0 {
			s.WriteString(" && ")
		}
		terms[n].writeCondition(s)
	}
	s.WriteString("):")
	s.WriteString(strconv.Itoa(c.total))
}

// writeCondition writes what a document of the term fulfils.
func (t term) writeCondition(s *strings.Builder) {
	if t.numbers == nil {
		s.WriteString(t.field + ":=`" + t.value + "`")
		return
	}
	for i, e := range t.numbers.ends() {
		if i > 0 {
			s.WriteString(" && ")
		}
		s.WriteString(t.field + ":" + e.compare + e.digits())
	}
}

// conjunctions returns the clauses of an expression by total, highest first.
// Of two with one total the longer one comes first, then the one with stronger
// terms.
func conjunctions(terms []term) []clause {
	clauses := make([]clause, 1, typesenseClauses+1) // the first one is empty
	combined := combinable(terms)
	var facets []string
	for i := range combined {
		if facet := terms[i].facet; !slices.Contains(facets, facet) {
			facets = append(facets, facet)
		}
	}
	for _, facet := range facets {
		for _, c := range clauses { // those of the facets before
			for i, t := range terms[:combined] {
				if t.facet == facet {
					with := append(slices.Clip(slices.Clone(c.terms)), i)
					slices.Sort(with)
					clauses = append(clauses, clause{with, c.total + t.weight})
				}
			}
		}
	}
	for i := combined; i < len(terms); i++ {
		clauses = append(clauses, clause{[]int{i}, terms[i].weight})
	}
	clauses = clauses[1:]
	slices.SortFunc(clauses, func(a, b clause) int {
		return cmp.Or(b.total-a.total, len(b.terms)-len(a.terms), slices.Compare(a.terms, b.terms))
	})
	return clauses
}

// combinable returns how many of the strongest terms stand in conjunctions, so
// that all clauses together are within the bound.
func combinable(terms []term) int {
	counts, product := map[string]int{}, 1
	for i, t := range terms {
		n := counts[t.facet] + 1
		product = product / n * (n + 1)
		if product-1+len(terms)-i-1 > typesenseClauses {
			return i
		}
		counts[t.facet] = n
	}
	return len(terms)
}

// fieldName matches names that need no escape in Typesense and Solr, which have
// none.
var fieldName = regexp.MustCompile(`^[\pL_][\pL\pN_.-]*$`)

// geoLike matches what Typesense reads as a position, also within backticks: the
// parenthesis would then not end with the value.
var geoLike = regexp.MustCompile(`: *(\[ *)?\(`)

// paired reports whether each parenthesis of a value has its pair. Typesense up to 29.0 counts
// them in backticks too, to find the end of a clause.
func paired(value string) bool {
	open := 0
	for i := range len(value) {
		switch value[i] {
		case '(':
			open++
		case ')':
			open--
		}
		if open < 0 {
			return false
		}
	}
	return open == 0
}

func typesenseRefuses(Request) func(term) string {
	kept := 0
	return func(t term) string {
		switch {
		case t.typeless():
			return textOfNumbers
		case !fieldName.MatchString(t.field) || t.field == "id":
			return "a field name that Typesense reads as something else, and that has no escape"
		case strings.Contains(t.value, "`"):
			return "a value with a backtick has no escape"
		case strings.Contains(t.value, "\x00"):
			return "Typesense ends a text at a NUL character"
		case len(t.value) > typesenseValue:
			return "a value of more than 256 bytes: clauses repeat it"
		case !strings.ContainsFunc(t.value, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }):
			return "a value without a letter or a digit: Typesense compares words, and refuses an empty list of them"
		case strings.HasSuffix(t.value, "*") || strings.HasSuffix(t.value, `\`):
			return "a value that ends in * or \\ may be read as a prefix or an escape"
		case geoLike.MatchString(t.value):
			return "a value with :( would be read as a position"
		case !paired(t.value):
			return "a parenthesis without its pair: Typesense up to 29.0 would end the clause there"
		case kept == typesenseTerms:
			return "beyond the 32 affinities that fit into 64 clauses"
		}
		kept++
		return ""
	}
}
