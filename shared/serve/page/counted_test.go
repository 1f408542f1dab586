package page

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/rank/feed"
	"github.com/affinityengine/affinity/shared/rank/ranking"
)

// Pages by offsets are parts of one order, from both ends, and their cursors continue it.
func TestPagesByOffset(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(1).fill(rapid.IntRange(1, 40).Draw(rt, "posts"))
		q := rapid.SampledFrom([]Request{{Order: feed.Suggested, User: "ann"}, {Order: feed.Suggested}, {Order: feed.Latest}, {Order: feed.Latest, Oldest: true}}).Draw(rt, "order")
		q.Counted, q.Limit = true, 100
		whole := ids(w.read(t, 0, q))
		if rapid.Bool().Draw(rt, "exclude") {
			q.Exclude = append(rapid.SliceOf(rapid.SampledFrom(whole)).Draw(rt, "excluded"), "none")
			whole = slices.DeleteFunc(whole, func(id string) bool { return slices.Contains(q.Exclude, id) })
		}
		if latest := ids(w.read(t, 0, Request{Order: feed.Latest, Limit: 100, Exclude: q.Exclude})); q.Oldest {
			slices.Reverse(latest)
			if diff := cmp.Diff(latest, whole); diff != "" {
				rt.Fatalf("the oldest first (-want +got):\n%s", diff)
			}
		}
		q.Limit = rapid.IntRange(1, 12).Draw(rt, "limit")
		q.Offset = rapid.IntRange(0, 45).Draw(rt, "offset")
		p := w.read(t, 0, q)
		rest := whole[min(q.Offset, len(whole)):]
		if diff := cmp.Diff(append([]string{}, rest[:min(q.Limit, len(rest))]...), ids(p)); diff != "" || p.Total != len(whole) {
			rt.Fatalf("%+v: total %d (-want +got):\n%s", q, p.Total, diff)
		}
		if more := len(rest) > q.Limit; (p.Cursor != "") != (more && !q.Oldest) {
			rt.Fatalf("%+v: cursor %q of %d", q, p.Cursor, len(rest))
		}
		if p.Cursor != "" {
			q.Cursor = p.Cursor
			if diff := cmp.Diff(rest[q.Limit:], w.walkAll(t, q)); diff != "" {
				rt.Fatalf("%+v: the walk from there (-want +got):\n%s", q, diff)
			}
		}
	})
}

// A page by its number never takes the posts of the next one, in the place of those that are gone; the
// walk by its cursor does.
func TestGapsOfCountedPages(t *testing.T) {
	for _, order := range []feed.Order{feed.Latest, feed.Suggested} {
		w := newWorld(1).fill(9)
		w.read(t, 0, Request{Order: order, Limit: 1}) // the list
		delete(w.store.posts, "post-001")
		delete(w.store.posts, "post-004")
		w.clock.pass(recordTTL)
		q := Request{Order: order, Limit: 3, Counted: true}
		first := w.read(t, 0, q)
		q.Offset = 3
		second := w.read(t, 0, q)
		if diff := cmp.Diff([]string{"post-000", "post-002", "post-003", "post-005"}, append(ids(first), ids(second)...)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", order, diff)
		}
		q.Offset, q.Cursor = 0, first.Cursor
		if diff := cmp.Diff([]string{"post-003", "post-005", "post-006", "post-007", "post-008"}, w.walkAll(t, q)); diff != "" {
			t.Errorf("%s, by the cursor (-want +got):\n%s", order, diff)
		}
	}
}

// Only records with a post are in the format wordpress, and only they count.
func TestOnlyPosts(t *testing.T) {
	w := newWorld(1).fill(9)
	w.store.wordpress = map[string]bool{"post-002": true, "post-003": true, "post-007": true}
	q := Request{Order: feed.Latest, Limit: 2, Format: feed.WordPress}
	p := w.read(t, 0, q)
	if diff := cmp.Diff([]string{"post-002", "post-003"}, ids(p)); diff != "" || p.Total != 3 || string(p.Items[0].Text) != `{"id":"post-002"}` {
		t.Errorf("total %d (-want +got):\n%s", p.Total, diff)
	}
	if diff := cmp.Diff([]string{"post-002", "post-003", "post-007"}, w.walkAll(t, q)); diff != "" {
		t.Errorf("the walk (-want +got):\n%s", diff)
	}
	q.Format = feed.Records
	if p := w.read(t, 0, q); p.Total != 9 {
		t.Errorf("the total of records is %d", p.Total)
	}
	w.feed.Seen = ranking.Exclude
	q = Request{Order: feed.Suggested, User: "ann", Limit: 2, Counted: true, Offset: 2, Format: feed.WordPress}
	if p := w.read(t, 0, q); p.Total != 3 || len(p.Items) != 1 {
		t.Errorf("%d of %d posts that ann has not seen", len(p.Items), p.Total)
	}
}

func (f *fakeStore) text(id string, p post) string {
	if !f.wordpress[id] {
		return p.record(id)
	}
	return fmt.Sprintf(`{"objectID":%q,"color":%q,"publishedAt":%d,"wordpress":"{\"id\":\"%s\"}"}`, id, p.color, p.at, id)
}
