package usage

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// A sketch never says more than was counted, and names every user with more than a
// hundredth of all events.
func TestSketchBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		counted, total := map[string]int64{}, int64(0)
		var s sketch
		for range rapid.IntRange(0, 600).Draw(t, "steps") {
			user := fmt.Sprint(rapid.IntRange(0, 400).Draw(t, "user"))
			if rapid.Bool().Draw(t, "hot") {
				user = fmt.Sprint("hot", rapid.IntRange(0, 2).Draw(t, "which"))
			}
			s.add(user, 1, time.Time{})
			counted[user]++
			total++
		}
		if len(s.heap) > sketchUsers || len(s.users) != len(s.heap) {
			t.Fatalf("%d users, %d in the heap", len(s.users), len(s.heap))
		}
		for _, u := range s.top() {
			if u.Events > counted[u.Token] {
				t.Errorf("%s has %d events, the sketch says at least %d", u.Token, counted[u.Token], u.Events)
			}
		}
		for user, n := range counted {
			if n > total/sketchUsers && s.users[user] == nil {
				t.Errorf("%s is missing, with %d of %d events", user, n, total)
			}
		}
	})
}

func TestMerge(t *testing.T) {
	got := Merge([]User{{"ann", 3}, {"bob", 4}, {"ann", 2}, {"cid", 4}})
	if diff := cmp.Diff([]User{{"ann", 5}, {"bob", 4}, {"cid", 4}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDays(t *testing.T) {
	for text, want := range map[string]Day{"1970-01-01": 0, "2026-11-22": 20779, "1969-12-31": -1} {
		d, err := ParseDay(text)
		if err != nil || d != want || d.String() != text || DayOf(d.Time()) != d {
			t.Errorf("%s: day %d (%s), %v; want %d", text, d, d, err, want)
		}
	}
	for _, text := range []string{"", "2026-11-31", "2026-1-1", "22.11.2026", "2026-11-22T00:00:00Z", "0000-01-01", "-001-01-01"} {
		if d, err := ParseDay(text); err == nil {
			t.Errorf("%q is read as %s", text, d)
		}
	}
}

// A process whose table fails, or that serves very many apps, keeps its memory.
func TestCounterIsBounded(t *testing.T) {
	noon := func() time.Time { return time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC) }
	c := NewCounter(nil, noon, slog.New(slog.DiscardHandler))
	for i := range maxDays + 10 {
		app := fmt.Sprint("app", i)
		c.Events(app, 1, func(int) string { return "ann" })
	}
	if len(c.days) != maxDays || c.lost != 10 || c.sketches != maxSketches {
		t.Errorf("%d days, %d lost, %d sketches", len(c.days), c.lost, c.sketches)
	}
	for i := range maxKeys + 10 {
		c.Key("shop", fmt.Sprint("hash", i))
	}
	if len(c.pending) != maxKeys || len(c.keys) > maxKeys {
		t.Errorf("%d keys to store, %d noted", len(c.pending), len(c.keys))
	}
}
