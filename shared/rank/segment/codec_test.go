package segment_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/fault"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/rank/segment"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/strategy"
	"github.com/affinityengine/affinity/shared/wire"
)

func TestOrdinalsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ordinals := slices.Sorted(slices.Values(rapid.SliceOfDistinct(rapid.Uint16(), rapid.ID).Draw(t, "ordinals")))
		got, err := segment.ParseOrdinals(segment.AppendOrdinals(nil, ordinals))
		if err != nil || !slices.Equal(got, ordinals) {
			t.Fatalf("%v, %v; want %v", got, err, ordinals)
		}
	})
}

func TestManifestRoundTrip(t *testing.T) {
	m := segment.Manifest{
		Version: 1 << 40, ScoringVersion: 3, RetentionDays: 90, HalfLives: strategy.InDays(30, 180), Generation: "g1", BuiltAt: t0,
		Parts: []segment.Part{{ID: 1 << 60, From: "a", To: "b", Users: 5, Instant: t0, Ahead: []segment.Ahead{{Ordinal: 3, Until: t0}}}, {ID: 5, Delta: true, Buckets: 7}},
	}
	b, err := m.Encode()
	must.Succeed(t, err)
	got, err := segment.ParseManifest(b)
	if diff := cmp.Diff(m, got, cmp.Comparer(strategy.HalfLife.Equal)); diff != "" || err != nil {
		t.Errorf("manifest (-want +got): %s, %v", diff, err)
	}
	if from, to := segment.ManifestBetween(1 << 40); bytes.Compare(b, from) < 0 || bytes.Compare(b, to) >= 0 || segment.StoredVersion(b) != 1<<40 {
		t.Errorf("the stored form of version %d is not between its bounds", segment.StoredVersion(b))
	}
}

// parsers read each kind of stored value.
var parsers = map[string]func([]byte) error{
	"ordinals": func(b []byte) error { _, err := segment.ParseOrdinals(b); return err },
	"manifest": func(b []byte) error { _, err := segment.ParseManifest(b); return err },
	"part":     func(b []byte) error { _, err := segment.ParsePart(b); return err },
	"index":    func(b []byte) error { _, err := segment.ParseIndex(b); return err },
	"tokens":   func(b []byte) error { _, err := segment.ParseTokens(b); return err },
	"untils": func(b []byte) error {
		return segment.Expired([]segment.Cell{{Column: segment.UntilColumn(t0), Value: b}}, t0+day, func(uint16) {})
	},
	"values": func(b []byte) error { return segment.EachValue(b, func(string, string, int) error { return nil }) },
	"bucket": func(b []byte) error {
		lists, err := segment.Lists(b, []segment.Term{{Filter: event.Filter{Facet: "brand", Value: "v0"}}})
		if err != nil {
			return err
		}
		return scanCells(lists[0])
	},
	"small": func(b []byte) error { return scanCells([]segment.Cell{{Column: segment.SmallColumn, Value: b}}) },
	"bands": func(b []byte) error { return scanCells([]segment.Cell{{Column: "\x00\x00\x00", Value: b}}) },
}

func scanCells(cells []segment.Cell) error {
	q := &segment.Query{Terms: []segment.Term{{}}}
	_, err := q.Scan(segment.Input{Lists: [][]segment.Cell{cells}}, t0, 10)
	return err
}

// stored returns values of every kind.
func stored(t testing.TB) map[string][]byte {
	w := generate(rand.New(rand.NewPCG(3, 3)), nil, 1_500, 4)
	for i, user := range w.users[:100] {
		p := w.profiles[user]
		p.Until = t0 + int64(i)*minute
		w.profiles[user] = p
	}
	p := segment.NewPacker(w.scoring(), 0)
	base, delta := pack(t, p, w, w.users, false, t0), pack(t, p, w, w.users, true, t0)
	small := pack(t, p, w, w.users[:50], false, t0)
	manifest, err := segment.Manifest{Version: 2, Parts: []segment.Part{base.Part}}.Encode()
	must.Succeed(t, err)
	part, err := segment.EncodePart(base.Part)
	must.Succeed(t, err)
	v0 := event.Filter{Facet: "brand", Value: "v0"}
	return map[string][]byte{
		"ordinals": segment.AppendOrdinals(nil, []uint16{1, 7, 500}), "manifest": manifest, "part": part,
		"index": base.rows[segment.Index][0][0].Value, "tokens": base.rows[segment.Tokens][1][0].Value,
		"untils": base.rows[segment.Untils][0][0].Value, "values": base.rows[segment.Values][0][0].Value,
		"bucket": delta.rows[segment.Bucket][segment.BucketOf("brand", "v0", delta.Buckets)][0].Value,
		"small":  small.lists[v0][0].Value, "bands": base.lists[v0][0].Value,
	}
}

func TestDamageIsFound(t *testing.T) {
	for kind, value := range stored(t) {
		if err := parsers[kind](value); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		for i := range value {
			damaged := slices.Clone(value)
			damaged[i] ^= 0x10
			if parsers[kind](damaged) == nil {
				t.Errorf("%s: a changed byte %d of %d is not found", kind, i, len(value))
			}
		}
		if parsers[kind](value[:len(value)-1]) == nil {
			t.Errorf("%s: a missing byte is not found", kind)
		}
	}
}

// Whatever bytes have a right checksum, no parser fails in another way than by an error.
func FuzzParsers(f *testing.F) {
	for _, value := range stored(f) {
		f.Add(value[1 : len(value)-4])
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		sealed := segment.Seal(content)
		for _, parse := range parsers {
			_ = parse(sealed)
		}
	})
}

func TestNewerFormatsAreKnownAsSuch(t *testing.T) {
	b := segment.Seal([]byte("{}"))
	b = segment.Reseal(b, 2)
	if _, err := segment.ParseManifest(b); !errors.Is(err, wire.ErrNewer) {
		t.Errorf("%v, want wire.ErrNewer", err)
	}
}

func TestTokenRows(t *testing.T) {
	users := make([]string, 0, 600)
	w := world{profiles: map[string]affinity.Profile{}}
	for i := range 600 {
		user := strings.Repeat("a", i%7) + "-" + string(rune('a'+i%26)) + strings.Repeat("b", i%5) + string(rune('0'+i/60))
		users = append(users, user)
		w.profiles[user] = affinity.Profile{StrategyVersion: 3, RetentionDays: 90, Until: t0 + day}
	}
	slices.Sort(users)
	users = slices.Compact(users)
	part := pack(t, segment.NewPacker(w.scoring(), 0), w, users, false, t0)
	if !slices.Equal(part.users, users) {
		t.Fatal("the tokens differ from what was packed")
	}
	x, err := segment.ParseIndex(part.rows[segment.Index][0][0].Value)
	must.Succeed(t, err)
	for i, user := range users {
		row, err := segment.ParseTokens(part.rows[segment.Tokens][x.Row(user)][0].Value)
		must.Succeed(t, err)
		if place, found := row.Find(user); !found || x.Row(user)*segment.TokensPerRow+place != i {
			t.Errorf("%s is in place %d of row %d, %v; want ordinal %d", user, place, x.Row(user), found, i)
		}
		if _, found := row.Find(user + "!"); found {
			t.Errorf("%s! is found", user)
		}
	}
	if x.Row("") != -1 {
		t.Errorf("a token before all is in row %d", x.Row(""))
	}
}

func TestCursorsAreRefused(t *testing.T) {
	q := compile(t, conditions[3], nil)
	good := segment.Cursor{Where: q.Where(), At: t0, Order: -5, Token: "user-1"}
	if got, err := segment.ParseCursor(good.String(), q, t0+day); err != nil || got != good {
		t.Errorf("%+v, %v; want %+v", got, err, good)
	}
	other := compile(t, conditions[2], nil)
	for name, c := range map[string]struct {
		text string
		q    *segment.Query
		now  int64
		want string
	}{
		"of another condition": {good.String(), other, t0, "cursor is of another condition"},
		"old":                  {good.String(), q, t0 + day + 1, "cursor has expired after a day"},
		"changed":              {"B" + good.String()[1:], q, t0, "cursor is damaged"},
		"cut":                  {good.String()[:9], q, t0, "cursor is damaged"},
		"no base64":            {"?", q, t0, "cursor is damaged"},
		"empty":                {"", q, t0, "cursor is damaged"},
		"long":                 {strings.Repeat("A", segment.MaxCursor+1), q, t0, "cursor is damaged"},
	} {
		_, err := segment.ParseCursor(c.text, c.q, c.now)
		var refusal *fault.Error
		if !errors.As(err, &refusal) || !strings.HasPrefix(refusal.Message, c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
