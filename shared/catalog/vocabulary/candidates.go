package vocabulary

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// minSpelling is how many letters a word needs to be another one misspelled.
	// Shorter ones differ by a letter and mean other things: mug and jug, S and L.
	minSpelling = 6
	// minReplaced is how many letters a word needs where one is replaced by
	// another. Many shorter words differ so: platter and planter, single and jingle.
	minReplaced = 8
	// maxSpelling bounds the letters of values that are compared by spelling: a
	// value has as many deletions as letters.
	maxSpelling = 40
	// minPlural is how many letters a singular needs, and a value that another one is with
	// digits: as is not the plural of a, and A4 is no kind of A.
	minPlural = 3
	// minShared and shareOf: two values stand on mostly the same objects if they
	// share at least minShared, and at least nine tenths of those of either.
	minShared = 5
	// maxTogether bounds the values of an object whose pairs are counted, and
	// maxBlock the values alike after a deletion. Beyond both, the facet is no
	// vocabulary of words, and to compare all pairs would be quadratic.
	maxTogether, maxBlock = 20, 100
)

// pair holds the places of two values, the lower first.
type pair struct{ a, b int }

// pairs holds the surest reason of each pair.
type pairs map[pair]Reason

func (p pairs) add(a, b int, reason Reason) {
	k := pair{min(a, b), max(a, b)}
	if old, ok := p[k]; !ok || reason < old {
		p[k] = reason
	}
}

// candidates returns the pairs of values that may mean the same. Values are
// compared only within blocks of the same normal form, so the time grows with the
// values and not with their pairs.
func candidates(values []value) pairs {
	found := pairs{}
	found.forms(values)
	found.plurals(values)
	found.spellings(values)
	found.together(values)
	found.numbered(values)
	return found
}

// forms pairs the values of one plain form with the most usual one among them.
func (p pairs) forms(values []value) {
	for _, block := range blocks(values, func(v value) string { return v.plain }) {
		best := block[0]
		for _, i := range block {
			if lessUsual(values[best], values[i]) {
				best = i
			}
		}
		to := values[best]
		for _, i := range block {
			switch from := values[i]; {
			case i == best || !from.words:
			case from.unescaped == to.unescaped:
				p.add(i, best, Entities)
			case from.composed == to.composed:
				p.add(i, best, Unicode)
			case from.folded == to.folded:
				p.add(i, best, Case)
			case from.joined == to.joined:
				p.add(i, best, Separators)
			default:
				p.add(i, best, Accents)
			}
		}
	}
}

func blocks(values []value, form func(value) string) map[string][]int {
	m := map[string][]int{}
	for i, v := range values {
		key := form(v)
		m[key] = append(m[key], i)
	}
	return m
}

// plurals pairs values with their plurals. Separators count: size s is not the
// plural of size.
func (p pairs) plurals(values []value) {
	byForm := blocks(values, func(v value) string { return v.spaced })
	for i, v := range values {
		if last, _ := utf8.DecodeLastRuneInString(v.spaced); len(v.letters) < minPlural || !unicode.IsLetter(last) {
			continue
		}
		forms := []string{v.spaced + "s", v.spaced + "es"}
		if stem, ok := strings.CutSuffix(v.spaced, "y"); ok {
			forms = append(forms, stem+"ies")
		}
		for _, form := range forms {
			for _, j := range byForm[form] {
				p.add(i, j, Plural)
			}
		}
	}
}

// spellings pairs values with a word that is one edit apart: one letter replaced,
// missing or swapped with the next. Two such values are equal after at most one deletion in
// each (SymSpell: Garbe, 2012), so only values with a common deletion are compared.
func (p pairs) spellings(values []value) {
	byDeletion := map[string][]int{}
	for i, v := range values {
		if n := len(v.letters); n < minSpelling || n > maxSpelling {
			continue
		}
		for _, d := range deletions(v) {
			byDeletion[d] = append(byDeletion[d], i)
		}
	}
	for _, block := range byDeletion {
		if len(block) > maxBlock {
			continue
		}
		for n, i := range block {
			for _, j := range block[n+1:] {
				a, b := values[i], values[j]
				if a.digits == b.digits && a.plain != b.plain && misspelled(a.spaced, b.spaced) {
					p.add(i, j, Spelling)
				}
			}
		}
	}
}

// deletions returns a value's plain form, and what is left of it without each letter.
func deletions(v value) []string {
	all := []string{v.plain}
	for i := range v.letters {
		all = append(all, string(v.letters[:i])+string(v.letters[i+1:]))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// misspelled reports whether two values differ in one word, of which one is the
// other misspelled.
func misspelled(a, b string) bool {
	as, bs := strings.Fields(a), strings.Fields(b)
	if len(as) != len(bs) {
		return false
	}
	differ, slips := 0, 0
	for i := range as {
		if as[i] == bs[i] {
			continue
		}
		differ++
		if slip([]rune(as[i]), []rune(bs[i])) {
			slips++
		}
	}
	return differ == 1 && slips == 1
}

// slip reports whether one word may be a slip of the pen for another. The first
// letters are equal: people seldom miss these.
func slip(a, b []rune) bool {
	switch {
	case min(len(a), len(b)) < minSpelling, a[0] != b[0], !oneEdit(a, b):
		return false
	case len(a) != len(b) || len(a) >= minReplaced:
		return true
	}
	differ := 0
	for i := range a {
		if a[i] != b[i] {
			differ++
		}
	}
	return differ == 2 // a swap
}

// oneEdit reports whether one replacement, deletion, insertion or swap of
// neighbours makes a into b.
func oneEdit(a, b []rune) bool {
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	switch {
	case len(a)+len(b) == 1, len(a) == 1 && len(b) == 1:
		return true
	}
	return len(a) == 2 && len(b) == 2 && a[0] == b[1] && a[1] == b[0]
}

// together pairs values that mostly the same objects carry.
func (p pairs) together(values []value) {
	byObject := map[int32][]int{}
	for i, v := range values {
		if len(v.objects) < minShared {
			continue
		}
		for _, o := range v.objects {
			byObject[o] = append(byObject[o], i)
		}
	}
	counts := map[pair]int{}
	for _, list := range byObject {
		if len(list) > maxTogether {
			continue
		}
		for n, i := range list {
			for _, j := range list[n+1:] {
				counts[pair{i, j}]++
			}
		}
	}
	for k, n := range counts {
		a, b := values[k.a], values[k.b]
		if n >= minShared && 10*n >= 9*max(len(a.objects), len(b.objects)) && a.words && b.words && a.digits == b.digits {
			p.add(k.a, k.b, Objects)
		}
	}
}

// numbered pairs values that have digits with the value that they are without them.
func (p pairs) numbered(values []value) {
	byForm := blocks(values, func(v value) string { return v.plain })
	for i, v := range values {
		if v.digits == "" {
			continue
		}
		stem := strings.Map(func(r rune) rune {
			if unicode.IsDigit(r) || r == ' ' { // as join leaves between digits
				return -1
			}
			return r
		}, v.plain)
		for _, j := range byForm[stem] {
			if values[j].words && len(values[j].letters) >= minPlural {
				p.add(i, j, Digits)
			}
		}
	}
}
