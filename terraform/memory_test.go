package terraform_test

import (
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/affinityengine/affinity/shared/admission"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/bus"
	"github.com/affinityengine/affinity/shared/httpapi"
)

const mib = 1 << 20

// idle is the memory of an instance without requests, in bytes: the program and
// its caches. Each request has its goroutines, the headers that the load balancer
// passes on (64 KiB), and the part of a body that it may read ahead.
const (
	idle       = 100 * mib
	perRequest = 400 << 10
)

// largestBody is the largest body that each function reads, in bytes.
var largestBody = map[string]int64{
	"ingest": api.MaxEventsBody, "profiles": api.MaxProfilesBody, "catalog": api.MaxCatalogBody, "rank": api.MaxRankBody, "docs": 0,
	"imports": api.MaxImportBody, "strategies": api.MaxPreviewBody, "recomputes": api.MaxBacktestBody,
	"process": bus.MaxPush, "process-slow": bus.MaxPush, "worker": 100 << 10,
}

var sizeRow = regexp.MustCompile(`(?m)^\s+([a-z-]+)\s*= \{ cpu = "[0-9]+", memory = "([0-9]+)(Mi|Gi)", concurrency = ([0-9]+),`)

// As many requests as an instance serves at a time, each the worst that is
// permitted, fit its memory: what they hold after admission, and what each takes
// beside it, stays below nine tenths of the memory, Go's soft limit. And the
// largest body fits the gate, so that no request is counted for less than it takes.
func TestWorstRequestsFitTheMemory(t *testing.T) {
	text, err := os.ReadFile("sizes.tf")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, row := range sizeRow.FindAllStringSubmatch(string(text), -1) {
		name, memory, concurrency := row[1], parse(t, row[2])*mib, parse(t, row[4])
		if row[3] == "Gi" {
			memory *= 1024
		}
		body, known := largestBody[name]
		if !known {
			t.Errorf("%s: its largest body is not in this test", name)
		}
		seen++
		limit := memory / 10 * 9
		capacity := admission.Capacity(limit)
		heaviest := httpapi.BodyWeight * body
		if heaviest > capacity {
			t.Errorf("%s: a body of %d bytes weighs %d, and requests may hold %d", name, body, heaviest, capacity)
		}
		held := min(concurrency*heaviest, capacity)
		if worst := idle + held + concurrency*perRequest; worst > limit {
			t.Errorf("%s: %d requests take %d bytes, the limit is %d", name, concurrency, worst, limit)
		}
	}
	if seen != len(largestBody) {
		t.Errorf("sizes.tf has %d functions in the form that this test reads, want %d", seen, len(largestBody))
	}
}

func parse(t *testing.T, digits string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
