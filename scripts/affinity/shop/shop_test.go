package shop_test

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/affinityengine/affinity/scripts/affinity/shop"
)

var clock = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func encode(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestSameSeedSameBytes(t *testing.T) {
	t.Parallel()
	everything := func(seed uint64, live int) []byte {
		s := shop.New(seed)
		if live > 0 {
			s.Live(clock, live) // an earlier call must not change a later one
		}
		return bytes.Join([][]byte{encode(t, s.Objects()), encode(t, s.History(clock)), encode(t, s.Live(clock, 50))}, nil)
	}
	if !bytes.Equal(everything(7, 0), everything(7, 3)) {
		t.Error("the same seed and clock gave different bytes")
	}
	if bytes.Equal(everything(7, 0), everything(8, 0)) {
		t.Error("different seeds gave the same bytes")
	}
}

func TestCatalog(t *testing.T) {
	t.Parallel()
	ids := map[string]bool{}
	for _, o := range shop.New(1).Objects() {
		if ids[o.ObjectID] {
			t.Errorf("object %s is there twice", o.ObjectID)
		}
		ids[o.ObjectID] = true
		for _, f := range o.Filters() {
			if f.Value == "" {
				t.Errorf("object %s has an empty %s", o.ObjectID, f.Facet)
			}
		}
	}
	if len(ids) < 320 || len(ids) > 360 {
		t.Errorf("the catalog holds %d objects, want some 340", len(ids))
	}
}

func TestHistoryIsAMonthInOrder(t *testing.T) {
	t.Parallel()
	s := shop.New(1)
	objects := map[string]bool{}
	for _, o := range s.Objects() {
		objects[o.ObjectID] = true
	}
	events := s.History(clock)
	if len(events) < 15_000 || len(events) > 30_000 {
		t.Errorf("history holds %d events, want some 20,000", len(events))
	}
	from, last := clock.AddDate(0, 0, -shop.HistoryDays).UnixMilli(), int64(0)
	for i, e := range events {
		if e.Timestamp < from || e.Timestamp > clock.Add(-10*time.Minute).UnixMilli() {
			t.Fatalf("event %d is of %s, outside the month before %s", i, time.UnixMilli(e.Timestamp).UTC(), clock)
		}
		if e.Timestamp < last {
			t.Fatalf("event %d is older than the one before it", i)
		}
		last = e.Timestamp
		if len(e.ObjectIDs) == 0 || len(e.ObjectIDs) > 20 {
			t.Fatalf("event %d names %d objects", i, len(e.ObjectIDs))
		}
		for _, id := range e.ObjectIDs {
			if !objects[id] {
				t.Fatalf("event %d names object %s, which is not in the catalog", i, id)
			}
		}
	}
	live := s.Live(clock, 40)
	if len(live) != 40 || live[39].Timestamp != clock.UnixMilli() || live[0].Timestamp <= last {
		t.Errorf("live: %d events from %d to %d, want 40 after %d and up to %d", len(live), live[0].Timestamp, live[len(live)-1].Timestamp, last, clock.UnixMilli())
	}
}

// In every phase of every persona, the most frequent value of a facet is the one
// that the persona loves.
func TestEventsShowTheTaste(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		s := shop.New(seed)
		seen := tally(s, s.History(clock))
		if len(s.Personas()) < 6 {
			t.Fatalf("%d personas, want at least 6", len(s.Personas()))
		}
		for _, p := range s.Personas() {
			for i, phase := range p.Phases {
				for _, love := range phase.Loves {
					if got := most(seen[p.ID][i][love.Facet]); got != love.Value {
						t.Errorf("seed %d, %s, phase %d: most seen %s is %q, want %q", seed, p.ID, i, love.Facet, got, love.Value)
					}
				}
			}
		}
	}
}

// tally counts persona -> phase -> facet -> value.
func tally(s *shop.Shop, events []shop.Event) map[string]map[int]map[string]map[string]int {
	objects := map[string]shop.Object{}
	for _, o := range s.Objects() {
		objects[o.ObjectID] = o
	}
	seen := map[string]map[int]map[string]map[string]int{}
	owner := map[string]shop.Persona{}
	for _, p := range s.Personas() {
		seen[p.ID] = map[int]map[string]map[string]int{}
		for i := range p.Phases {
			seen[p.ID][i] = map[string]map[string]int{}
		}
		owner[shop.PhoneToken(p.ID)] = p
		for n := range shop.UsersPerPersona {
			owner[shop.UserToken(p.ID, n)] = p
		}
	}
	for _, e := range events {
		p := owner[e.UserToken]
		phase := 0
		for i := range p.Phases {
			if e.Timestamp >= clock.AddDate(0, 0, -p.Phases[i].DaysAgo).UnixMilli() {
				phase = i
			}
		}
		for _, id := range e.ObjectIDs {
			for _, f := range objects[id].Filters() {
				values := seen[p.ID][phase]
				if values[f.Facet] == nil {
					values[f.Facet] = map[string]int{}
				}
				values[f.Facet][f.Value]++
			}
		}
	}
	return seen
}

func most(counts map[string]int) string {
	best := ""
	for value, n := range counts {
		if best == "" || n > counts[best] {
			best = value
		}
	}
	return best
}

// One user of each persona comes on a phone, too, and says so at the end of each visit there.
func TestPhones(t *testing.T) {
	s := shop.New(1)
	signIns, anonymous := map[string]int{}, map[string]int{}
	for _, e := range s.History(clock) {
		if e.AuthenticatedUserToken == "" {
			anonymous[e.UserToken]++
		} else {
			signIns[e.UserToken+" "+e.AuthenticatedUserToken]++
		}
	}
	for _, p := range s.Personas() {
		phone := shop.PhoneToken(p.ID)
		if signIns[phone+" "+shop.UserToken(p.ID, 1)] == 0 || anonymous[phone] == 0 {
			t.Errorf("the phone of the %s has %d events without a sign-in", p.ID, anonymous[phone])
		}
	}
	if len(signIns) != len(s.Personas()) {
		t.Errorf("sign-ins: %v, want one pair of tokens of each persona", signIns)
	}
}
