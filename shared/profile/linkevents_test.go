package profile_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/profile/links"
)

// linkEvents returns the links of a token, each as its tokens and the number of its events.
func (s *harness) linkEvents(token string, most int) string {
	s.t.Helper()
	identities := profile.IdentitiesOf(s.eng)
	p, err := identities.Of(ctx, s.app(), token)
	must.Succeed(s.t, err)
	var all []string
	for _, l := range p.Links {
		n, more, err := identities.CountEvents(ctx, s.app(), l, most)
		must.Succeed(s.t, err)
		all = append(all, fmt.Sprintf("%s>%s %d%s", l.Token, l.Known, n, map[bool]string{true: "+"}[more]))
	}
	return strings.Join(all, ", ")
}

// A link counts the events that count by it, whether they are in blocks or in the log.
func TestEventsOfLinks(t *testing.T) {
	onEveryLinked(t, func(t *testing.T, s *harness) {
		wants := func(want string, tokens ...string) {
			t.Helper()
			for _, token := range tokens {
				if got := s.linkEvents(token, 100); got != want {
					t.Errorf("links of %s: %s, want %s", token, got, want)
				}
			}
		}
		s.apply(s.of("a", -10*24, ""), s.of("a", 1, ""), s.of("a", 2, "k"), s.of("a", 3, ""), s.of("k", 3, ""))
		s.foldUser("a") // a block that reaches out of the interval
		s.apply(s.of("a", 4, ""))
		wants("a>k 4", "a", "k")
		if got := s.linkEvents("k", 3); got != "a>k 3+" {
			t.Errorf("counted up to 3: %s", got)
		}
		s.apply(s.of("a", 5, "l"), s.of("a", 6, ""))
		s.foldUser("a")
		wants("a>k 4, a>l 2", "a")
		wants("a>l 2", "l")
		s.apply(s.of("a", 1, "")) // a second delivery
		wants("a>k 4", "k")
		s.unlink("a", "l")
		wants("a>k 4, a>l 0", "a")
		s.clock += hour
		_, err := s.eng.OptOut(ctx, appID, "k", event.View)
		must.Succeed(t, err)
		wants("a>k 0", "k")
	})
}

// The events of a user's links, and of the user's own log, are those of the profile.
func TestEventsOfLinksAreThoseOfTheProfile(t *testing.T) {
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		s := newLinked(t, storetest.NewWithClient)
		own := map[string]int{}
		send := func(token, known string) {
			e := s.of(token, rnd.Int64N(24), known)
			e.ID = token + e.ID[2:] // no two tokens share an ID
			s.apply(e)
		}
		for range 30 {
			s.clock += hour / 4
			token, known := fmt.Sprint("a", rnd.IntN(3)), fmt.Sprint("k", rnd.IntN(2))
			switch rnd.IntN(7) {
			case 0, 1:
				send(token, known)
			case 2:
				send(known, "")
			case 3:
				s.foldUser(token)
			case 4:
				if _, err := profile.IdentitiesOf(s.eng).Unlink(ctx, s.app(), token, known); err != nil && err != profile.ErrNotLinked {
					t.Fatal(err)
				}
			default:
				send(token, "")
			}
		}
		for _, known := range []string{"k0", "k1"} {
			own[known] = len(s.logOf(known))
			p, err := profile.IdentitiesOf(s.eng).Of(ctx, s.app(), known)
			must.Succeed(t, err)
			for _, l := range p.Links {
				n, _, err := profile.IdentitiesOf(s.eng).CountEvents(ctx, s.app(), l, 1000)
				must.Succeed(t, err)
				if own[known] += n; n > 0 && l.State != links.Live {
					t.Errorf("seed %d: %d events of a link that was undone", seed, n)
				}
			}
			if got := int(red(s.read(known))) / 30; got != own[known] {
				t.Errorf("seed %d: %s has %d events in the profile, %d by links and log", seed, known, got, own[known])
			}
		}
	}
}
