package store_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/rank/segment"
	"github.com/affinityengine/affinity/shared/store"
)

// Samples that a purge removes while they are copied do not stay in the copy. Those that it
// left do, and what an earlier copy had in their slots does not come back.
func TestStaleSamplesAreDropped(t *testing.T) {
	place := store.Place{Read: "eu", Write: []string{"eu", "us"}}
	during := func() {}
	eu, us, both := twoRegions(t, &place, func() { during() })
	ctx, now := t.Context(), time.Now()
	refuse := func(user string) {
		// A row has one ring for each reason. Enough events overwrite all slots.
		for range 16 * store.RefusedOfReason { // a slot is left once in some 100,000 runs
			must.Succeed(t, eu.Refused.RecordRefused(ctx, app, now, store.Refusals{Counts: map[string]int64{user[:1]: 1},
				Events: []store.Refused{{At: now, Reason: user[:1], Event: json.RawMessage(`{"userToken":"` + user + `"}`)}}}))
		}
	}
	rows := store.AppRows{App: app, Table: store.TableRefused}
	of := func(s *store.Store, user string) (n int) {
		t.Helper()
		list, _, err := s.Refused.ReadRefused(ctx, app, now)
		must.Succeed(t, err)
		for _, r := range list {
			if strings.Contains(string(r.Event), `"`+user+`"`) {
				n++
			}
		}
		return n
	}
	refuse("ann")
	refuse("bob")
	must.Succeed(t, us.Rows.CopyRows(ctx, eu, "eu", rows, nothing))
	refuse("abe") // in the slots of ann
	during = func() {
		during = func() {}
		_, err := both.Refused.ForgetRefused(ctx, app, "bob")
		must.Succeed(t, err)
	}
	must.Succeed(t, us.Rows.CopyRows(ctx, eu, "eu", rows, nothing))
	if of(us, "bob") == 0 {
		t.Error("the copy has no events of bob: the test shows nothing")
	}
	must.Succeed(t, us.Rows.DropStaleRefused(ctx, eu, "eu", rows, nothing))
	if n, want := of(us, "abe"), of(eu, "abe"); of(us, "bob") > 0 || n != want || n == 0 {
		t.Errorf("%d events of bob, and %d of abe, want %d", of(us, "bob"), n, want)
	}
	// The rows are deleted next. The step may begin again after that.
	left := of(us, "abe")
	must.Succeed(t, eu.Rows.DeleteRows(ctx, rows, nothing))
	must.Succeed(t, us.Rows.DropStaleRefused(ctx, eu, "eu", rows, nothing))
	if n := of(us, "abe"); n != left {
		t.Errorf("%d events of abe after the region left has none, want %d", n, left)
	}
	_, err := us.Refused.ForgetRefused(ctx, app, "abe")
	must.Succeed(t, err)
	if of(us, "ann") > 0 {
		t.Error("overwritten events of ann come back")
	}
}

// A token that a purge blanks in both regions while segments are copied does not stay in the copy.
func TestBlankedTokensAreScrubbed(t *testing.T) {
	users := segmentUsers(1300)
	gone := []string{users[0], users[1], users[700], users[1299]}
	for _, when := range []string{"before the first write", "before the last write"} {
		place := store.Place{Read: "eu", Write: []string{"eu", "us"}}
		during := func() {}
		eu, us, both := twoRegions(t, &place, func() { during() })
		ctx := t.Context()
		parts := []segment.Part{writePart(t, eu, 1, false, users), writePart(t, eu, 2, true, users[690:710])}
		_, err := eu.Segments.SwapSegmentManifest(ctx, app, 0, segment.Manifest{Parts: parts})
		must.Succeed(t, err)
		rows, writes, last := store.AppRows{App: app, Table: store.TableSegments}, 0, 0
		blank := func() {
			during = func() {}
			for _, user := range gone {
				_, err := both.Segments.BlankSegmentToken(ctx, app, user)
				must.Succeed(t, err)
			}
		}
		if when == "before the last write" {
			during = func() { last++ }
			must.Succeed(t, us.Rows.CopyRows(ctx, eu, "eu", rows, nothing))
			must.Succeed(t, us.Rows.DeleteRows(ctx, rows, nothing))
			last /= 2
		}
		during = func() {
			if writes++; writes >= last {
				blank()
			}
		}
		must.Succeed(t, us.Rows.CopyRows(ctx, eu, "eu", rows, nothing))
		if when == "before the first write" && len(tokensOf(t, us, 2)) != 20 {
			t.Error("the copy has no token that is blanked: the test shows nothing")
		}
		must.Succeed(t, us.Rows.ScrubSegments(ctx, eu, rows, nothing))
		for _, part := range parts {
			want := tokensOf(t, eu, part.ID)
			if got := tokensOf(t, us, part.ID); strings.Join(got, " ") != strings.Join(want, " ") {
				t.Errorf("%s: part %s has %d tokens, want %d", when, part.ID, len(got), len(want))
			}
			index := store.SegmentRow{Part: part.ID, Kind: segment.Index}
			found, err := us.Segments.ReadSegmentRows(ctx, app, []store.SegmentRow{index})
			must.Succeed(t, err)
			for _, user := range gone {
				if strings.Contains(string(found[index][0].Value), user) {
					t.Errorf("%s: the index of part %s names %s", when, part.ID, user)
				}
			}
		}
		must.Succeed(t, us.Rows.ScrubSegments(ctx, eu, rows, nothing)) // it has nothing left to do
	}
}

// tokensOf returns the tokens of a part.
func tokensOf(t *testing.T, s *store.Store, part segment.PartID) (all []string) {
	t.Helper()
	for n := 0; ; n++ {
		at := store.SegmentRow{Part: part, Kind: segment.Tokens, N: n}
		found, err := s.Segments.ReadSegmentRows(t.Context(), app, []store.SegmentRow{at})
		must.Succeed(t, err)
		if len(found[at]) == 0 {
			return all
		}
		row, err := segment.ParseTokens(found[at][0].Value)
		must.Succeed(t, err)
		for i := range row.Len() {
			if token, ok := row.At(i); ok {
				all = append(all, token)
			}
		}
	}
}
