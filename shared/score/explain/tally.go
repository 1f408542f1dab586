package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

const (
	// maxTallied is how many different names a tally counts.
	maxTallied = 10_000
	// maxListed is how many names String lists.
	maxListed = 5
)

// tally counts events by name.
type tally struct {
	counts map[string]int
	others int // events of names beyond maxTallied
	bytes  int // of the names, and of what else each takes
}

// namedBytes is what a name of a tally takes beside its text.
const namedBytes = 50

func (t *tally) add(name string) {
	if t.counts == nil {
		t.counts = map[string]int{}
	}
	if _, seen := t.counts[name]; !seen {
		if len(t.counts) == maxTallied {
			t.others++
			return
		}
		name = strings.Clone(name)
		t.bytes += namedBytes + len(name)
	}
	t.counts[name]++
}

// addEach counts an event once under each of its names. It sorts the names.
func (t *tally) addEach(names []string) {
	slices.Sort(names)
	for i, name := range names {
		if i == 0 || name != names[i-1] {
			t.add(name)
		}
	}
}

// most returns the most frequent names, those with the most events first.
func (t *tally) most() []string {
	names := make([]string, 0, len(t.counts))
	for name := range t.counts {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(t.counts[b], t.counts[a]), cmp.Compare(a, b))
	})
	return names[:min(len(names), maxListed)]
}

// String lists the most frequent names, for example: size (3), material (2) and
// 4 others.
func (t *tally) String() string {
	listed := t.most()
	text := make([]string, len(listed))
	for i, name := range listed {
		text[i] = fmt.Sprintf("%s (%d)", name, t.counts[name])
	}
	list := strings.Join(text, ", ")
	switch more := len(t.counts) - len(listed); {
	case t.others > 0:
		list += fmt.Sprintf(" and more than %d others", more)
	case more > 0:
		list += fmt.Sprintf(" and %d others", more)
	}
	return list
}
