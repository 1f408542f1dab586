package segmentbuild_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"testing"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc"

	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/kinds/segmentbuild"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/store"
)

var memoryUsers = flag.Int("memoryusers", 16_000, "how many users BenchmarkBuildMemory builds")

// addrVariable makes TestBuildOfAnotherProcess build the users in the Bigtable at that
// address, under the strategy that was set so many times.
const addrVariable, timesVariable, instance = "AFFINITY_BUILD_BIGTABLE", "AFFINITY_BUILD_STRATEGIES", "memory"

// BenchmarkBuildMemory runs a whole build, from its start to the swap, in a process of its
// own, and reports the peak of the memory that the process had resident. The strategy is
// new, so the build computes all profiles; they have some 210 affinities and three half-lives.
// Loading the users takes a minute and more:
//
//	go test ./shared/job/kinds/segmentbuild -run - -bench BuildMemory -benchtime 1x -timeout 30m
func BenchmarkBuildMemory(b *testing.B) {
	process := storetest.StartProcess(b)
	h := newHarness(b, inInstance(b, process.Addr), segmentbuild.Work{})
	h.scoreFacets(b, 10)
	importCrowd(b, h.engine, h.app(), *memoryUsers, h.Now)
	if _, err := h.engine.Recompute(b.Context(), h.app(), store.Range{}, profile.RecomputeOptions{Fold: true}, func(profile.Progress) error { return nil }); err != nil {
		b.Fatal(err)
	}
	times := 1
	for _, limit := range []string{"230MiB", "1843MiB"} { // of instances of 256 MB and 2 GiB
		b.Run("GOMEMLIMIT="+limit, func(b *testing.B) {
			for b.Loop() {
				times++ // each build computes all profiles
				cmd := exec.Command(os.Args[0], "-test.run=^TestBuildOfAnotherProcess$", "-test.v", fmt.Sprintf("-memoryusers=%d", *memoryUsers))
				cmd.Env = append(os.Environ(), addrVariable+"="+process.Addr, fmt.Sprintf("%s=%d", timesVariable, times), "GOMEMLIMIT="+limit)
				out, err := cmd.CombinedOutput()
				found := regexp.MustCompile(`peak (\d+) kB, (\d+) parts`).FindSubmatch(out)
				if err != nil || found == nil {
					b.Fatalf("%v: %s", err, out)
				}
				kB, _ := strconv.Atoi(string(found[1]))
				parts, _ := strconv.Atoi(string(found[2]))
				b.ReportMetric(float64(kB)/1024, "MiB-peak")
				b.ReportMetric(float64(parts), "parts")
			}
		})
	}
}

func TestBuildOfAnotherProcess(t *testing.T) {
	addr := os.Getenv(addrVariable)
	if addr == "" {
		t.Skip("BenchmarkBuildMemory runs it")
	}
	h := newHarness(t, inInstance(t, addr), segmentbuild.Work{})
	times, _ := strconv.Atoi(os.Getenv(timesVariable))
	for i := range times {
		h.scoreFacets(t, 10+i)
	}
	j := h.build()
	h.WantState(j.ID, job.Done, "")
	if c := job.CountsOf[segmentbuild.Counts](j.Totals.Counts); c.Packed != int64(*memoryUsers) || c.Computed != c.Packed {
		t.Errorf("counts %+v, want all computed and packed", c)
	}
	status, err := os.ReadFile("/proc/self/status")
	peak := regexp.MustCompile(`VmHWM:\s*(\d+) kB`).FindSubmatch(status)
	if err != nil || peak == nil {
		t.Fatalf("no peak in /proc/self/status: %v", err)
	}
	fmt.Printf("peak %s kB, %d parts\n", peak[1], len(h.manifest().Parts))
}

func inInstance(tb testing.TB, addr string) opener {
	return func(dial ...grpc.DialOption) (*store.Store, *bigtable.Client) {
		return storetest.OpenInstance(tb, addr, instance, dial...)
	}
}

// scoreFacets sets a strategy of the 6 facets under three half-lives.
func (h *harness) scoreFacets(tb testing.TB, points int) {
	tb.Helper()
	if _, _, err := h.Config.SetStrategy(tb.Context(), app, scoringFacets(tb, points, "30d", "180d", "360d")); err != nil {
		tb.Fatal(err)
	}
}
