package segmentbuild_test

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/affinityengine/affinity/shared/affinity"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/segment"
	"github.com/affinityengine/affinity/shared/store"
)

// profiles reads the profiles of all users as of now, as clients see them.
func (h *harness) profiles() map[string]affinity.Profile {
	h.T.Helper()
	var users []string
	err := h.store.ScanUserKeys(h.T.Context(), app, "", "", func(user string) error { users = append(users, user); return nil })
	profiles := map[string]affinity.Profile{}
	if err == nil {
		err = h.engine.ReadEach(h.T.Context(), h.app(), users, 0, func(user string, r profile.Result) error { profiles[user] = r.Profile; return nil })
	}
	if faulty := (profile.Faulty{}); err != nil && !errors.As(err, &faulty) {
		h.T.Fatal(err)
	}
	return profiles
}

// conditions are asked after each step of a test.
var conditions = []string{
	`{"filter":"color:c0","above":0}`,
	`{"filter":"color:c1","above":100,"halfLife":"7d"}`,
	`{"and":[{"filter":"color:c2","above":10},{"not":{"filter":"color:c3","above":50}}]}`,
	`{"or":[{"filter":"color:c0","above":150},{"filter":"color:c2","above":1,"halfLife":"7d"}]}`,
}

// wantExact checks that the answers from the parts are those of all profiles.
func (h *harness) wantExact(step string) {
	h.T.Helper()
	gate := h.Gate
	h.Gate = nil
	defer func() { h.Gate = gate }()
	profiles := h.profiles()
	for _, text := range conditions {
		where, err := segment.Parse([]byte(text))
		if err != nil {
			h.T.Fatal(err)
		}
		q, err := where.Compile(h.app().Strategy)
		if err != nil {
			h.T.Fatal(err)
		}
		var want []string
		for _, u := range segment.Reference(q, profiles, h.Now.UnixMilli()) {
			want = append(want, u.Token)
		}
		slices.Sort(want)
		if got, total := h.evaluate(q, profiles); !slices.Equal(got, want) || total != len(want) {
			h.T.Fatalf("%s: %s has %d users %v, want %d: %v\n%s", step, text, total, got, len(want), want, h.describe())
		}
	}
}

// describe describes the manifest for an error.
func (h *harness) describe() string {
	var b strings.Builder
	m := h.manifest()
	fmt.Fprintf(&b, "manifest %d of %s\n", m.Version, m.Generation)
	for _, p := range m.Parts {
		fmt.Fprintf(&b, "  %s delta %v [%s, %s) %d users, cut %d\n", p.ID, p.Delta, p.From, p.To, p.Users, p.Cut)
	}
	return b.String()
}

// evaluate answers a query from the parts of the manifest, sorted by token.
func (h *harness) evaluate(q *segment.Query, profiles map[string]affinity.Profile) (found []string, total int) {
	h.T.Helper()
	ctx, m, at := h.T.Context(), h.manifest(), h.Now.UnixMilli()
	check := func(err error) {
		h.T.Helper()
		if err != nil {
			h.T.Fatal(err)
		}
	}
	newest, since, deltas, ids := int64(0), int64(math.MaxInt64), []segment.PartID{}, []segment.PartID{}
	for _, p := range m.Parts {
		since = min(since, p.Cut)
		if ids = append(ids, p.ID); p.Delta {
			newest, deltas = max(newest, p.Cut), append(deltas, p.ID)
		}
	}
	setOuts, err := h.store.ReadSetOuts(ctx, app, deltas)
	check(err)
	listed, _, err := h.store.Changes(ctx, app, store.ChangeSlot(since), 0)
	check(err)
	untils, err := h.store.ReadSegmentUntils(ctx, app, ids, at)
	check(err)
	overlaid := map[string]bool{}
	for user, slot := range listed {
		for _, p := range m.Parts {
			if !p.Delta && user >= p.From && (p.To == "" || user < p.To) && int64(slot) >= max(p.Cut, newest) {
				overlaid[user] = true
			}
		}
	}
	for _, p := range m.Parts {
		tokens, out := h.tokens(p), &segment.Set{}
		for _, of := range setOuts {
			for _, o := range of[p.ID] {
				out.Add(o)
			}
		}
		expired := func(o uint16) {
			if !out.Has(o) && tokens[o] != "" {
				overlaid[tokens[o]] = true
			}
			out.Add(o)
		}
		check(segment.Expired(untils[p.ID], at, expired))
		for _, a := range p.Ahead {
			if at < a.Until {
				expired(a.Ordinal)
			}
		}
		for o, user := range tokens {
			if overlaid[user] {
				out.Add(uint16(o))
			}
		}
		hits, err := q.Scan(segment.Input{Part: p, Lists: h.lists(q, p, at), Out: out}, at, segment.MaxUsers)
		check(err)
		total += hits.Total
		for _, hit := range hits.Hits {
			found = append(found, tokens[hit.Ordinal])
		}
		for _, o := range hits.Edge {
			overlaid[tokens[o]] = true
		}
	}
	for user := range overlaid {
		if _, holds := q.Holds(profiles[user]); holds && profiles[user].Known {
			found, total = append(found, user), total+1
		}
	}
	slices.Sort(found)
	return found, total
}

// tokens reads the tokens of a part by ordinal, "" for a blanked one.
func (h *harness) tokens(p segment.Part) (tokens []string) {
	h.T.Helper()
	for n := range p.TokenRows() {
		row := store.SegmentRow{Part: p.ID, Kind: segment.Tokens, N: n}
		cells, err := h.store.ReadSegmentRows(h.T.Context(), app, []store.SegmentRow{row})
		if err != nil || len(cells[row]) == 0 {
			h.T.Fatalf("tokens %d of %s: %v", n, p.ID, err)
		}
		parsed, err := segment.ParseTokens(cells[row][0].Value)
		if err != nil {
			h.T.Fatal(err)
		}
		for i := range parsed.Len() {
			token, _ := parsed.At(i)
			tokens = append(tokens, token)
		}
	}
	return tokens
}

// lists reads the lists of a query's terms in a part.
func (h *harness) lists(q *segment.Query, p segment.Part, at int64) (lists [][]segment.Cell) {
	h.T.Helper()
	for i, term := range q.Terms {
		if p.Buckets == 0 {
			found, err := h.store.ReadSegmentLists(h.T.Context(), app, store.SegmentList{Term: term, Threshold: q.Lists(i, at), Parts: []segment.Part{p}})
			if err != nil {
				h.T.Fatal(err)
			}
			lists = append(lists, found[p.ID])
			continue
		}
		row := store.SegmentRow{Part: p.ID, Kind: segment.Bucket, N: segment.BucketOf(term.Facet, term.Value, p.Buckets)}
		cells, err := h.store.ReadSegmentRows(h.T.Context(), app, []store.SegmentRow{row})
		if err != nil {
			h.T.Fatal(err)
		}
		var list []segment.Cell
		for _, cell := range cells[row] {
			found, err := segment.Lists(cell.Value, []segment.Term{term})
			if err != nil {
				h.T.Fatal(err)
			}
			list = append(list, found[0]...)
		}
		lists = append(lists, list)
	}
	return lists
}

// parts returns the parts that have rows of tokens or indexes.
func (h *harness) parts() []segment.PartID {
	h.T.Helper()
	found := map[segment.PartID]bool{}
	err := h.store.DropSegmentParts(h.T.Context(), app, func(id segment.PartID) bool { found[id] = true; return false })
	if err != nil {
		h.T.Fatal(err)
	}
	return slices.Sorted(maps.Keys(found))
}
