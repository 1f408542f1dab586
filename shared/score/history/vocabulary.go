package history

import (
	"cmp"
	"encoding/binary"
	"hash/maphash"
	"slices"
	"strings"

	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/wire"
)

const (
	// MinUsers is the number of users that must have a term before a dictionary
	// holds it. A dictionary is shared by all users, so it must hold nothing of
	// one person. A rarer term saves less than it costs.
	MinUsers = 3
	// maxTerm bounds the bytes of a term. Longer ones are descriptions and the
	// like, which few users share.
	maxTerm = 256
	// maxTerms and maxTermBytes bound what a Vocabulary counts at a time.
	maxTerms     = 1 << 18
	maxTermBytes = 32 << 20
)

// Limits bound a dictionary. 0 stands for the default.
type Limits struct {
	Entries int // kinds, facets and values; by default 32,768
	Bytes   int // of the stored form; by default 512 KB
}

func (l Limits) entries() int { return cmp.Or(l.Entries, 1<<15) }
func (l Limits) bytes() int   { return cmp.Or(l.Bytes, 512<<10) }

// Vocabulary counts which terms the events of users have, to make a dictionary of
// those that most users share. Its memory is bounded: from time to time it drops
// the terms of fewest users. A Vocabulary is not safe for concurrent use.
type Vocabulary struct {
	terms map[term]*termUsers
	bytes int // of the terms
	max   Limits
}

// term is a kind of events, a facet, or a value of a facet.
type term struct {
	list        termList
	first, text string // a type and name, nothing and a facet, or a facet and value
}

type termList uint8

const (
	kindTerm termList = iota
	facetTerm
	valueTerm
)

// termUsers counts the users of a term. The first users are known by their hashes,
// so that one user never counts as several of MinUsers, in whatever order events
// come.
type termUsers struct {
	n     uint32
	first [MinUsers]uint64 // hashes of the first users
	last  uint64           // hash of the last one
}

// NewVocabulary returns an empty vocabulary.
func NewVocabulary() *Vocabulary {
	return &Vocabulary{terms: map[term]*termUsers{}, max: Limits{Entries: maxTerms, Bytes: maxTermBytes}}
}

// Add counts the terms of an event of a user. The events of a user should come one
// after the other: a user who returns later may count twice for terms that at least
// MinUsers users have. Add does not keep the memory of e.
func (v *Vocabulary) Add(user string, e affinity.Event) {
	hash := maphash.String(seed, user)
	v.count(hash, term{kindTerm, string(e.Type), e.Name})
	for i := range e.Counts {
		if c := &e.Counts[i]; c.N > 0 {
			v.count(hash, term{facetTerm, "", c.Facet})
			v.count(hash, term{valueTerm, c.Facet, c.Value})
		}
	}
}

func (v *Vocabulary) count(user uint64, t term) {
	users, ok := v.terms[t]
	if !ok {
		if len(t.first) > maxTerm || len(t.text) > maxTerm {
			return
		}
		users = new(termUsers)
		t.first, t.text = strings.Clone(t.first), strings.Clone(t.text)
		v.terms[t] = users
		v.bytes += len(t.first) + len(t.text)
	}
	users.add(user)
	if len(v.terms) > v.max.Entries || v.bytes > v.max.Bytes {
		v.prune()
	}
}

func (u *termUsers) add(user uint64) {
	if u.n > 0 && u.last == user {
		return
	}
	if u.n < MinUsers {
		if slices.Contains(u.first[:u.n], user) {
			return
		}
		u.first[u.n] = user
	}
	u.n++
	u.last = user
}

// prune drops the terms of fewest users, at least half of all.
func (v *Vocabulary) prune() {
	byUsers := make([]uint32, 0, len(v.terms))
	for _, u := range v.terms {
		byUsers = append(byUsers, u.n)
	}
	slices.Sort(byUsers)
	median := byUsers[len(byUsers)/2]
	for t, u := range v.terms {
		if u.n <= median {
			v.bytes -= len(t.first) + len(t.text)
			delete(v.terms, t)
		}
	}
}

// Dictionary makes a dictionary of the terms that most users have, within the
// limits. In each of its lists the terms of more users come first and so have
// shorter ids. It is nil if no term has MinUsers users. The same counts make the
// same dictionary.
func (v *Vocabulary) Dictionary(generation int64, l Limits) *Dictionary {
	kinds, facets, values := v.choose(l)
	if len(kinds)+len(facets) == 0 {
		return nil
	}
	b := []byte{dictionaryFormat, 0, 0, 0, 0}
	b = binary.AppendVarint(b, generation)
	b = binary.AppendUvarint(b, uint64(len(kinds)))
	for _, t := range kinds {
		b = wire.AppendText(wire.AppendText(b, t.first), t.text)
	}
	b = binary.AppendUvarint(b, uint64(len(facets)))
	for _, t := range facets {
		b = wire.AppendText(b, t.text)
		b = binary.AppendUvarint(b, uint64(len(values[t.text])))
		for _, value := range values[t.text] {
			b = wire.AppendText(b, value)
		}
	}
	binary.LittleEndian.PutUint32(b[1:], wire.Checksum(b[dictionaryHeader:]))
	d, err := parseDictionary(b)
	if err != nil { // it holds what this function has just written
		return nil
	}
	return d
}

// choose returns the terms of a dictionary, those of most users first.
func (v *Vocabulary) choose(l Limits) (kinds, facets []term, values map[string][]string) {
	var common []term
	for t, u := range v.terms {
		if u.n >= MinUsers {
			common = append(common, t)
		}
	}
	slices.SortFunc(common, v.compare)
	values = map[string][]string{}
	named := map[string]bool{} // facets
	entries, size := 0, 32     // with the header and the numbers of kinds and facets
	for _, t := range common {
		bytes := len(t.text) + uvarintLen(uint64(len(t.text)))
		switch t.list {
		case kindTerm:
			bytes += len(t.first) + uvarintLen(uint64(len(t.first)))
		case facetTerm:
			bytes += 4 // the number of its values
		case valueTerm:
			if !named[t.first] {
				continue // its facet did not fit
			}
		}
		if entries == l.entries() || size+bytes > l.bytes() {
			continue
		}
		entries, size = entries+1, size+bytes
		switch t.list {
		case kindTerm:
			kinds = append(kinds, t)
		case facetTerm:
			facets, named[t.text] = append(facets, t), true
		case valueTerm:
			values[t.first] = append(values[t.first], t.text)
		}
	}
	return kinds, facets, values
}

// compare orders terms by falling number of users, then by their texts. A facet
// comes before its values, because it has at least as many users.
func (v *Vocabulary) compare(a, b term) int {
	return cmp.Or(cmp.Compare(v.terms[b].n, v.terms[a].n), cmp.Compare(a.list, b.list),
		cmp.Compare(a.first, b.first), cmp.Compare(a.text, b.text))
}
