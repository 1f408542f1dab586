package backtest

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// What a facet must be like to be the category of the objects.
const (
	minCategories, maxCategories = 2, 200
	categoryShare                = 95 // percent of the objects that carry a value which another one carries too
	perCategory                  = 4  // objects of a value, on average
)

// stems begin the words that name a category, and priceStems those that name a
// price.
var (
	stems = []string{"categor", "kategor", "catégor", "department", "section", "rubri", "genre", "warengruppe",
		"produktgruppe", "productgroup", "producttype", "abteilung", "rayon"}
	phrases    = []string{"product type", "product group", "item group"}
	priceStems = []string{"price", "preis", "prix", "precio"}
	level      = regexp.MustCompile(`^(.*)\.lvl(\d)$`)
)

// Category returns the facet that is most likely what pages of the shop list
// objects by, or "" if no facet looks like that. It goes by the catalog and by
// names alone, never by what users did, so it cannot pick the facet that
// flatters a figure.
//
// A facet qualifies if it has 2 to 200 values, at least 4 objects a value, and
// 95 % of the objects carry a value that another one carries too. Of those that
// qualify, the first of these wins:
//
//  1. a level of a hierarchy, such as categories.lvl1: the deepest one, because
//     a page shows the narrowest list;
//  2. a facet whose first or last word says category, department, section,
//     genre, product type or the like, such as main_category;
//  3. a facet whose name says price: bands of prices are no category, but pages
//     and searches are narrowed by them, and they say little of taste.
//
// Of several alike it is the one with the most values, then the first by name.
// Any other facet, such as a brand, would be a guess: it may be the very taste
// that a profile holds, and a list within it would leave nothing to rank.
func (l *Log) Category() string {
	type candidate struct {
		name                string
		tier, level, values int
	}
	var found []candidate
	seen := map[string]bool{}
	for _, f := range l.filters {
		if seen[f.Facet] {
			continue
		}
		seen[f.Facet] = true
		if tier, level := tierOf(f.Facet); tier > 0 {
			if values, ok := l.groups(f.Facet); ok {
				found = append(found, candidate{f.Facet, tier, level, values})
			}
		}
	}
	if len(found) == 0 {
		return ""
	}
	return slices.MinFunc(found, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.tier, b.tier), cmp.Compare(b.level, a.level), cmp.Compare(b.values, a.values),
			cmp.Compare(a.name, b.name))
	}).name
}

// groups returns how many values of a facet objects carry, and whether it groups nearly all of
// them.
func (l *Log) groups(facet string) (values int, ok bool) {
	of, err := l.valuesOf(facet)
	if err != nil {
		return 0, false // only events name it
	}
	carry, share := 0, 0
	for o := range l.objects {
		own := of.of.at(int32(o))
		if len(own) > 0 {
			carry++
		}
		if slices.ContainsFunc(own, func(v int32) bool { return len(of.having.at(v)) > 1 }) {
			share++
		}
	}
	values = len(of.names)
	return values, values >= minCategories && values <= maxCategories && carry >= perCategory*values &&
		100*share >= categoryShare*len(l.objects)
}

// standsIn reports whether a facet is no category but bands of a price, which
// stand in for one.
func standsIn(facet string) bool {
	tier, _ := tierOf(facet)
	return tier == 3
}

// tierOf returns the number of the rule of Category by which a name may be one,
// 0 if none, and the level of a hierarchy.
func tierOf(name string) (tier, depth int) {
	if m := level.FindStringSubmatch(name); m != nil {
		return 1, int(m[2][0] - '0')
	}
	words := wordsOf(name)
	begins := func(word string, stems []string) bool {
		return slices.ContainsFunc(stems, func(stem string) bool { return strings.HasPrefix(word, stem) })
	}
	text := strings.Join(words, " ")
	switch {
	case len(words) == 0:
	case begins(words[0], stems), begins(words[len(words)-1], stems), slices.Contains(phrases, text):
		return 2, 0
	case slices.ContainsFunc(words, func(w string) bool { return begins(w, priceStems) }):
		return 3, 0
	}
	return 0, 0
}

// wordsOf splits a name at what is no letter, and before capitals.
func wordsOf(name string) []string {
	var b strings.Builder
	lower := false
	for _, r := range name {
		switch {
		case !unicode.IsLetter(r):
			b.WriteByte(' ')
		case unicode.IsUpper(r) && lower:
			b.WriteString(" " + string(unicode.ToLower(r)))
		default:
			b.WriteRune(unicode.ToLower(r))
		}
		lower = unicode.IsLower(r)
	}
	return strings.Fields(b.String())
}
