package store_test

import (
	"fmt"
	"maps"
	"testing"

	"cloud.google.com/go/bigtable"

	"github.com/affinityengine/affinity/shared/local/gcloudtest"
	"github.com/affinityengine/affinity/shared/local/race"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/store"
)

// fixture is a store of a test's own, with a client of the same Bigtable.
type fixture struct {
	*store.Store
	client *bigtable.Client
	// collects reports that the server drops superseded cells when a cell is
	// written.
	collects bool
	layout   schema.Layout
}

func (b fixture) log() store.Log { return b.Events.Log(app, b.layout) }

func TestInProcess(t *testing.T) {
	t.Parallel()
	race.Skip(t, "TestStored sends the same requests")
	open := func(t *testing.T) fixture {
		s, client := storetest.NewWithClient(t)
		return fixture{Store: s, client: client, collects: true}
	}
	testStore(t, open)
	testLogs(t, open, layouts())
}

// The store as it is on Bigtable itself replaces cells in another way.
func TestInProcessAsDeployed(t *testing.T) {
	t.Parallel()
	race.Skip(t, "TestStored sends the same requests")
	addr := storetest.Start(t)
	testStore(t, func(t *testing.T) fixture {
		s, client := storetest.OpenAt(t, addr)
		return fixture{Store: s, client: client}
	})
}

// Bigtable of a local engine that keeps its data collects superseded cells when a cell is
// written.
func TestStored(t *testing.T) {
	t.Parallel()
	addr := storetest.StartStored(t)
	open := func(t *testing.T) fixture {
		s, client := storetest.OpenAt(t, addr)
		return fixture{Store: s, client: client, collects: true}
	}
	testStore(t, open)
	testLogs(t, open, layouts())
}

func TestOfficialEmulator(t *testing.T) {
	t.Parallel()
	addr := gcloudtest.Bigtable(t)
	open := func(t *testing.T) fixture {
		s, client := storetest.OpenAt(t, addr)
		return fixture{Store: s, client: client}
	}
	testStore(t, open)
	all := layouts()
	if race.On { // those that write both schemas send all that the others send
		maps.DeleteFunc(all, func(_ string, l schema.Layout) bool { return len(l.Write) == 1 })
	}
	testLogs(t, open, all)
}

// testStore checks a store on any Bigtable. open returns an empty one.
func testStore(t *testing.T, open func(*testing.T) fixture) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, fixture)
	}{
		{"Tickets", testTickets},
		{"HighestTicket", testHighestTicket},
		{"Tombstones", testTombstones},
		{"Forgetting", testForgetting},
		{"Owners", testOwners},
		{"Locations", testLocations},
		{"EraseMoved", testEraseMoved},
		{"Strip", testStrip},
		{"Arrivals", testArrivals},
		{"DamagedOwner", testDamagedOwner},
		{"Sessions", testSessions},
		{"Bases", testBases},
		{"ForgettingSummaries", testForgettingSummaries},
		{"Swaps", testSwaps},
		{"Commits", testCommits},
		{"InlineBlocks", testInlineChangesWithManifest},
		{"OlderVersions", testOlderVersions},
		{"Calls", testCalls},
		{"Changes", testChanges},
		{"ChangesAreBounded", testChangesAreBounded},
		{"JobDetails", testJobDetails},
		{"ManyJobDetails", testManyJobDetails},
		{"LaterClock", testLaterClock},
		{"OneSwapOfMany", testOneSwapOfMany},
		{"Dictionaries", testDictionaries},
		{"AuditLog", testAuditLog},
		{"AuditLogOfNewerVersion", testAuditLogOfNewerVersion},
		{"AuditLogWriters", testAuditLogWriters},
		{"RefusedByReason", testRefusedByReason},
		{"RefusedExpire", testRefusedExpire},
		{"RefusedOfUser", testRefusedOfUser},
		{"RefusedLinks", testRefusedLinks},
		{"Blocks", testBlocks},
		{"ManyAndLargeBlocks", testManyAndLargeBlocks},
		{"Users", testScanUsers},
		{"Samples", testSampleUsers},
		{"ManyUsers", testManyUsers},
		{"CrowdSwaps", testCrowdSwaps},
		{"CrowdGenerations", testCrowdGenerations},
		{"ImportNotes", testImportNotes},
		{"CatalogIndexes", testCatalogIndexes},
		{"ScanObjects", testScanObjects},
		{"ListDated", testListDated},
		{"DatedPosts", testDatedPosts},
		{"DatesOfObjects", testDatesOfObjects},
		{"Usage", testUsage},
		{"Names", testNames},
		{"Recent", testRecent},
		{"RecentOfUser", testRecentOfUser},
		{"HotUsers", testHotUsers},
		{"HotUserIsForgotten", testHotUserIsForgotten},
		{"KeyDays", testKeyDays},
		{"Meter", testMeter},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, open(t)) })
	}
}

// testLogs checks the log in some layouts. It does not depend on how user rows
// are collected.
func testLogs(t *testing.T, open func(*testing.T) fixture, layouts map[string]schema.Layout) {
	for name, layout := range layouts {
		t.Run(name, func(t *testing.T) { testLog(t, layout, open) })
	}
}

// layouts are all there are: each schema with each encoding, alone and with the
// other one written beside it.
func layouts() map[string]schema.Layout {
	all := map[string]schema.Layout{}
	for _, read := range schema.Names {
		for _, e := range []schema.Encoding{schema.JSON, schema.Compact}[race.Or(0, 1):] {
			all[fmt.Sprint(read, " ", e)] = schema.Layout{Write: []schema.Name{read}, Read: read, Encoding: e}
			all[fmt.Sprint(read, " of both, ", e)] = schema.Layout{Write: schema.Names, Read: read, Encoding: e}
		}
	}
	return all
}

// testLog checks the log in one layout.
func testLog(t *testing.T, layout schema.Layout, open func(*testing.T) fixture) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, fixture)
	}{
		{"UserRanges", testUserRanges},
		{"Originals", testOriginals},
		{"CopiesStayBelow", testCopiesStayBelow},
		{"CopyFromRegion", testCopyFromRegion},
		{"CopyInPages", testCopyInPages},
		{"Ranges", testRanges},
		{"RowsForAStrategy", testRowsForAStrategy},
		{"LogScoresAppendedEvents", testLogScoresAppendedEvents},
		{"AppendReplacesTheRow", testAppendReplacesTheRow},
		{"FutureEventsDoNotCount", testFutureEventsDoNotCount},
		{"PurgeLogRemovesUpToATime", testPurgeLogRemovesUpToATime},
		{"LimitsOfTime", testLimitsOfTime},
		{"ObjectsOfRows", testObjectsOfRows},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := open(t)
			s.layout = layout
			test.run(t, s)
		})
	}
}
