package store

import (
	"context"
	"time"

	"github.com/affinityengine/affinity/shared/score/schema"
)

// DecodeTables is how terraform/bigtable.json is read.
var DecodeTables = decodeTables

// Families are the families that this package reads and writes, by table.
var Families = map[string][]string{
	TableEvents:       append(schema.Wide.Families(), familyOriginal),
	TableEventsNarrow: append(schema.Narrow.Families(), familyOriginal),
	TableUsers:        {familyState, familyProfile, familyInline, familyExposed},
	TableHistories:    {familyBlock},
	TableDictionaries: {familyTerms},
	TableObjects:      {familyObject},
	TableDated:        {familyObject},
	TableRefused:      {familyCounts, familyRing},
	TableCrowd:        {familyPointer, familyGeneration},
	TableSegments:     {familyManifest, familyPart, familyPostings, familySizes, familyExport},
	TableUsage:        {familyCounts, familyBatches, familyNames, familyHot, familyKeys},
	TableRates:        {familySaid},
	TableLocations:    {familyLocation},
	TableAuditLog:     {familyEntry, familySecret},
	TableCalls:        {familyCall},
	TableChanges:      {familyChange},
	TableJobs:         {familyOpen, familyEnded},
	TableRecent:       {familyRecent},
}

// ListDatedOf is ListDated with another number of rows that it reads at most.
func (s *Store) ListDatedOf(ctx context.Context, app string, q DatedQuery, maxRows int) ([]DatedObject, bool, error) {
	return s.listDated(ctx, app, q, maxRows)
}

// ScanLongOf is ScanLong with smaller chunks.
func (l Log) ScanLongOf(ctx context.Context, n schema.Name, r Range, since int64, bytes, users int, fn func(Entry) error) error {
	return l.scanLong(ctx, r, longScan{l, n, since, fn, bytes, users})
}

// SetClock replaces the clock of date rows.
func (s *Store) SetClock(now func() time.Time) { s.clock = now }

// ReadDates reads the instants of objects as writers do.
func (s *Store) ReadDates(ctx context.Context, app, index string, ids, attributes []string) (map[string]map[string]int64, error) {
	return s.readDates(ctx, app, index, ids, attributes)
}

// Overtake and DatedKey are as writers have them.
const Overtake = overtake

var DatedKey = datedKey
