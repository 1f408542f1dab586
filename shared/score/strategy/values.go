package strategy

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// placeholders are the ignored values of a strategy that gives none: those that Algolia's
// Advanced Personalization documents, and the one that Google Analytics reports for no
// value. A filter with an empty value does not exist.
var placeholders = []string{"not-set", "(not set)", "{}", "unknown", "***", "-", "none", "n/a", "null"}

// IgnoredOrDefault returns the values that score nothing in any facet.
func (s Strategy) IgnoredOrDefault() []string {
	if s.IgnoredValues == nil {
		return placeholders
	}
	return s.IgnoredValues
}

// sameIgnored reports whether two strategies give the same ignored values.
func sameIgnored(a, b Strategy) bool {
	return (a.IgnoredValues == nil) == (b.IgnoredValues == nil) && slices.Equal(a.IgnoredValues, b.IgnoredValues)
}

// Ignores reports whether a value, after aliases, is one of the ignored values. Letters
// match in upper and lower case.
func (s Strategy) Ignores(value string) bool { return ignored(s.IgnoredOrDefault(), value) }

// Allows reports whether a value of a facet, after aliases, is one of the facet's allowed
// values, or the facet has no list of them.
func (s Strategy) Allows(facet, value string) bool { return allowed(s.AllowedValues[facet], value) }

func ignored(list []string, value string) bool {
	return slices.ContainsFunc(list, func(ignored string) bool { return strings.EqualFold(ignored, value) })
}

func allowed(list ValueSet, value string) bool {
	_, listed := list[value]
	return listed || len(list) == 0
}

// Rule says which values of a facet score. It is immutable.
type Rule struct {
	ignored *ignoredList
	allowed ValueSet
}

// Rule returns the rule of a facet.
func (s Strategy) Rule(facet string) Rule {
	r := Rule{ignored: placeholderList, allowed: s.AllowedValues[facet]}
	if s.IgnoredValues != nil {
		r.ignored = newIgnoredList(s.IgnoredValues)
	}
	return r
}

// Scores reports whether a value, after aliases, scores: it is not ignored, and allowed.
func (r *Rule) Scores(value string) bool {
	return allowed(r.allowed, value) && (value == "" || !r.ignored.begin[value[0]] || !ignored(r.ignored.values, value))
}

// ScoresBytes is Scores. It allocates nothing for a value that is not allowed.
func (r *Rule) ScoresBytes(value []byte) bool {
	if _, listed := r.allowed[string(value)]; !listed && len(r.allowed) > 0 {
		return false
	}
	return len(value) == 0 || !r.ignored.begin[value[0]] || !ignored(r.ignored.values, string(value))
}

// ignoredList are ignored values with the bytes by which they, and what equals them, begin:
// most values begin otherwise.
type ignoredList struct {
	values []string
	begin  [256]bool
}

var placeholderList = newIgnoredList(placeholders)

func newIgnoredList(values []string) *ignoredList {
	l := &ignoredList{values: values}
	for _, v := range values {
		first, _ := utf8.DecodeRuneInString(v)
		l.begin[string(first)[0]] = true
		for r := unicode.SimpleFold(first); r != first; r = unicode.SimpleFold(r) {
			l.begin[string(r)[0]] = true
		}
	}
	return l
}

// ValueSet is a set of values of a facet. Its JSON is a list, which is written sorted.
type ValueSet map[string]struct{}

// SetOf returns the set of some values.
func SetOf(values ...string) ValueSet {
	set := make(ValueSet, len(values))
	for _, v := range values {
		set[v] = struct{}{}
	}
	return set
}

// MarshalJSON writes the values as a sorted list.
func (v ValueSet) MarshalJSON() ([]byte, error) { return json.Marshal(slices.Sorted(maps.Keys(v))) }

// UnmarshalJSON reads a list of values.
func (v *ValueSet) UnmarshalJSON(b []byte) error {
	var list []string
	if err := json.Unmarshal(b, &list); err != nil {
		return err
	}
	*v = SetOf(list...)
	return nil
}
