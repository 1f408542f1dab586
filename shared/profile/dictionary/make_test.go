package dictionary_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/profile/dictionary"
)

// sample returns what samples users.
func sample(users []dictionary.User) func(context.Context) ([]dictionary.User, error) {
	return func(context.Context) ([]dictionary.User, error) { return users, nil }
}

func never(context.Context) ([]dictionary.User, error) {
	return nil, errors.New("the users are sampled for nothing")
}

// A dictionary is made when there is none, and another one a day later if what users
// share has changed. It holds nothing of fewer than three users.
func TestRenew(t *testing.T) {
	w := newWorld()
	c := w.cache(1 << 20)
	renew := func(want bool, s func(context.Context) ([]dictionary.User, error)) {
		t.Helper()
		if got, err := c.Renew(t.Context(), app, 90, s); got != want || err != nil {
			t.Errorf("made %v, %v; want %v", got, err, want)
		}
	}
	red := sample(users(200, "Reddish brown", "Blueish green", "Yellow"))
	renew(false, sample(nil))
	renew(false, sample(users(5, "Reddish brown")))
	renew(true, red)
	if d := c.Newest(t.Context(), app); d == nil || d.Generation() != dictionary.Generation(w.now) {
		t.Fatalf("the process that made a dictionary uses %v", d)
	} else if b := d.AppendBinary(nil); !bytes.Contains(b, []byte("Blueish")) || bytes.Contains(b, []byte("secret")) {
		t.Errorf("the dictionary is %q", b)
	}
	renew(false, never)
	w.now = w.now.Add(25 * time.Hour)
	renew(false, red)
	renew(true, sample(users(200, "Some new green", "Another blueish new", "Violet")))
	if len(w.rows.rows) != 2 {
		t.Errorf("%d dictionaries, want two", len(w.rows.rows))
	}
	w.now = w.now.Add(25 * time.Hour)
	w.gate = func(_ context.Context, what string) error {
		if what == "create" {
			return errFault
		}
		return nil
	}
	if got, err := c.Renew(t.Context(), app, 90, red); got || !errors.Is(err, errFault) {
		t.Errorf("with a fault: %v, %v", got, err)
	}
}

// Of two processes that make a dictionary at once one wins, and both use that one.
func TestRenewTwice(t *testing.T) {
	for at := range 6 {
		w := newWorld()
		a, b := w.cache(1<<20), w.cache(1<<20)
		calls := 0
		w.gate = func(context.Context, string) error {
			if calls++; calls-1 == at {
				gate := w.gate
				w.gate = nil
				if _, err := b.Renew(t.Context(), app, 90, sample(users(100, "Green things", "Black and white"))); err != nil {
					t.Error(err)
				}
				w.gate = gate
			}
			return nil
		}
		if _, err := a.Renew(t.Context(), app, 90, sample(users(200, "Reddish brown", "Blueish green"))); err != nil {
			t.Fatal(err)
		}
		w.gate = nil
		x, y := a.Newest(t.Context(), app), b.Newest(t.Context(), app)
		if len(w.rows.rows) != 1 || x == nil || calls > at && (y == nil || !bytes.Equal(x.AppendBinary(nil), y.AppendBinary(nil))) {
			t.Errorf("at call %d: %d dictionaries, %v and %v", at, len(w.rows.rows), x, y)
		}
	}
}

// A dictionary goes once no block in the window can name it, which never happens
// without a retention until there are very many.
func TestOldDictionariesGo(t *testing.T) {
	for name, test := range map[string]struct {
		retention, days int
		want            []int // age in days of what stays
	}{
		"retention":    {30, 100, []int{0, 20, 60}},
		"longer":       {70, 100, []int{0, 20, 60, 80}},
		"no retention": {0, 100, []int{0, 20, 60, 80, 100}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			for _, days := range []int{0, 20, 60, 80, 100} {
				g := dictionary.Generation(w.now.AddDate(0, 0, -days))
				w.rows.rows[g] = made(g, "Red", "Blue")
			}
			w.now = w.now.Add(25 * time.Hour)
			if _, err := w.cache(1<<20).Renew(t.Context(), app, test.retention, sample(nil)); err != nil {
				t.Fatal(err)
			}
			var got []int
			for _, days := range []int{0, 20, 60, 80, 100} {
				if _, ok := w.rows.rows[dictionary.Generation(w.now.Add(-25*time.Hour).AddDate(0, 0, -days))]; ok {
					got = append(got, days)
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(test.want) {
				t.Errorf("of the ages %v stay, want %v", got, test.want)
			}
		})
	}
	w := newWorld()
	for i := range 70 {
		g := dictionary.Generation(w.now) - int64(i+2)*24
		w.rows.rows[g] = made(g, "Red", "Blue")
	}
	if _, err := w.cache(1<<20).Renew(t.Context(), app, 0, sample(nil)); err != nil || len(w.rows.rows) != 64 {
		t.Errorf("%d dictionaries stay, %v; want 64", len(w.rows.rows), err)
	}
}
