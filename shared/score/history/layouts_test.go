package history_test

import (
	"fmt"

	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/history"
)

// layout is how blocks are built.
type layout struct {
	name string
	*history.Builder
	history.Dictionaries
}

// layouts build blocks without a dictionary and with one of what most users have.
func layouts(logs [][]affinity.Event) []layout {
	texts, bound := history.NewBuilder(), history.NewBuilder()
	d := dictionaryOf(logs)
	bound.Use(d)
	return []layout{{"texts", texts, shelf(nil)}, {"dictionary", bound, shelf{d.Generation(): d}}}
}

// dictionaryOf returns a dictionary of what three of the users have.
func dictionaryOf(logs [][]affinity.Event) *history.Dictionary {
	v := history.NewVocabulary()
	for i, events := range logs {
		for _, e := range events {
			v.Add(fmt.Sprint("user ", i), e)
		}
	}
	return v.Dictionary(1, history.Limits{})
}

// shelf is some dictionaries by generation.
type shelf map[int64]*history.Dictionary

func (s shelf) String() string {
	text := ""
	for _, d := range s {
		text += fmt.Sprintf("%d terms, %d bytes", d.Len(), d.Bytes())
	}
	return text
}

func (s shelf) Dictionary(generation int64) (*history.Dictionary, error) {
	if d := s[generation]; d != nil {
		return d, nil
	}
	return nil, history.ErrNoDictionary
}

// common is a dictionary of some of the terms that the tests draw, and commonShelf holds
// it.
var (
	common      = commonTerms()
	commonShelf = shelf{common.Generation(): common}
)

func commonTerms() *history.Dictionary {
	v := history.NewVocabulary()
	for user := range history.MinUsers {
		add := func(e affinity.Event) { v.Add(fmt.Sprint(user), e) }
		for i, facet := range facets[:len(facets)-1] {
			for j, value := range append(values[:len(values):len(values)], texts...) {
				if j%2 == 0 {
					add(affinity.Event{Type: types[i%3], Name: eventNames[0], Counts: []affinity.Count{{Facet: facet, Value: value, N: 1}}})
				}
			}
		}
		for i := range 200 { // of drawWide
			add(affinity.Event{Type: types[0], Name: fmt.Sprint("name", i/2), Counts: []affinity.Count{{Facet: fmt.Sprint("facet", i%2), Value: fmt.Sprint("value", i), N: 1}}})
		}
	}
	return v.Dictionary(-3, history.Limits{})
}

// testLayouts build blocks without a dictionary and with common.
func testLayouts() []layout {
	texts, bound := history.NewBuilder(), history.NewBuilder()
	bound.Use(common)
	return []layout{{"texts", texts, nil}, {"dictionary", bound, commonShelf}}
}
