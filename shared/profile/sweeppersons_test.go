package profile_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/race"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/profile/links"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/store"
)

// ofPerson says whose event of which token it is.
func ofPerson(person, unit, token string, at int64, typ event.Type) string {
	return fmt.Sprintf("%s (%s): %s of %s at %d", person, unit, typ, token, at)
}

// personsOf says of each event in the log to which person it belongs, by the rows of the users.
func (s *harness) personsOf() (events, conversions []string) {
	s.t.Helper()
	rows, cells := map[string]store.User{}, map[string]links.Cell{}
	exclusion := func(token string) links.Exclusion {
		row := rows[token]
		return links.Exclusion{Tombstone: row.Deleted(), OptedOut: row.OptedOut, Consents: string(row.Consents)}
	}
	must.Succeed(s.t, s.store.Users.ScanUsers(ctx, appID, "", "", 1_000, store.UserHistory, func(token string, row store.User) error {
		cell, err := links.Parse(row.Links)
		rows[token], cells[token] = row, cell
		return err
	}))
	l := s.app().Log
	must.Succeed(s.t, s.store.Events.Log(appID, l).Scan(ctx, l.Read, store.Range{}, 0, func(e store.Entry) error {
		original, err := schema.ParseOriginal(e.Original)
		must.Succeed(s.t, err)
		o, err := original.Objects()
		cell, receipt := cells[e.User], e.Written().ReceivedAt()
		if rows[e.User].Excludes(o.Type, e.Time, receipt) || rows[e.User].Gone() || cell.Dropped(e.Time, receipt) || e.Time > s.clock {
			return err
		}
		person := e.User
		if cell.Absorbed(exclusion(e.User)) {
			person = ""
		}
		for _, entry := range cell.Entries {
			if !entry.Counts(exclusion(e.User), links.Exclusion{}) || e.Time < entry.Since || e.Time >= entry.To {
				continue
			}
			if person = entry.Known; !entry.Counts(exclusion(e.User), exclusion(person)) || rows[person].Excludes(o.Type, e.Time, receipt) {
				person = ""
			}
		}
		if person == "" {
			return err
		}
		unit, first := person, cells[person]
		if token, ok := first.First(); ok {
			unit = token
		}
		text := ofPerson(person, unit, e.User, e.Time, o.Type)
		events = append(events, text)
		if o.Type == event.Conversion {
			conversions = append(conversions, text)
		}
		return err
	}))
	slices.Sort(events)
	slices.Sort(conversions)
	return events, conversions
}

// Whatever happens to tokens and their links, a sweep gives each event once, to the person for whom it counts.
func TestSweepOfPersons(t *testing.T) {
	t.Parallel()
	linked, packed := 0, int64(0)
	for seed := range race.Or[uint64](3, 1) {
		s := newLinked(t, storetest.NewWithClient)
		s.eng = s.folding(6)
		r, n := rand.New(rand.NewPCG(seed, 1)), 0
		anonymous, known := []string{"a", "b", "c", "d"}, []string{"k1", "k2", "k3"}
		one := func(of []string) string { return of[r.IntN(len(of))] }
		for range 120 {
			s.clock += r.Int64N(2 * hour)
			switch r.IntN(24) {
			case 0:
				_, _ = profile.IdentitiesOf(s.eng).Unlink(ctx, s.app(), one(anonymous), one(known)) // refused without a link
			case 1:
				s.delete(one(known))
			case 2:
				s.delete(one(anonymous))
			case 3:
				_, err := s.eng.OptOut(ctx, appID, one(known), []event.Type{event.Click, event.View}[r.IntN(2)])
				must.Succeed(t, err)
			case 4:
				_, err := s.eng.OptIn(ctx, appID, one(slices.Concat(anonymous, known)))
				must.Succeed(t, err)
			case 5:
				s.recomputeAll()
			case 6, 7, 8:
				s.foldUser(one(slices.Concat(anonymous, known)))
			default:
				var events []store.LogEvent
				for range 1 + r.IntN(6) {
					n++
					ms := s.clock - r.Int64N(3*day)/(1+59*int64(n%2))
					e := naming(one(slices.Concat(anonymous, anonymous, known)), ms-ms%1000, n,
						[]event.Type{event.Click, event.View, event.Conversion}[r.IntN(3)], "Bought", "o1")
					if r.IntN(3) == 0 && e.User[0] != 'k' {
						e.Known, e.Strong, e.Receipt = one(known), true, s.clock
					}
					events = append(events, e)
				}
				s.apply(events...)
			}
			if r.IntN(6) > 0 {
				continue
			}
			var events, conversions []string
			o := profile.PersonSweep{SweepOptions: profile.SweepOptions{AsOf: time.UnixMilli(s.clock)},
				Event: func(p *profile.SweptPerson, token string, e affinity.Event) {
					events = append(events, ofPerson(p.User, p.Unit, token, e.Time, e.Type))
					if token != p.User {
						linked++
					}
				},
				Original: func(p *profile.SweptPerson, token string, at int64, original []byte) error {
					o, err := schema.ParseOriginal(original)
					must.Succeed(t, err)
					e, err := o.Decode()
					conversions = append(conversions, ofPerson(p.User, p.Unit, token, at, e.Type))
					return err
				}}
			progress, err := profile.SweepPersons(ctx, s.eng, s.app(), store.Range{}, o, func(profile.SweepProgress) error { return nil })
			must.Succeed(t, err)
			slices.Sort(events)
			slices.Sort(conversions)
			wantEvents, wantConversions := s.personsOf()
			if diff := cmp.Diff([][]string{wantEvents, wantConversions}, [][]string{events, conversions}); diff != "" ||
				progress.Events != int64(len(events)) || progress.Faulty > 0 {
				t.Fatalf("seed %d: %+v (-want +got):\n%s", seed, progress, diff)
			}
			packed += progress.Events - min(progress.Logged, progress.Events)
		}
	}
	if least := race.Or(100, 30); linked < least || packed < int64(least) {
		t.Errorf("%d events of other tokens, %d of blocks: too few to show anything", linked, packed)
	}
}
