package query_test

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/rank/segment"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/serve/query"
)

// auditBench has 90 users of three brands and two colors, under two half-lives.
func auditBench(t *testing.T) *bench {
	b := newBench(t, 30, 7)
	for i := range 90 {
		b.see(fmt.Sprintf("u%03d", i), b.clock-int64(i)*hour, fmt.Sprint("brand:b", i%3), fmt.Sprint("color:c", i%2))
	}
	b.clock += 60_000
	return b
}

// audit audits all users, or some of them, and returns the kinds of differences.
func (b *bench) audit(users ...string) []query.AuditWhat {
	b.Helper()
	if len(users) == 0 {
		users = b.everybody()
	}
	a, err := b.reader.Audit(b.Context(), b.app(), users, rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		b.Fatal(err)
	}
	if a.Conditions == 0 || a.Conditions != a.Planned || a.Judged < len(users)*a.Conditions {
		b.Errorf("%d of %d conditions, %d judged", a.Conditions, a.Planned, a.Judged)
	}
	var kinds []query.AuditWhat
	for _, d := range a.Differences {
		kinds = append(kinds, d.What)
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

func TestAuditOfRightListsIsClean(t *testing.T) {
	b := auditBench(t)
	b.see("u003", b.clock-85*day, "brand:b2")
	b.build()
	check := func(when string) {
		t.Helper()
		if kinds := b.audit(); len(kinds) > 0 {
			t.Errorf("%s: %v", when, kinds)
		}
	}
	check("after a build")
	b.see("u001", b.clock, "brand:b2")
	b.see("new", b.clock, "brand:b2")
	if _, err := b.engine.Delete(t.Context(), appID, "u002"); err != nil {
		t.Fatal(err)
	}
	check("after changes")
	b.clock += 60_000
	b.update()
	check("after a delta")
	b.clock += 7 * day
	check("when events have left the window")
}

// Each kind of fault in the lists is found.
func TestAuditFindsFaults(t *testing.T) {
	for name, test := range map[string]struct {
		tamper func(map[string]affinity.Profile)
		sample []string // empty: all
		want   query.AuditWhat
	}{
		"a changed key": {tamper: func(read map[string]affinity.Profile) {
			for user, p := range read {
				for i := range p.Affinities {
					p.Affinities[i].Scores = []float64{p.Affinities[i].Scores[0] * 1.01, p.Affinities[i].Scores[1] * 1.01}
				}
				read[user] = p
			}
		}, want: query.Score},
		"a lost user": {tamper: func(read map[string]affinity.Profile) {
			for _, user := range []string{"u000", "u001", "u002", "u003", "u004", "u005"} {
				delete(read, user)
			}
		}, want: query.Missing},
		"the profile of another user": {tamper: func(read map[string]affinity.Profile) {
			if p, is := read["u001"]; is {
				read["u000"], read["u003"] = p, p
			}
		}, want: query.Surplus},
		"a user who is not there, and not in the sample": {tamper: func(read map[string]affinity.Profile) {
			if p, is := read["u080"]; is {
				read["u081x"] = p
			}
		}, sample: []string{"u000", "u001", "u002", "u003", "u004", "u005"}, want: query.Surplus},
	} {
		t.Run(name, func(t *testing.T) {
			b := auditBench(t)
			b.users["u081x"] = true
			b.tamper = test.tamper
			b.build()
			delete(b.users, "u081x")
			if kinds := b.audit(test.sample...); !slices.Contains(kinds, test.want) {
				t.Errorf("found %v, want %s", kinds, test.want)
			}
		})
	}
}

// A delta that sets nobody out of older parts makes its users count twice.
func TestAuditFindsUsersTwice(t *testing.T) {
	b := auditBench(t)
	b.build()
	for i := range 12 {
		b.see(fmt.Sprintf("u%03d", i), b.clock, fmt.Sprint("brand:b", i%3))
	}
	b.clock += 60_000
	members := b.members
	b.members = map[segment.PartID][]string{} // as if older parts had nobody
	b.update()
	for id, users := range b.members {
		members[id] = users
	}
	if kinds := b.audit(); !slices.Contains(kinds, query.Twice) {
		t.Errorf("found %v, want %s", kinds, query.Twice)
	}
}

// Users who arrive between the list of all and a look at their number are no difference.
func TestAuditWhileUsersArrive(t *testing.T) {
	b := auditBench(t)
	b.build()
	arrived := 0
	b.reader = query.New(b.store, b.engine, b.builds, func() time.Time {
		for i := range 3 { // each question is of another instant
			b.see(fmt.Sprintf("x%04d", arrived), b.clock, fmt.Sprint("brand:b", i), "color:c0", "color:c1")
			arrived++
		}
		return time.UnixMilli(b.clock)
	}, slog.New(slog.DiscardHandler))
	if kinds := b.audit(b.everybody()...); len(kinds) > 0 {
		t.Errorf("%v", kinds)
	}
	if arrived == 0 {
		t.Error("nobody arrived")
	}
}
