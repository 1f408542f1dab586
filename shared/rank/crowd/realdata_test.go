package crowd_test

import (
	"cmp"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/affinityengine/affinity/shared/local/race"
	"github.com/affinityengine/affinity/shared/local/realdata"
	"github.com/affinityengine/affinity/shared/rank/crowd"
)

func TestRealDataEqualsReference(t *testing.T) {
	for _, set := range realdata.With(t, realdata.ObjectsFile) {
		t.Run(set, func(t *testing.T) {
			t.Parallel()
			testRealData(t, set)
		})
	}
}

func testRealData(t *testing.T, set string) {
	type line struct {
		UserToken string
		Timestamp int64
		EventType string
		ObjectIDs []string
	}
	lines := realdata.Decoded[line](t, set, realdata.EventsFile)
	numbers, names := map[string]uint32{}, []string(nil)
	for _, o := range realdata.Decoded[struct{ ObjectID string }](t, set, realdata.ObjectsFile) {
		names = append(names, o.ObjectID)
	}
	slices.Sort(names)
	for i, id := range names {
		numbers[id] = uint32(i)
	}

	// Events of one time are taken in the order of the file.
	slices.SortStableFunc(lines, func(a, b line) int {
		return cmp.Or(cmp.Compare(a.UserToken, b.UserToken), cmp.Compare(a.Timestamp, b.Timestamp))
	})
	lines = lines[:race.Or(len(lines)/4, 5_000)]
	tally := crowd.NewTally(lines[len(lines)-1].Timestamp, testHalfLife)
	counter := crowd.NewCounter(tally)
	var users [][]crowd.Event
	for i, l := range lines {
		if i == 0 || l.UserToken != lines[i-1].UserToken {
			counter.End()
			users = append(users, nil)
		}
		var objects []uint32
		for _, id := range l.ObjectIDs {
			n, ok := numbers[id]
			if !ok {
				t.Fatalf("event of %s names %q, which the catalog lacks", l.UserToken, id)
			}
			objects = append(objects, n)
		}
		counter.Add(l.Timestamp, l.EventType == "conversion", objects)
		users[len(users)-1] = append(users[len(users)-1], crowd.Event{Time: l.Timestamp, Bought: l.EventType == "conversion", ObjectIDs: l.ObjectIDs})
	}
	counter.End()
	counts, got := map[string]float64{}, map[string]crowd.Object{}
	byObject := map[string][]crowd.Partial{}
	for _, p := range tally.Cut(crowd.Kept, func(o uint32) string { return names[o] }) {
		byObject[p.ObjectID] = []crowd.Partial{p}
	}
	for id, p := range byObject {
		counts[id], _, got[id] = crowd.Merge(p, func(id string) int64 { return ownOf(byObject[id]) })
	}

	wantCounts, want := crowd.Reference(users, lines[len(lines)-1].Timestamp, testHalfLife)
	if diff := gocmp.Diff(wantCounts, counts, cmpopts.EquateApprox(1e-9, 0)); diff != "" {
		t.Errorf("counts (-reference +tally):\n%s", diff)
	}
	if exact := checkBounds(t, want, got); set == "clickstream" && exact != len(got) {
		t.Errorf("%d of %d objects have exact pairs, want all", exact, len(got))
	} else {
		t.Logf("%d of %d objects have exact pairs", exact, len(got))
	}
	if set == "clickstream" { // where all links are exact, and few
		if diff := gocmp.Diff(best(want), got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("links (-reference +tally):\n%s", diff)
		}
	}
	for id, o := range want {
		if got[id].Events != o.Events {
			t.Errorf("%s has %d events, want %d", id, got[id].Events, o.Events)
		}
	}
}
