package profile_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/store"
)

// BenchmarkPersons compares a person of six tokens with a user of one, in turns: each read of one is followed by a read
// of the other, and every second time the other is first. It reports the ratio of the medians. A
// person has as many events in all as the user, or as many a token.
//
// go test ./shared/profile -run xxx -bench Persons -benchtime 300x
func BenchmarkPersons(b *testing.B) {
	for _, events := range []int{30, 300, 3000} {
		for _, folded := range []bool{true, false} {
			s := newPersonsBench(b)
			s.token("user", "", events)
			s.person("person", 6, events/6)
			s.person("large", 6, events)
			if folded {
				s.fold()
			}
			for _, p := range []string{"person", "large"} {
				of := fmt.Sprintf("%d events, folded %t/%s", events, folded, p)
				b.Run("stored "+of, func(b *testing.B) { s.compare(b, p, s.read) })
				b.Run("computed "+of, func(b *testing.B) { s.compare(b, p, s.refresh) })
			}
		}
	}
}

// personsBench is an app that links tokens, with users and persons.
type personsBench struct {
	*fixture
	tokens []string
}

func newPersonsBench(b *testing.B) *personsBench {
	f := newFixtureOn(b, storetest.NewDeployed, 365, decaying)
	s := &personsBench{fixture: f}
	for _, mode := range []config.IdentityMode{config.IdentityCollect, config.IdentityLink} {
		_, err := s.apps.SetIdentity(ctx, appID, config.Identity{Mode: mode, Lookback: 365 * 24 * time.Hour}, 0)
		must.Succeed(b, err)
	}
	return s
}

// token imports events of a token over 60 days. The last one names a known user unless known is "".
func (s *personsBench) token(token, known string, events int) {
	s.t.Helper()
	all := make([]store.LogEvent, events)
	for i := range all {
		all[i] = bought(token, s.clock-60*day*int64(events-i)/int64(events)-1)
		all[i].ID, all[i].Strong = fmt.Sprintf("%s-%06d", token, i), true
	}
	all[events-1].Known = known
	_, err := s.eng.Import(ctx, s.app(), all)
	must.Succeed(s.t, err)
	s.tokens = append(s.tokens, token)
}

// person makes a known user of so many tokens, their own among them.
func (s *personsBench) person(known string, tokens, events int) {
	s.token(known, "", events)
	for i := range tokens - 1 {
		s.token(fmt.Sprintf("%s-%d", known, i), known, events)
	}
}

func (s *personsBench) fold() {
	for _, token := range s.tokens {
		_, err := s.eng.Fold(ctx, s.app(), token)
		must.Succeed(s.t, err)
	}
}

func (s *personsBench) read(user string) (profile.Result, error) {
	return s.eng.Read(ctx, s.app(), user, 0)
}

func (s *personsBench) refresh(user string) (profile.Result, error) {
	return s.eng.Refresh(ctx, s.app(), user)
}

// compare reports the ratio of the medians of a person and the user.
func (s *personsBench) compare(b *testing.B, person string, read func(string) (profile.Result, error)) {
	times := map[string][]time.Duration{}
	order := []string{"user", person}
	for b.Loop() {
		slices.Reverse(order)
		for _, user := range order {
			begin := time.Now()
			_, err := read(user)
			must.Succeed(b, err)
			times[user] = append(times[user], time.Since(begin))
		}
	}
	median := func(user string) float64 {
		slices.Sort(times[user])
		return float64(times[user][len(times[user])/2])
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median("user")/1e3, "user-µs")
	b.ReportMetric(median(person)/median("user"), "person/user")
}

// BenchmarkRecomputeOfPersons recomputes two apps in turns: of the users of one, 20 % are persons of two tokens. It
// reports the ratio of the medians.
//
// go test ./shared/profile -run xxx -bench RecomputeOfPersons -benchtime 20x
func BenchmarkRecomputeOfPersons(b *testing.B) {
	const tokens, events = 2000, 40
	apps := map[string]*personsBench{}
	for _, name := range []string{"unlinked", "linked"} {
		s := newPersonsBench(b)
		for i := range tokens {
			known := ""
			if name == "linked" && i%6 == 0 { // of each 6 tokens one is another's, so that one of 5 users has two
				known = fmt.Sprintf("user-%d", i+1)
			}
			s.token(fmt.Sprintf("user-%d", i), known, events)
		}
		s.fold()
		apps[name] = s
	}
	times := map[string][]time.Duration{}
	for b.Loop() {
		for name, s := range apps {
			begin := time.Now()
			_, err := s.eng.Recompute(ctx, s.app(), store.Range{}, profile.RecomputeOptions{}, func(profile.Progress) error { return nil })
			must.Succeed(b, err)
			times[name] = append(times[name], time.Since(begin))
		}
	}
	median := func(name string) float64 {
		slices.Sort(times[name])
		return times[name][len(times[name])/2].Seconds()
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median("unlinked")*1e3, "unlinked-ms")
	b.ReportMetric(median("linked")/median("unlinked"), "linked/unlinked")
}

// BenchmarkLinkedApply applies events of a user and of a linked anonymous token in turns, and reports how much longer
// the second takes until it is acknowledged, and so counts for the person, at the median and at the 99th of 100.
//
// go test ./shared/profile -run xxx -bench LinkedApply -benchtime 3000x
func BenchmarkLinkedApply(b *testing.B) {
	s := newPersonsBench(b)
	s.token("user", "", 100)
	s.person("person", 3, 33)
	s.fold()
	times := map[string][]time.Duration{}
	n := 0
	for b.Loop() {
		for _, token := range []string{"user", "person-0"} {
			n++
			s.clock++
			e := bought(token, s.clock)
			e.ID, e.Strong = fmt.Sprintf("now-%09d", n), true
			begin := time.Now()
			_, err := s.eng.Apply(ctx, s.app(), []store.LogEvent{e})
			must.Succeed(b, err)
			times[token] = append(times[token], time.Since(begin))
		}
	}
	at := func(token string, part float64) float64 {
		slices.Sort(times[token])
		return float64(times[token][int(part*float64(len(times[token])-1))])
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(at("user", 0.5)/1e3, "user-µs")
	b.ReportMetric(at("person-0", 0.5)/at("user", 0.5), "linked/user-p50")
	b.ReportMetric(at("person-0", 0.99)/at("user", 0.99), "linked/user-p99")
}
