package segmentbuild_test

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/rank/segment"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/serve/query"
	"github.com/affinityengine/affinity/shared/store"
)

// profiles reads the profiles of all users as of now, as clients see them.
func (h *harness) profiles() map[string]affinity.Profile {
	h.T.Helper()
	var users []string
	stores, _ := h.store.Regions()
	if stores == nil {
		stores = map[string]*store.Store{"": h.store}
	}
	var err error
	for _, s := range stores {
		err = errors.Join(err, s.Users.ScanUserKeys(h.T.Context(), app, "", "", func(user string) error { users = append(users, user); return nil }))
	}
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
		must.Succeed(h.T, err)
		q, err := where.Compile(h.app().Strategy)
		must.Succeed(h.T, err)
		var want []string
		for _, u := range segment.Reference(q, profiles, h.Now.UnixMilli()) {
			want = append(want, u.Token)
		}
		if got, total := h.walk(where); !slices.Equal(got, want) || total != len(want) {
			h.T.Fatalf("%s: %s has %d users %v, want %d: %v\n%s", step, text, total, got, len(want), want, h.describe())
		}
	}
}

// walk returns all users who meet a condition, in the order of a walk over pages, and how
// many there are, from a process that has cached nothing.
func (h *harness) walk(where segment.Condition) (found []string, total int) {
	h.T.Helper()
	reader := query.New(h.store, h.engine, h.runner, func() time.Time { return h.Now }, slog.New(slog.DiscardHandler))
	for cursor := ""; ; {
		page, err := reader.Page(h.T.Context(), h.app(), where, 7, cursor)
		if err != nil {
			h.T.Fatalf("%v\n%s", err, h.describe())
		}
		for _, u := range page.Users {
			found = append(found, u.Token)
		}
		if cursor = page.Cursor; cursor == "" {
			return found, page.Total
		}
	}
}

// describe describes the manifest for an error.
func (h *harness) describe() string {
	var b strings.Builder
	for _, region := range h.app().UserRegions() {
		m := h.manifestIn(region)
		fmt.Fprintf(&b, "manifest %d of %s %s\n", m.Version, m.Generation, region)
		for _, p := range m.Parts {
			fmt.Fprintf(&b, "  %s delta %v [%s, %s) %d users, cut %d\n", p.ID, p.Delta, p.From, p.To, p.Users, p.Cut)
		}
	}
	return b.String()
}

// parts returns the parts that have rows of tokens or indexes.
func (h *harness) parts() []segment.PartID {
	h.T.Helper()
	found := map[segment.PartID]bool{}
	err := h.store.Segments.DropSegmentParts(h.T.Context(), app, func(id segment.PartID) bool { found[id] = true; return false })
	must.Succeed(h.T, err)
	return slices.Sorted(maps.Keys(found))
}
