package terraform_test

import (
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/affinityengine/affinity/shared/admission"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/event/bus"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/serve/query"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

const mib = 1 << 20

// idle is the memory of an instance without requests, in bytes: the program, its
// connections, and garbage. A whole engine of `affinity up`, with all functions and the
// emulators, is resident with 54 to 68 MB.
//
// Each request has its goroutines, the headers that the load balancer passes on (64
// KiB), the part of a body that it may read ahead, and the part of a row that has
// arrived before the request takes it from the gate.
const (
	idle       = 60 * mib
	perRequest = 400 << 10
)

// largestBody is the largest body that each function reads, in bytes.
var largestBody = map[string]int64{
	"ingest": api.MaxEventsBody, "profiles": api.MaxProfilesBody, "catalog": api.MaxCatalogBody, "rank": api.MaxRankBody, "docs": 0, "console": 1 << 20,
	"imports": api.MaxImportBody, "strategies": api.MaxPreviewBody, "admin": api.MaxBacktestBody, "segments": api.MaxSegmentBody,
	"process": bus.MaxPush, "process-slow": bus.MaxPush, "worker": 100 << 10,
}

// caches are what the caches of each function hold at most, in bytes, besides the
// configuration of the apps that it serves: of enrich, 20,000 objects of 100 filters in
// theory and some tens of megabytes in practice; of ranker, objects, and the statistics
// of indexes, twice while they are replaced, with their pairs; of page, candidates,
// a list of which is read while another is there, and records; of query, rows of lists and profiles.
var caches = map[string]int64{
	"ingest": 40 * mib, "imports": 40 * mib, "process": 40 * mib, "process-slow": 40 * mib, "rank": ranking,
	"admin": query.CacheBytes, "segments": query.CacheBytes,
	// What enrich, ranker and query hold, and the answers of which each page is made.
	"console": 40*mib + ranking + query.CacheBytes + 16*8*mib,
}

const ranking = (64 + 128 + 128 + 16 + 48 + 16 + 48) * mib

// computing are the functions that compute profiles.
var computing = map[string]bool{"profiles": true, "rank": true, "strategies": true, "admin": true, "segments": true, "console": true, "process": true, "process-slow": true, "worker": true}

// refreshing are the functions that refresh profiles, and keep of users what the next
// refresh needs.
var refreshing = map[string]bool{"process": true, "process-slow": true}

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
		if most := admission.Heaviest(capacity); heaviest > most {
			t.Errorf("%s: a body of %d bytes weighs %d, and a request may hold %d", name, body, heaviest, most)
		}
		// Requests hold the gate's bytes also without a large body: for rows, profiles and
		// answers.
		worst := idle + caches[name] + concurrency*perRequest
		if body > 0 {
			worst += capacity
		}
		if computing[name] {
			worst += profile.Computing(limit) + profile.Dictionaries(limit)
		}
		if refreshing[name] {
			worst += profile.Recent(limit)
		}
		if worst > limit {
			t.Errorf("%s: %d requests take %d MiB, the limit is %d MiB", name, concurrency, worst/mib, limit/mib)
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
