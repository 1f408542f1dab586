package store

import (
	"context"

	"github.com/affinityengine/affinity/shared/auditlog"
	"github.com/affinityengine/affinity/shared/schema"
)

// DecodeTables is how terraform/bigtable.json is read.
var DecodeTables = decodeTables

// Families are the families that this package reads and writes, by table.
var Families = map[string][]string{
	TableEvents:       append(schema.Wide.Families(), familyOriginal),
	TableEventsNarrow: append(schema.Narrow.Families(), familyOriginal),
	TableUsers:        {familyState, familyProfile},
	TableHistories:    {familyBlock},
	TableObjects:      {familyObject},
	TableRefused:      {familyCounts, familyRing},
	TableCrowd:        {familyPointer, familyGeneration},
	TableUsage:        {familyCounts, familyBatches, familyHot, familyKeys},
	TableRates:        {familySaid},
	TableAuditLog:     {familyEntry, familySecret},
}

// ScanAuditLog is AuditLog with another number of entries that it reads at most.
func (s *Store) ScanAuditLog(ctx context.Context, app string, q auditlog.Query, maxScan int) ([]auditlog.Entry, string, error) {
	return s.auditLog(ctx, app, q, maxScan)
}
