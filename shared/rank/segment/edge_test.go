package segment_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/rank/segment"
)

// A threshold at a user's very score, or next to it, is decided by the profiles of the
// users there.
func TestThresholdsAtAScore(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	w := generate(r, halfLives(t, "30", "12h"), 2_000, 6)
	parts := []packed{pack(t, segment.NewPacker(w.scoring(), 0), w, w.users, false, t0)}
	out, edges := []*segment.Set{nil}, 0
	for range 40 {
		at := t0 + r.Int64N(5*day)
		profiles := w.at(at)
		a := profiles[w.users[r.IntN(len(w.users))]].Affinities
		if len(a) == 0 {
			continue
		}
		for _, factor := range []float64{1, 1 - 1e-12, 1 + 1e-12, 1 - 1e-9, 1 + 1e-9} {
			where := fmt.Sprintf(`{"filter":"brand:%s","above":%v}`, a[0].Value, a[0].Scores[0]*factor)
			q := compile(t, where, w.halfLives)
			compareWalk(t, where, q, parts, out, nil, profiles, at, segment.Reference(q, profiles, at))
			f, err := q.Scan(segment.Input{Part: parts[0].Part, Lists: [][]segment.Cell{parts[0].read(t, q.Terms[0], q.Lists(0, at))}}, at, 1)
			must.Succeed(t, err)
			edges += len(f.Edge)
		}
	}
	if edges == 0 {
		t.Error("no user is at the edge of a threshold")
	}
}

// Plain sums are whole numbers, so a threshold that many users reach exactly needs none of their
// profiles.
func TestPlainSumsHaveNoEdge(t *testing.T) {
	w := generate(rand.New(rand.NewPCG(8, 8)), nil, 2_000, 3)
	part := pack(t, segment.NewPacker(w.scoring(), 0), w, w.users, false, t0)
	profiles := w.at(t0 + day)
	for _, above := range []string{"0", "0.5", "1", "10.999999999999", "11", "11.000000000001", "21"} {
		q := compile(t, `{"filter":"brand:v0","above":`+above+`}`, nil)
		f, err := q.Scan(segment.Input{Part: part.Part, Lists: [][]segment.Cell{part.read(t, q.Terms[0], q.Lists(0, t0+day))}}, t0+day, 5)
		must.Succeed(t, err)
		if want := len(segment.Reference(q, profiles, t0+day)); f.Total != want || len(f.Edge) > 0 {
			t.Errorf("above %s: %d users and %d at the edge, want %d", above, f.Total, len(f.Edge), want)
		}
	}
}

// Minutes as a half-life make scores vanish: nobody holds the filter any more, in profiles
// and lists alike.
func TestScoresThatVanish(t *testing.T) {
	w := generate(rand.New(rand.NewPCG(8, 9)), halfLives(t, "5m", "3650"), 1_500, 3)
	parts := []packed{pack(t, segment.NewPacker(w.scoring(), 0), w, w.users, false, t0)}
	for _, at := range []int64{t0, t0 + day, t0 + 3*day + 11, t0 + 40*day} {
		profiles := w.at(at)
		for _, h := range []string{"5m", "3650"} {
			where := withHalfLife(`{"or":[{"filter":"brand:v0"},{"filter":"brand:v1","above":3}]}`, h)
			q := compile(t, where, w.halfLives)
			compareWalk(t, where, q, parts, []*segment.Set{nil}, nil, profiles, at, segment.Reference(q, profiles, at))
		}
	}
}

// A user whose profile is ahead of the clock does not decay until then.
func TestUsersAhead(t *testing.T) {
	w := generate(rand.New(rand.NewPCG(8, 1)), halfLives(t, "30"), 50, 3)
	ahead := w.profiles[w.users[7]]
	ahead.Anchor = t0 + 4*minute
	w.profiles[w.users[7]] = ahead
	slow := w.profiles[w.users[9]]
	slow.Anchor = t0 + minute
	w.profiles[w.users[9]] = slow
	p := segment.NewPacker(w.scoring(), 0)
	p.Begin(1, false, t0)
	for _, user := range w.users {
		must.Succeed(t, p.Add(user, w.profiles[user].AppendBinary(nil)))
	}
	part := finish(t, p, t0+2*minute)
	if len(part.Ahead) != 1 || part.users[part.Ahead[0].Ordinal] != w.users[7] || part.Ahead[0].Until != t0+4*minute {
		t.Errorf("ahead %v, want only %s", part.Ahead, w.users[7])
	}
}

func TestPackerRefuses(t *testing.T) {
	w := generate(rand.New(rand.NewPCG(8, 2)), halfLives(t, "30"), 5, 6)
	p := segment.NewPacker(w.scoring(), 0)
	p.Begin(1, false, t0)
	add := func(user string, stored []byte) error { t.Helper(); return p.Add(user, stored) }
	good := w.profiles[w.users[0]].AppendBinary(nil)
	must.Succeed(t, add("b", good))
	other := w.profiles[w.users[1]]
	other.RetentionDays = 30
	for name, err := range map[string]error{
		"an earlier user":          add("a", good),
		"the same user":            add("b", good),
		"a damaged profile":        add("c", good[:len(good)-1]),
		"another retention":        add("c", other.AppendBinary(nil)),
		"a profile without a byte": add("c", nil),
	} {
		if err == nil {
			t.Errorf("%s is packed", name)
		}
	}
	if err := add("c", good); err != nil {
		t.Error(err)
	}
	if part := finish(t, p, t0); part.Users != 2 || part.Affinities != 2*len(w.profiles[w.users[0]].Affinities) {
		t.Errorf("the part has %d users and %d affinities", part.Users, part.Affinities)
	}
}

// A packer makes the same rows whatever it has packed before.
func TestPackerKeepsNothing(t *testing.T) {
	w := generate(rand.New(rand.NewPCG(8, 3)), halfLives(t, "30", "7d"), 1_800, 6)
	used := segment.NewPacker(w.scoring(), 0)
	pack(t, used, w, w.users[:900], false, t0-day)
	used.Begin(5, true, t0)
	must.Succeed(t, used.Add(w.users[3], w.profiles[w.users[3]].AppendBinary(nil)))
	got, want := pack(t, used, w, w.users[900:], false, t0), pack(t, segment.NewPacker(w.scoring(), 0), w, w.users[900:], false, t0)
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Error("the rows differ from those of a new packer")
	}
}

// The first hits of a long list are its highest scores, at each place of a walk.
func TestFirstHitsOfALongList(t *testing.T) {
	part := holders(t, 9_000)[0]
	q := compile(t, `{"filter":"brand:v0"}`, halfLives(t, "30"))
	in := segment.Input{Part: part.Part, Lists: [][]segment.Cell{part.read(t, q.Terms[0], q.Lists(0, t0))}}
	all, err := q.Scan(in, t0, 9_000)
	if err != nil || len(all.Hits) != 9_000 {
		t.Fatalf("%d hits, %v", len(all.Hits), err)
	}
	for i := 0; i < 9_000; i += 83 {
		if i > 0 {
			in.After, in.AfterOrdinal = &segment.Cursor{Order: all.Hits[i-1].Order}, int(all.Hits[i-1].Ordinal)+1
		}
		f, err := q.Scan(in, t0, 83)
		if err != nil || f.Total != 9_000 {
			t.Fatalf("total %d, %v", f.Total, err)
		}
		if want := all.Hits[i:min(i+83, 9_000)]; !slices.Equal(f.Hits, want) {
			t.Fatalf("hits from %d: %v, want %v", i, f.Hits, want)
		}
	}
	if !slices.IsSortedFunc(all.Hits, func(a, b segment.Hit) int { return cmp.Compare(b.Order, a.Order) }) {
		t.Error("the hits are not sorted")
	}
}
