package store_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/store"
)

// Refused links have their own rows and counts, and a deletion of either token finds them.
func testRefusedLinks(t *testing.T, b fixture) {
	link := func(n int64, user, known, reason string) store.RefusedLink {
		return store.RefusedLink{User: user, Known: known, Time: n, Event: fmt.Sprint("e", n), Reason: reason, At: refusedAt, Sequence: n}
	}
	all := []store.RefusedLink{link(3, "a/1", "bob", "late"), link(2, "c", "ann", "late"), link(1, "d", "ann/1", "weak")}
	r := store.Refusals{Counts: map[string]int64{"late": 7, "weak": 1, "deleted": 4}}
	for i := range all {
		r.Events = append(r.Events, all[len(all)-1-i].Refusal())
	}
	must.Succeed(t, b.Refused.RecordRefusedLinks(t.Context(), app, refusedAt, r))
	old := refusedAt.AddDate(0, 0, -1)
	must.Succeed(t, b.Refused.RecordRefusedLinks(t.Context(), app, old, store.Refusals{Counts: map[string]int64{"late": 2}}))
	expired := refusedAt.AddDate(0, 0, -store.RefusedDays-1)
	must.Succeed(t, b.Refused.RecordRefusedLinks(t.Context(), app, expired, store.Refusals{Counts: map[string]int64{"late": 9}}))
	refuse(t, b, app, refusedAt, store.Refused{At: refusedAt, Reason: "junk", Event: json.RawMessage(`{}`)})

	read := func() ([]store.RefusedLink, map[string]map[string]int64) {
		t.Helper()
		list, days, err := b.Refused.ReadRefusedLinks(t.Context(), app, refusedAt)
		must.Succeed(t, err)
		return list, days
	}
	list, days := read()
	if diff := cmp.Diff(all, list); diff != "" {
		t.Errorf("links (-want +got):\n%s", diff)
	}
	want := map[string]map[string]int64{"2026-11-20": {"late": 7, "weak": 1, "deleted": 4}, "2026-11-19": {"late": 2}}
	if diff := cmp.Diff(want, days); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	if events, counts := refused(t, b, app, refusedAt); len(events) != 1 || len(counts) != 1 {
		t.Errorf("refused events are %v, %v: they have links", events, counts)
	}
	for _, user := range []string{"a/1", "ann"} {
		if n, err := b.Refused.ForgetRefused(t.Context(), app, user); n != 1 || err != nil {
			t.Errorf("forgot %d links of %s, %v; want 1", n, user, err)
		}
	}
	if list, days := read(); len(list) != 1 || list[0] != all[2] || days["2026-11-20"]["late"] != 7 {
		t.Errorf("%v, %v are left, want the link of another user, and all counts", list, days)
	}
}
