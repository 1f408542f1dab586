package feed_test

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/fault"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/rank/feed"
)

var start = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func want(order feed.Order) feed.Want {
	return feed.Want{Order: order, Feed: feed.HashOf("shop", "news"), Version: 3, Now: start.Add(time.Hour)}
}

func walk(order feed.Order) *feed.Walk {
	w := &feed.Walk{Order: order, Feed: feed.HashOf("shop", "news"), Version: 3, Start: start.UnixMilli()}
	if order == feed.Suggested {
		w.Shown = feed.NewShown(100, w.Start)
		w.Shown.Add(keys(100), func(i int) bool { return i < 20 }, true)
	} else {
		w.Date, w.ObjectID, w.Passed = -1, "post,ü", []uint64{1, 1 << 63}
	}
	return w
}

func keys(n int) []uint64 {
	all := make([]uint64, n)
	for i := range all {
		all[i] = feed.KeyOf(fmt.Sprint("post-", i))
	}
	return all
}

func TestCursor(t *testing.T) {
	for _, order := range []feed.Order{feed.Suggested, feed.Latest} {
		made := walk(order)
		got, err := feed.ParseCursor(made.Cursor(), want(order))
		if err != nil {
			t.Fatalf("%s: %v", order, err)
		}
		if diff := cmp.Diff(made, got, cmp.AllowUnexported(feed.Shown{})); diff != "" {
			t.Errorf("%s (-made +decoded):\n%s", order, diff)
		}
	}
}

func TestRefusedCursors(t *testing.T) {
	good := walk(feed.Suggested).Cursor()
	refused := func(name, cursor, message string, edit func(*feed.Want)) {
		t.Helper()
		w := want(feed.Suggested)
		edit(&w)
		_, err := feed.ParseCursor(cursor, w)
		var refusal *fault.Error
		if !errors.As(err, &refusal) || refusal.Kind != fault.Invalid || !strings.Contains(refusal.Message, message) {
			t.Errorf("%s: %v, want a refusal with %q", name, err, message)
		}
	}
	same := func(*feed.Want) {}
	refused("of another feed", good, "another feed", func(w *feed.Want) { w.Feed++ })
	refused("of the other order", walk(feed.Latest).Cursor(), "order latest", same)
	refused("of an older definition", good, "definition of the feed has changed", func(w *feed.Want) { w.Version++ })
	refused("expired", good, "expired after 24 hours", func(w *feed.Want) { w.Now = start.Add(feed.CursorLife + time.Millisecond) })
	refused("of the future", good, "damaged", func(w *feed.Want) { w.Now = start.Add(-time.Minute) })
	refused("too long", strings.Repeat("A", feed.MaxCursor+1), "damaged", same)
	refused("not base64", good+"=", "damaged", same)
	refused("empty", "AAAA", "damaged", same)
	for i := range good {
		broken := []byte(good)
		broken[i] = "AB"[bool01(broken[i] == 'A')]
		refused(fmt.Sprint("byte ", i), string(broken), "cursor", same)
		refused(fmt.Sprint("cut at ", i), good[:i], "damaged", same)
	}
}

func bool01(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Whatever the pages show, and however the candidates change, the set says of every candidate
// that was there at the start whether it was shown, and no record is shown twice. Newcomers
// come and go, as they do where instances have lists of different times.
func TestShownIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 300).Draw(t, "candidates")
		random := rand.New(rand.NewPCG(1, rapid.Uint64().Draw(t, "seed")))
		first := keys(n)
		w := &feed.Walk{Order: feed.Suggested, Start: start.UnixMilli(), Shown: feed.NewShown(n, start.UnixMilli())}
		shown, gone := map[uint64]bool{}, map[uint64]bool{}
		newcomers := make([]uint64, 40)
		for i := range newcomers {
			newcomers[i] = random.Uint64()
		}
		for page := 0; page < 30; page++ {
			current := slices.DeleteFunc(slices.Clone(first), func(k uint64) bool { return gone[k] })
			random.Shuffle(len(newcomers), func(i, j int) { newcomers[i], newcomers[j] = newcomers[j], newcomers[i] })
			current = append(current, newcomers[:random.IntN(20)]...)
			random.Shuffle(len(current), func(i, j int) { current[i], current[j] = current[j], current[i] })
			complete := random.IntN(3) > 0
			if !complete { // an older list lacks some
				current = current[:len(current)-random.IntN(len(current)/4+1)]
			}
			seen, left := map[uint64]bool{}, random.IntN(n/3+2)
			for _, k := range current {
				if seen[k] = w.Shown.Has(k); !seen[k] && left > 0 {
					seen[k] = true
					left--
					if shown[k] {
						t.Fatalf("page %d: %x is shown again", page, k)
					}
					shown[k] = true
				}
			}
			w.Shown.Add(current, func(i int) bool { return seen[current[i]] }, complete)
			decoded, err := feed.ParseCursor(w.Cursor(), feed.Want{Order: feed.Suggested, Now: start})
			if err != nil {
				t.Fatalf("page %d: %v", page, err)
			}
			w = decoded
			for _, k := range first {
				if !gone[k] && w.Shown.Has(k) != shown[k] {
					t.Fatalf("page %d: %x counts as shown: %v, want %v", page, k, w.Shown.Has(k), shown[k])
				}
			}
			if random.IntN(4) == 0 {
				gone[first[random.IntN(n)]] = true
			}
		}
	})
}

// TestSizes logs how long cursors are, and bounds the longest.
func TestSizes(t *testing.T) {
	for _, n := range []int{100, 1000, 5000} {
		longest, at := 0, 0
		all := keys(n)
		w := walk(feed.Suggested)
		w.Shown = feed.NewShown(n, w.Start)
		for shown := 20; shown < n; shown += n / 50 {
			w.Shown.Add(all, func(i int) bool { return i < shown }, true)
			if l := len(w.Cursor()); l > longest {
				longest, at = l, shown
			}
		}
		t.Logf("%d candidates: at most %d characters, with %d shown", n, longest, at)
		if longest > 4500 {
			t.Errorf("a cursor of %d candidates has %d characters", n, longest)
		}
	}
}

// FuzzCursor decodes hostile cursors. What it accepts can be encoded again.
func FuzzCursor(f *testing.F) {
	for _, order := range []feed.Order{feed.Suggested, feed.Latest} {
		b, err := base64.RawURLEncoding.DecodeString(walk(order).Cursor())
		must.Succeed(f, err)
		f.Add(b[:len(b)-4])
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		text := base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint32(slices.Clip(body), crc32.ChecksumIEEE(body)))
		for _, order := range []feed.Order{feed.Suggested, feed.Latest} {
			w, err := feed.ParseCursor(text, want(order))
			var refusal *fault.Error
			if err != nil && !errors.As(err, &refusal) {
				t.Fatal(err)
			}
			if err == nil {
				if _, err := feed.ParseCursor(w.Cursor(), want(order)); err != nil {
					t.Errorf("encoded again: %v", err)
				}
			}
		}
	})
}

// BenchmarkCursor decodes a cursor, asks it about each candidate, adds a page and
// encodes it.
func BenchmarkCursor(b *testing.B) {
	for _, n := range []int{100, 1000, 5000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			all := keys(n)
			w := walk(feed.Suggested)
			w.Shown = feed.NewShown(n, w.Start)
			w.Shown.Add(all, func(i int) bool { return i < 40 }, true)
			cursor := w.Cursor()
			b.ReportAllocs()
			for b.Loop() {
				w, err := feed.ParseCursor(cursor, want(feed.Suggested))
				must.Succeed(b, err)
				shown := make([]bool, n)
				for i, k := range all {
					shown[i] = w.Shown.Has(k)
				}
				w.Shown.Add(all, func(i int) bool { return shown[i] || i < 60 }, true)
				_ = w.Cursor()
			}
		})
	}
}
