package segment_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/shared/rank/segment"
	"github.com/affinityengine/affinity/shared/score/affinity"
)

var conditions = []string{
	`{"filter":"brand:v0"}`,
	`{"filter":"brand:v1","above":5}`,
	`{"filter":"brand:v0","above":11}`,
	`{"and":[{"filter":"brand:v0","above":1},{"filter":"brand:v2"}]}`,
	`{"or":[{"filter":"brand:v3","above":2},{"filter":"brand:v0","above":9.5}]}`,
	`{"and":[{"filter":"brand:v1"},{"not":{"filter":"brand:v0","above":3}}]}`,
	`{"and":[{"not":{"filter":"brand:v2"}},{"or":[{"filter":"brand:v4"},{"filter":"brand:v0","above":6}]}]}`,
	`{"or":[{"filter":"brand:none"},{"filter":"brand:v5"}]}`,
}

// The answer from parts, deltas over them and profiles of users who are set out equals
// what Reference finds: total and every page of a walk.
func TestQueryEqualsReference(t *testing.T) {
	for name, texts := range map[string][]string{"none": nil, "one": {"30"}, "three": {"30", "12h", "180"}, "minutes": {"3m", "7d"}} {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, uint64(len(texts))))
			w := generate(r, halfLives(t, texts...), 3_000, 8)
			packer := segment.NewPacker(w.scoring(), 0)
			parts := []packed{
				pack(t, packer, w, w.users[:1_200], false, t0),
				pack(t, packer, w, w.users[1_200:], false, t0+7*minute),
			}
			out := []*segment.Set{{}, {}, {}}
			// A later delta holds users of both parts, whose profiles have changed.
			changed := generate(r, w.halfLives, 3_000, 8)
			var delta, overlaid []string
			for _, user := range w.users {
				switch r.IntN(10) {
				case 0:
					delta = append(delta, user)
				case 1:
					overlaid = append(overlaid, user)
				default:
					continue
				}
				w.profiles[user] = changed.profiles[user]
				for i, p := range parts {
					if at := p.find(user); at < len(p.users) && p.users[at] == user {
						out[i].Add(uint16(at))
					}
				}
			}
			parts = append(parts, pack(t, packer, w, delta, true, t0+day))
			for _, at := range []int64{t0 + day, t0 + day + 123_457, t0 + 20*day} {
				profiles := w.at(at)
				for n := range conditions {
					for _, h := range append([]string{""}, texts...) {
						where := conditions[n]
						if h != "" {
							where = withHalfLife(where, h)
						}
						q := compile(t, where, w.halfLives)
						want := segment.Reference(q, profiles, at)
						compareWalk(t, where, q, parts, out, overlaid, profiles, at, want)
					}
				}
			}
		})
	}
}

func compareWalk(t *testing.T, where string, q *segment.Query, parts []packed, out []*segment.Set, overlaid []string,
	profiles profilesOf, at int64, want []segment.User) {
	t.Helper()
	var after *segment.Cursor
	for from := 0; ; {
		total, page := query(t, q, parts, out, overlaid, profiles, at, 700, after)
		if total != len(want) {
			t.Fatalf("%s at +%d: total %d, want %d", where, at-t0, total, len(want))
		}
		for i, u := range page {
			if w := want[from+i]; u.Token != w.Token || u.Order != w.Order {
				t.Fatalf("%s at +%d: user %d is %s at %d, want %s at %d", where, at-t0, from+i, u.Token, u.Order, w.Token, w.Order)
			}
		}
		if from += len(page); len(page) < 700 {
			if from != len(want) {
				t.Fatalf("%s at +%d: a walk finds %d users, want %d", where, at-t0, from, len(want))
			}
			return
		}
		last := page[len(page)-1]
		cursor, err := segment.ParseCursor(segment.Cursor{Where: q.Where(), At: at, Order: last.Order, Token: last.Token}.String(), q, at)
		if err != nil {
			t.Fatal(err)
		}
		after = &cursor
	}
}

type profilesOf = map[string]affinity.Profile

// withHalfLife puts a half-life into every filter of a condition.
func withHalfLife(where, h string) string {
	if strings.Trim(h, "0123456789") != "" {
		h = `"` + h + `"`
	}
	return strings.ReplaceAll(where, `{"filter"`, `{"halfLife":`+h+`,"filter"`)
}
