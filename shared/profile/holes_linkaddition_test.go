package profile_test

import (
	"testing"

	"github.com/affinityengine/affinity/shared/local/race"
)

// An event of an anonymous token is added to the profile of the known user, by the process that wrote the profile and
// by another one.
func TestLinkedEventsAreAdded(t *testing.T) {
	onEveryLinked(t, func(t *testing.T, s *harness) {
		one, other := s.adding(), s.adding()
		s.applyTo(one, s.of("k", 1, ""))
		s.applyTo(one, s.of("a", 2, "k")) // the link is computed
		added(t, one, 0)
		s.applyTo(one, s.of("a", 3, ""), s.of("a", 4, "k"))
		added(t, one, 2)
		s.applyTo(other, s.of("a", 5, ""))
		added(t, other, 2)
		s.applyTo(other, s.of("k", 6, ""), s.of("b", 1, ""))
		added(t, other, 3)
		s.counts("k", 6)
		s.counts("a", 4)
		s.applyTo(other, s.of("b", 2, "k"))
		s.applyTo(other, s.of("a", 5, "")) // a second delivery
		s.counts("k", 8)
		s.foldUser("a")
		s.applyTo(other, s.of("a", 4, ""), s.of("a", 8, "")) // one is late
		s.counts("k", 9)
		s.outdate()
		s.counts("k", 9)
	})
}

// Everything that may happen between two requests of a message whose event is added to the profile of a known user.
func TestLinkedAdditionMeets(t *testing.T) {
	for name, between := range map[string]struct {
		do   func(*harness)
		k, a int // events that count afterwards
	}{
		"an unlink":                {func(s *harness) { s.unlink("a", "k"); s.read("k") }, 1, 3},
		"a fold":                   {func(s *harness) { s.foldUser("a"); s.read("k") }, 4, 3},
		"a second known user":      {func(s *harness) { s.apply(s.of("a", 4, "l")); s.read("k") }, 3, 4},
		"a deletion of k":          {func(s *harness) { s.clock += second; s.delete("k"); s.read("k") }, 0, 0},
		"a deletion of a":          {func(s *harness) { s.clock += second; s.delete("a"); s.read("k") }, 1, 0},
		"another event of k":       {func(s *harness) { s.apply(s.of("k", 9, "")) }, 5, 3},
		"another event of a":       {func(s *harness) { s.apply(s.of("a", 9, "")) }, 5, 4},
		"the same event":           {func(s *harness) { s.apply(s.of("a", 5, "")) }, 4, 3},
		"the same event, kept":     {func(s *harness) { s.apply(s.of("a", 5, "")); s.foldUser("a"); s.foldUser("k") }, 4, 3},
		"an event before the link": {func(s *harness) { s.apply(s.of("a", 0, "")) }, 5, 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEveryBigtable(t, func(t *testing.T, open opener) {
				atEvery(func(requests int) bool {
					if race.On && requests%4 != 0 {
						return true // to the race detector they are alike
					}
					s := newLinked(t, open)
					e := s.adding()
					s.applyTo(e, s.of("k", 1, ""), s.of("a", 2, ""))
					s.applyTo(e, s.of("a", 3, "k"))
					m := s.startApply(e, s.of("a", 5, ""))
					goesOn := s.upTo(m, requests)
					between.do(s)
					s.finish(m)
					s.counts("k", between.k)
					s.counts("a", between.a)
					s.outdate()
					s.counts("k", between.k)
					return goesOn
				})
			})
		})
	}
}
