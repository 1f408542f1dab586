package store_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/rank/segment"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/store"
)

const (
	segmentDay     = int64(24 * 60 * 60 * 1000)
	segmentInstant = 20_000 * segmentDay
)

// writePart packs users who hold brand:Nike with scores 1, 2, 3 ..., and every hundredth
// color:Red, and writes the part. Profiles expire a day apart.
func writePart(t *testing.T, s *store.Store, id segment.PartID, delta bool, users []string) segment.Part {
	t.Helper()
	p := segment.NewPacker(segment.Scoring{Version: 1, RetentionDays: 90}, 0)
	p.Begin(id, delta, segmentInstant)
	for i, user := range users {
		profile := affinity.Profile{StrategyVersion: 1, RetentionDays: 90, Anchor: segmentInstant, Known: true, Until: segmentInstant + int64(i+1)*segmentDay}
		profile.Affinities = []affinity.Affinity{{Facet: "brand", Value: "Nike, Inc", Scores: []float64{float64(i + 1)}}}
		if i%100 == 0 {
			profile.Affinities = append(profile.Affinities, affinity.Affinity{Facet: "color", Value: "Red", Scores: []float64{1}})
		}
		profile.Total = len(profile.Affinities)
		must.Succeed(t, p.Add(user, profile.AppendBinary(nil)))
	}
	w := s.Segments.NewSegmentWriter(t.Context(), app, id)
	part, err := p.Finish(segmentInstant, w.Write)
	if err = errors.Join(err, w.Flush()); err != nil {
		t.Fatal(err)
	}
	return part
}

func segmentUsers(n int) []string {
	users := make([]string, n)
	for i := range users {
		users[i] = fmt.Sprintf("u%05d", i)
	}
	return users
}

func nike(above float64) segment.Term {
	return segment.Term{Filter: event.Filter{Facet: "brand", Value: "Nike, Inc"}, Above: above}
}

func scanNike(t *testing.T, part segment.Part, cells []segment.Cell, above float64) segment.Found {
	t.Helper()
	q := &segment.Query{Terms: []segment.Term{nike(above)}}
	f, err := q.Scan(segment.Input{Part: part, Lists: [][]segment.Cell{cells}}, segmentInstant, 1)
	must.Succeed(t, err)
	return f
}

func TestSegmentManifestSwaps(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.New(t), t.Context()
	swap := func(version int64, m segment.Manifest, want bool) {
		t.Helper()
		if ok, err := s.Segments.SwapSegmentManifest(ctx, app, version, m); ok != want || err != nil {
			t.Errorf("swap of version %d by %s = %v, %v; want %v", version, m.Generation, ok, err, want)
		}
	}
	first := segment.Manifest{Generation: "g1", ScoringVersion: 3, Parts: []segment.Part{{ID: 7, Users: 2, Instant: segmentInstant}}}
	swap(1, first, false)
	swap(0, first, true)
	swap(0, segment.Manifest{Generation: "late"}, false)
	swap(1, segment.Manifest{Generation: "g2"}, true)
	swap(1, segment.Manifest{Generation: "late"}, false)
	got, err := s.Segments.ReadSegmentManifest(ctx, app)
	if diff := cmp.Diff(segment.Manifest{Version: 2, Generation: "g2"}, got); diff != "" || err != nil {
		t.Errorf("manifest (-want +got): %s, %v", diff, err)
	}
	if other, err := s.Segments.ReadSegmentManifest(ctx, "other"); err != nil || other.Version != 0 {
		t.Errorf("manifest of another app: %+v, %v", other, err)
	}
}

// A list of many users is read from a threshold on, in every part that has it.
func TestSegmentListsAboveAThreshold(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.New(t), t.Context()
	const users = 20_000
	parts := []segment.Part{writePart(t, s, 1, false, segmentUsers(users)), writePart(t, s, 2, false, segmentUsers(300))}
	last := math.MaxInt
	for _, above := range []float64{0, 100, 10_000, 19_990, users} {
		found, err := s.Segments.ReadSegmentLists(ctx, app, store.SegmentList{Term: nike(above), Threshold: nike(above).Threshold(segmentInstant), Parts: parts})
		must.Succeed(t, err)
		size := 0
		for i, p := range parts {
			for _, c := range found[p.ID] {
				size += len(c.Value)
			}
			if got, want := scanNike(t, p, found[p.ID], above).Total, max(0, p.Users-int(above)); got != want {
				t.Errorf("above %v: part %d has %d users, want %d", above, i, got, want)
			}
		}
		if size > last || above == 19_990 && size > 60_000 {
			t.Errorf("above %v: %d bytes are read, and %d at the threshold before", above, size, last)
		}
		last = size
	}
	if found, err := s.Segments.ReadSegmentLists(ctx, app, store.SegmentList{Term: segment.Term{Filter: event.Filter{Facet: "brand", Value: "Nike"}}, Threshold: segment.NoOrder, Parts: parts}); err != nil || len(found) > 0 {
		t.Errorf("lists of a value that nobody holds: %v, %v", found, err)
	}
}

func TestSegmentDeltaLists(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	part := writePart(t, s, 5, true, segmentUsers(3_000))
	row := store.SegmentRow{Part: 5, Kind: segment.Bucket, N: segment.BucketOf("brand", "Nike, Inc", part.Buckets)}
	found, err := s.Segments.ReadSegmentRows(t.Context(), app, []store.SegmentRow{row})
	if err != nil || len(found[row]) != 1 {
		t.Fatalf("bucket %v, %v", found, err)
	}
	lists, err := segment.Lists(found[row][0].Value, []segment.Term{nike(0)})
	must.Succeed(t, err)
	if got := scanNike(t, part, lists[0], 1_000).Total; got != 2_000 {
		t.Errorf("%d users above 1000, want 2000", got)
	}
}

func TestSegmentRows(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.New(t), t.Context()
	part := writePart(t, s, 9, false, segmentUsers(600))
	index, second := store.SegmentRow{Part: 9, Kind: segment.Index}, store.SegmentRow{Part: 9, Kind: segment.Tokens, N: 1}
	found, err := s.Segments.ReadSegmentRows(ctx, app, []store.SegmentRow{index, second, {Part: 9, Kind: segment.Tokens, N: 99}})
	if err != nil || len(found) != 2 {
		t.Fatalf("%d rows, %v; want 2", len(found), err)
	}
	x, err := segment.ParseIndex(found[index][0].Value)
	if err != nil || x.Row("u00300") != 1 || part.TokenRows() != 3 {
		t.Errorf("u00300 is in row %d, %v; the part has %d", x.Row("u00300"), err, part.TokenRows())
	}
	expired := func(at int64) (users []int) {
		cells, err := s.Segments.ReadSegmentUntils(ctx, app, []segment.PartID{9}, at)
		if err = errors.Join(err, segment.Expired(cells[9], at, func(o uint16) { users = append(users, int(o)) })); err != nil {
			t.Fatal(err)
		}
		slices.Sort(users)
		return users
	}
	if got := expired(segmentInstant + 3*segmentDay); !slices.Equal(got, []int{0, 1, 2}) {
		t.Errorf("after 3 days %v have expired", got)
	}
	if got := expired(segmentInstant + 3*segmentDay - 1); !slices.Equal(got, []int{0, 1}) {
		t.Errorf("before the third day ends %v have expired", got)
	}
	holders := map[string]int{}
	err = s.Segments.ScanSegmentValues(ctx, app, []segment.PartID{9}, func(_ segment.PartID, cell []byte) error {
		return segment.EachValue(cell, func(facet, value string, n int) error { holders[facet+":"+value] += n; return nil })
	})
	if diff := cmp.Diff(map[string]int{"brand:Nike, Inc": 600, "color:Red": 6}, holders); diff != "" || err != nil {
		t.Errorf("values (-want +got): %s, %v", diff, err)
	}
	want := map[segment.PartID]map[segment.PartID][]uint16{9: {1: {0, 5, 65_535}, 2: {7}}}
	must.Succeed(t, s.Segments.WriteSetOuts(ctx, app, 9, want[9]))
	if got, err := s.Segments.ReadSetOuts(ctx, app, []segment.PartID{9, 10}); err != nil || cmp.Diff(want, got) != "" {
		t.Errorf("set-outs %v, %v; want %v", got, err, want)
	}
}

func TestBuiltPartsAreReplacedByTheirFirstUser(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.New(t), t.Context()
	for _, p := range []segment.Part{
		{ID: 1, Generation: "g1", To: "m"}, {ID: 2, Generation: "g1", From: "m"}, {ID: 3, Generation: "g1", From: "m", To: "q"}, {ID: 4, Generation: "g1,x"},
	} {
		must.Succeed(t, s.Segments.WriteBuiltPart(ctx, app, p))
	}
	got, err := s.Segments.BuiltParts(ctx, app, "g1")
	want := []segment.Part{{ID: 1, Generation: "g1", To: "m"}, {ID: 3, Generation: "g1", From: "m", To: "q"}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("parts (-want +got): %s, %v", diff, err)
	}
}

// Tokens of a part that are blanked at the same time are all blanked, also the first of a
// row, and no row of the part says them any more.
func TestTokensAreBlanked(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.New(t), t.Context()
	users := segmentUsers(600)
	base, delta := writePart(t, s, 1, false, users), writePart(t, s, 2, true, users[250:260])
	if _, err := s.Segments.SwapSegmentManifest(ctx, app, 0, segment.Manifest{Parts: []segment.Part{base, delta}}); err != nil {
		t.Fatal(err)
	}
	gone := []string{users[0], users[1], users[255], users[256], users[257], users[599]}
	var wg sync.WaitGroup
	for _, user := range gone {
		wg.Go(func() {
			if _, err := s.Segments.BlankSegmentToken(ctx, app, user); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n, err := s.Segments.BlankSegmentToken(ctx, app, "nobody"); n != 0 || err != nil {
		t.Errorf("an unknown token is blanked in %d parts, %v", n, err)
	}
	for row := range 3 {
		at := store.SegmentRow{Part: 1, Kind: segment.Tokens, N: row}
		index := store.SegmentRow{Part: 1, Kind: segment.Index}
		found, err := s.Segments.ReadSegmentRows(ctx, app, []store.SegmentRow{at, index})
		must.Succeed(t, err)
		tokens, err := segment.ParseTokens(found[at][0].Value)
		x, err2 := segment.ParseIndex(found[index][0].Value)
		if err = errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		for i := range tokens.Len() {
			user := users[row*segment.TokensPerRow+i]
			token, ok := tokens.At(i)
			if blanked := slices.Contains(gone, user); ok == blanked || ok && (token != user || x.Row(user) != row) {
				t.Errorf("place %d of row %d has token %q, %v, in row %d by the index; want %s, blanked: %v", i, row, token, ok, x.Row(user), user, blanked)
			}
		}
	}
}

func TestPartsAreDropped(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.New(t), t.Context()
	for id := range segment.PartID(4) {
		p := writePart(t, s, id, id == 3, segmentUsers(700))
		p.Generation, p.From = "g1", id.String()
		must.Succeed(t, s.Segments.WriteBuiltPart(ctx, app, p))
	}
	must.Succeed(t, s.Segments.DropSegmentParts(ctx, app, func(id segment.PartID) bool { return id != 2 }))
	keys, err := s.Rows.FindRows(ctx, store.AppRows{App: app, Table: store.TableSegments}, 1_000)
	must.Succeed(t, err)
	if len(keys) != 9 { // 2 lists, 3 rows of tokens, index, untils, values, description
		t.Errorf("%d rows are left, want 9: %q", len(keys), keys)
	}
}

func TestSegmentSizes(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.New(t), t.Context()
	for day, users := range map[string]int{"2026-11-24": 7, "2026-11-23": 5} {
		must.Succeed(t, s.Segments.SetSegmentSize(ctx, app, "fans", day, users))
	}
	got, err := s.Segments.SegmentSizes(ctx, app, "fans")
	if diff := cmp.Diff([]store.SegmentSize{{"2026-11-23", 5}, {"2026-11-24", 7}}, got); diff != "" || err != nil {
		t.Errorf("sizes (-want +got): %s, %v", diff, err)
	}
	must.Succeed(t, s.Segments.DeleteSegmentSizes(ctx, app, "fans"))
	if got, err := s.Segments.SegmentSizes(ctx, app, "fans"); len(got) > 0 || err != nil {
		t.Errorf("deleted sizes %v, %v", got, err)
	}
}

func TestExportedFiles(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.New(t), t.Context()
	err := errors.Join(s.Segments.WriteExportChunk(ctx, app, "j1", 0, []byte("a\n")), s.Segments.WriteExportChunk(ctx, app, "j1", 1, []byte("b\n")))
	must.Succeed(t, err)
	if _, _, complete, err := s.Segments.Export(ctx, app, "j1"); complete || err != nil {
		t.Errorf("an export that has not ended is complete: %v, %v", complete, err)
	}
	must.Succeed(t, s.Segments.EndExport(ctx, app, "j1", 2, 2))
	chunks, lines, complete, err := s.Segments.Export(ctx, app, "j1")
	chunk, err2 := s.Segments.ReadExportChunk(ctx, app, "j1", 1)
	if chunks != 2 || lines != 2 || !complete || string(chunk) != "b\n" || err != nil || err2 != nil {
		t.Errorf("%d chunks, %d lines, complete %v, the second %q, %v %v", chunks, lines, complete, chunk, err, err2)
	}
	if chunk, err := s.Segments.ReadExportChunk(ctx, app, "j2", 0); chunk != nil || err != nil {
		t.Errorf("a file that does not exist has %q, %v", chunk, err)
	}
}

func TestPartIDsGrowWithTime(t *testing.T) {
	at := time.UnixMilli(segmentInstant)
	if a, b := segment.NewPartID(at, math.MaxUint32), segment.NewPartID(at.Add(time.Millisecond), 0); a >= b || !a.Begun().Equal(at) {
		t.Errorf("%s of %s, then %s", a, a.Begun(), b)
	}
}
