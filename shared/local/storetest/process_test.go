package storetest_test

import (
	"testing"

	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/store"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// A Bigtable of another process serves the store, and counts what it reads.
func TestProcess(t *testing.T) {
	p := storetest.StartProcess(t)
	s, _ := storetest.OpenAt(t, p.Addr)
	if err := s.Changes.Add(t.Context(), "shop", 7, []string{"a", "b"}); err != nil {
		t.Fatal(err)
	}
	before := p.Counts(t)
	listed, _, err := s.Changes.List(t.Context(), "shop", store.ChangeSlot(0), 0)
	if err != nil || len(listed) != 2 {
		t.Fatalf("listed %v, %v", listed, err)
	}
	if n := p.Counts(t); n.Requests != before.Requests+1 || n.Rows != before.Rows+2 || n.Cells != before.Cells+2 {
		t.Errorf("counts %+v after %+v, want one request of 2 rows and cells", n, before)
	}
}
