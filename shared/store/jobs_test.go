package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/store"
)

func testJobDetails(t *testing.T, s fixture) {
	ctx := t.Context()
	put := func(app, row, version string, ended bool) {
		t.Helper()
		must.Succeed(t, s.Jobs.PutJobDetails(ctx, app, "", row, version, ended, []byte(app+"/"+row+"/"+version)))
	}
	wants := func(what, app string, versions map[string]string, rows ...string) {
		t.Helper()
		want := map[string]string{}
		for _, row := range rows {
			want[row] = app + "/" + row + "/" + versions[row]
		}
		found, err := s.Jobs.JobDetails(ctx, app, "", versions)
		got := map[string]string{}
		for row, value := range found {
			got[row] = string(value)
		}
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", what, err, diff)
		}
	}
	for _, version := range []string{"v1", "v2", "v3"} {
		put("shop", "moves,job-1,0000001", version, false)
	}
	put("shop", "moves,job-1,0000001", "v4", true)
	put("shop", "moves,job-2,", "v1", true)
	put("shop", "moves2,job-1,", "v1", false)
	put("shop-", "moves,job-1,0000001", "v1", false)
	row, every := "moves,job-1,0000001", map[string]string{"moves,job-1,0000001": "v2", "moves,job-2,": "v1", "moves,job-3,": "v1"}
	wants("several rows", "shop", every, row, "moves,job-2,")
	wants("of none", "shop", nil)
	must.Succeed(t, s.Jobs.DropJobDetails(ctx, "shop", "", row, "v2", "v9"))
	wants("a version that is dropped", "shop", every, "moves,job-2,")
	for _, version := range []string{"v1", "v3", "v4"} {
		wants("another version", "shop", map[string]string{row: version}, row)
	}
	must.Succeed(t, s.Jobs.DropOpenJobDetails(ctx, "shop", "", row))
	for version, left := range map[string][]string{"v1": nil, "v3": nil, "v4": {row}} {
		wants("after the end, "+version, "shop", map[string]string{row: version}, left...)
	}
	for range 2 {
		must.Succeed(t, s.Jobs.ForgetJobDetails(ctx, "shop", "moves,"))
	}
	wants("forgotten", "shop", map[string]string{row: "v4", "moves,job-2,": "v1"})
	wants("another collection", "shop", map[string]string{"moves2,job-1,": "v1"}, "moves2,job-1,")
	wants("another app", "shop-", map[string]string{row: "v1"}, row)
}

// More rows than one request reads or deletes.
func testManyJobDetails(t *testing.T, s fixture) {
	ctx, versions := t.Context(), map[string]string{}
	for n := range 1203 {
		row := fmt.Sprintf("moves,job-1,%07d", n)
		versions[row] = "v"
		must.Succeed(t, s.Jobs.PutJobDetails(ctx, "shop", "", row, "v", false, nil))
	}
	for _, want := range []int{len(versions), 0} {
		if got, err := s.Jobs.JobDetails(ctx, "shop", "", versions); len(got) != want || err != nil {
			t.Errorf("%d rows, %v; want %d", len(got), err, want)
		}
		must.Succeed(t, s.Jobs.ForgetJobDetails(ctx, "shop", "moves,job-1,"))
	}
}

// Details of what has ended last as long as its document, which TTL deletes up to three days
// late.
func TestJobDetailsLast(t *testing.T) {
	for _, table := range declared(t) {
		for _, f := range table.Families {
			if age := time.Duration(f.Days) * 24 * time.Hour; table.Name == store.TableJobs && age < job.Kept+4*24*time.Hour {
				t.Errorf("family %s lasts for %v, a document for %v", f.Name, age, job.Kept)
			}
		}
	}
}
