package store_test

import (
	"testing"

	"cloud.google.com/go/bigtable"

	"github.com/affinityengine/affinity/shared/emulator/gcloudtest"
	"github.com/affinityengine/affinity/shared/store"
	"github.com/affinityengine/affinity/shared/store/storetest"
)

// bench is a store of a test's own, with a client of the same Bigtable.
type bench struct {
	*store.Store
	client *bigtable.Client
	// collects: the store itself drops what is superseded, and the server nothing.
	collects bool
}

func TestInProcess(t *testing.T) {
	testStore(t, func(t *testing.T) bench {
		s, client := storetest.NewWithClient(t)
		return bench{s, client, true}
	})
}

// The store as it is on Bigtable itself replaces cells in another way.
func TestInProcessAsDeployed(t *testing.T) {
	addr := storetest.Start(t)
	testStore(t, func(t *testing.T) bench {
		s, client := storetest.OpenAt(t, addr)
		return bench{s, client, false}
	})
}

func TestOfficialEmulator(t *testing.T) {
	addr := gcloudtest.Bigtable(t)
	testStore(t, func(t *testing.T) bench {
		s, client := storetest.OpenAt(t, addr)
		return bench{s, client, false}
	})
}

// testStore holds a store to what it promises on every Bigtable. open returns an
// empty one.
func testStore(t *testing.T, open func(*testing.T) bench) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, bench)
	}{
		{"Tickets", testTickets},
		{"HighestTicket", testHighestTicket},
		{"Tombstones", testTombstones},
		{"Forgetting", testForgetting},
		{"ForgettingSummaries", testForgettingSummaries},
		{"Swaps", testSwaps},
		{"Commits", testCommits},
		{"OlderVersions", testOlderVersions},
		{"LaterClock", testLaterClock},
		{"OneSwapOfMany", testOneSwapOfMany},
		{"Blocks", testBlocks},
		{"ManyAndLargeBlocks", testManyAndLargeBlocks},
		{"Users", testScanUsers},
		{"Samples", testSampleUsers},
		{"ManyUsers", testManyUsers},
		{"Spans", testSpans},
		{"Originals", testOriginals},
		{"RowsForAStrategy", testRowsForAStrategy},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, open(t)) })
	}
}
