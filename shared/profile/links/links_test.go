package links_test

import (
	"errors"
	"reflect"
	"testing"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/profile/links"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/wire"
)

const hour = int64(3_600_000)

// evidence is that of an event at an hour, received then.
func evidence(known string, at int64) links.Evidence {
	return links.Evidence{Known: known, Time: at * hour, Receipt: at * hour, By: "q3Zt0_8mKfA"}
}

var none links.Exclusion

// deleted is what a row excludes whose user was deleted at an hour.
func deleted(at int64) links.Exclusion {
	return links.Exclusion{Tombstone: affinity.Tombstone{DeletedUntil: at * hour, ReceivedUntil: at * hour}}
}

func TestIntervalsAreDisjoint(t *testing.T) {
	var c links.Cell
	c = c.Link(evidence("k", 10), none, none, 5*hour)
	c = c.Link(evidence("l", 12), none, none, 5*hour)
	c = c.Link(evidence("k", 20), none, none, 5*hour)
	want := map[string][]links.Interval{
		"k": {{Since: 5 * hour, To: 12 * hour}, {Since: 15 * hour, To: links.Open}},
		"l": {{Since: 12 * hour, To: 20 * hour}},
	}
	for known, intervals := range want {
		if got := c.Intervals(known, none, none, links.Open); len(got) != len(intervals) || got[0] != intervals[0] && known == "k" {
			t.Errorf("%s: %v, want %v", known, got, intervals)
		}
	}
	if got := c.Intervals("k", none, none, 15*hour); len(got) != 1 {
		t.Errorf("as of hour 15: %v", got)
	}
}

func TestReasons(t *testing.T) {
	c := (&links.Cell{}).Link(evidence("k", 10), none, none, hour)
	undone, _ := c.Unlink("k", 20*hour)
	shared := links.Cell{}
	for n, known := range []string{"k1", "k2", "k3", "k4", "k5"} {
		shared = shared.Link(evidence(known, int64(n+1)), none, none, 0)
	}
	full := links.Cell{}
	for n := range int64(links.MaxEntries) {
		full = full.Link(evidence("k", 1000*(n+1)), none, none, 0)
		full, _ = full.Shut("k", (1000*(n+1)+1)*hour)
	}
	for name, c := range map[string]struct {
		cell   links.Cell
		e      links.Evidence
		a, k   links.Exclusion
		asks   bool
		reason links.Reason
	}{
		"first":                {cell: links.Cell{}, e: evidence("k", 1), asks: true},
		"satisfied":            {cell: c, e: evidence("k", 11)},
		"another user":         {cell: c, e: evidence("l", 11), asks: true},
		"late":                 {cell: c, e: evidence("l", 9), reason: links.TooLate},
		"of a known token":     {cell: links.Cell{Role: links.Known}, e: evidence("l", 9), reason: links.TokenIsKnown},
		"of before an unlink":  {cell: undone, e: evidence("k", 19), reason: links.Unlinked},
		"of after an unlink":   {cell: undone, e: evidence("k", 21), asks: true},
		"shared":               {cell: shared, e: evidence("k6", 6), reason: links.Shared},
		"shared long ago":      {cell: shared, e: evidence("k6", 31*24), asks: true},
		"full":                 {cell: full, e: evidence("k", 100_000), reason: links.Limit},
		"the user was deleted": {cell: c, e: evidence("k", 21), k: deleted(20), asks: true},
		"the token was":        {cell: c, e: evidence("k", 21), a: deleted(20), asks: true},
	} {
		if asks, reason := c.cell.Asks(c.e, c.a, c.k); asks != c.asks || reason != c.reason {
			t.Errorf("%s: asks %t, %q; want %t, %q", name, asks, reason, c.asks, c.reason)
		}
	}
}

// The known user's row closes the token of the oldest evidence when a sixth one is linked within 30 days.
func TestLimitOfTokens(t *testing.T) {
	var c links.Cell
	for n, token := range []string{"a", "b", "c", "d", "e"} {
		if reason := c.Admits(token, evidence("k", int64(n+10)), none); reason != "" {
			t.Fatalf("%s is refused: %s", token, reason)
		}
		c = c.Admit(token, evidence("k", int64(n+10)))
	}
	if reason := c.Admits("f", evidence("k", 9), none); reason != links.Limit {
		t.Errorf("the oldest of six is refused as %q", reason)
	}
	c = c.Admit("f", evidence("k", 20))
	for token, want := range map[string]bool{"a": true, "b": false, "f": false} {
		if listed, shut := c.Lists(token); !listed || shut != want {
			t.Errorf("%s: listed %t, shut %t", token, listed, shut)
		}
	}
	if c = c.Admit("a", evidence("k", 30)); c.Lacks("a", evidence("k", 31)) {
		t.Error("a token that is linked again stays shut")
	}
	out := links.Exclusion{OptedOut: event.AllTypes}
	for name, c := range map[string]struct {
		cell links.Cell
		of   links.Exclusion
		want links.Reason
	}{
		"anonymous": {cell: links.Cell{Role: links.Anonymous}, want: links.UserIsAnonymous},
		"deleted":   {of: deleted(50), want: links.Deleted},
		"opted out": {of: out, want: links.OptedOut},
	} {
		if got := c.cell.Admits("a", evidence("k", 40), c.of); got != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// A deletion of the known user takes along what the token did in the interval, and nothing that is
// received later; one of the token before has ended the link.
func TestDeadIntervals(t *testing.T) {
	c := (&links.Cell{}).Link(evidence("k", 10), none, none, 5*hour)
	dead, changed := c.Kill("k", deleted(20).Tombstone, none)
	if !changed {
		t.Fatal("the deletion changes nothing")
	}
	for _, e := range []struct {
		time, receipt int64
		dropped       bool
	}{{4, 4, false}, {5, 5, true}, {15, 15, true}, {15, 30, true}, {25, 25, false}} {
		if got := dead.Dropped(e.time*hour, e.receipt*hour); got != e.dropped {
			t.Errorf("an event of hour %d, received in hour %d, is dropped: %t", e.time, e.receipt, got)
		}
	}
	if asks, reason := dead.Asks(evidence("k", 21), none, deleted(20)); !asks {
		t.Errorf("a later sign-in is refused: %s", reason)
	}
	if _, changed := c.Kill("k", deleted(20).Tombstone, deleted(15)); changed {
		t.Error("a link that the token's own deletion has ended is dead")
	}
	if _, changed := c.Kill("k", deleted(9).Tombstone, none); changed {
		t.Error("a link of after the deletion is dead")
	}
}

// A change of an entry, or of what its row excludes, owes the known user a mark until it is paid.
func TestOwes(t *testing.T) {
	c := (&links.Cell{}).Link(evidence("k", 10), none, none, 0)
	owes := func(c links.Cell, x links.Exclusion, want ...links.Owed) {
		t.Helper()
		if got := c.Owes(x); !reflect.DeepEqual(got, append([]links.Owed(nil), want...)) {
			t.Errorf("owes %v, want %v", got, want)
		}
	}
	owes(c, none, links.Owed{Known: "k"})
	c, _ = c.Pay(links.Owed{Known: "k"}, none)
	owes(c, none)
	owes(c, deleted(20), links.Owed{Known: "k"})
	second := c.Link(evidence("l", 12), none, none, 0)
	owes(second, none, links.Owed{Known: "k"}, links.Owed{Known: "l"})
	dead, _ := c.Kill("k", deleted(20).Tombstone, none)
	owes(dead, none, links.Owed{Known: "k", Dead: true})
	if dead, _ = dead.Pay(links.Owed{Known: "k"}, none); len(dead.Owes(none)) != 1 {
		t.Error("a mark of the known user pays for a dead entry, which owes one to the token")
	}
	if dead.Spent("k", none) {
		t.Error("a token that owes a mark is off the list")
	}
	trimmed, changed := c.Trim(none, 100*hour, 0)
	if changed {
		t.Errorf("an open link is trimmed: %+v", trimmed)
	}
}

func TestCodec(t *testing.T) {
	c := (&links.Cell{}).Link(evidence("k", 10), none, none, hour)
	c = c.Link(evidence("l", 11), none, none, hour)
	c, _ = c.Pay(links.Owed{Known: "k"}, none)
	c, _ = c.Kill("l", deleted(20).Tombstone, none)
	known := (&links.Cell{}).Admit("a", evidence("k", 10))
	for _, want := range []links.Cell{{}, c, known} {
		stored := want.Append(nil)
		got, err := links.Parse(stored)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, %v; want %+v", got, err, want)
		}
		for n := range stored {
			broken := append([]byte(nil), stored...)
			broken[n] ^= 4
			if _, err := links.Parse(broken); !errors.Is(err, wire.ErrDamaged) && !errors.Is(err, wire.ErrNewer) {
				t.Fatalf("byte %d is damaged: %v", n, err)
			}
		}
	}
	if got, err := links.Parse(nil); err != nil || got.Role != links.None {
		t.Errorf("no cell: %+v, %v", got, err)
	}
}

func FuzzParse(f *testing.F) {
	c := (&links.Cell{}).Link(evidence("k", 10), none, none, hour)
	f.Add(c.Append(nil))
	known := (&links.Cell{}).Admit("a", evidence("k", 10))
	f.Add(known.Append(nil))
	f.Fuzz(func(t *testing.T, value []byte) {
		c, err := links.Parse(value)
		if err != nil || len(value) == 0 {
			return
		}
		again, err := links.Parse(c.Append(nil))
		if err != nil || !reflect.DeepEqual(again, c) {
			t.Errorf("%+v, then %+v, %v", c, again, err)
		}
	})
}

// An entry keeps the key of its evidence, and strong evidence of the link brings its own. Nobody is marked for that.
func TestKeyOfEvidence(t *testing.T) {
	weak := evidence("ann", 1000)
	weak.Weak, weak.Key = true, "5b1f0a9c77de"
	var c links.Cell
	c = c.Link(weak, links.Exclusion{}, links.Exclusion{}, 100)
	c, _ = c.Pay(links.Owed{Known: "ann"}, links.Exclusion{})
	strong := evidence("ann", 2000)
	strong.Key = "000000000001"
	next, changed := c.Strengthen(strong, links.Exclusion{})
	if !changed || c.Entries[0].Key != weak.Key || next.Entries[0].Key != strong.Key || next.Entries[0].Weak || len(next.Owes(links.Exclusion{})) > 0 {
		t.Errorf("%+v, then %+v, changed %t", c.Entries, next.Entries, changed)
	}
	parsed, err := links.Parse(next.Append(nil))
	if err != nil || parsed.Entries[0] != next.Entries[0] {
		t.Errorf("%+v, %v", parsed.Entries, err)
	}
	if grown := len(c.Append(nil)) - len((&links.Cell{Role: c.Role, Number: c.Number, Entries: func() []links.Entry { e := c.Entries[0]; e.Key = ""; return []links.Entry{e} }()}).Append(nil)); grown > 8 {
		t.Errorf("a key takes %d bytes", grown)
	}
}
