package migration_test

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/score/schema"
)

// A backfill names a row that Bigtable refuses in the new schema, and copies all
// others. No verification passes without the row.
func TestRefusedCopyIsNamed(t *testing.T) {
	t.Parallel()
	var refused atomic.Value // a key
	refused.Store("")
	g := &gate{}
	s, client := storetest.NewWithClient(t, append(g.dial(), storetest.Refuse(func(table, key string) bool {
		return table == narrowTable && key == refused.Load()
	})...)...)
	w := newHarnessOn(t, s, client, g, schema.Wide, usual)
	events := visits(t, users[:3], 2)
	w.apply(events...)
	w.does(schema.Narrow, "start")
	refused.Store(key(events[3]))
	st := w.does(schema.Narrow, "backfill")
	if st.Job.State != job.Done || st.Job.Totals.Counts["faulty"] != 1 || st.Job.Totals.Counts["changed"] != 5 || !strings.Contains(st.Faults[0], key(events[3])) {
		t.Fatalf("the backfill is %s, %+v, faults %q", st.Job.State, st.Job.Totals, st.Faults)
	}
	st = w.does(schema.Narrow, "verify")
	if st.Job.State != job.Failed || !strings.HasPrefix(st.Faults[0], key(events[3])) || !strings.Contains(st.Faults[0], "not repaired") {
		t.Fatalf("the verification is %s, %+v, faults %q", st.Job.State, st.Job.Totals, st.Faults)
	}
	w.refuses(t, "cutover", schema.Narrow)
	refused.Store("")
	w.does(schema.Narrow, "verify") // repairs
	w.wantDone(w.does(schema.Narrow, "verify", "cutover"))
	w.wantBoth()
}
