// Package store keeps Affinity's data in Bigtable: it owns table names, row
// keys, cell formats and every read and write of them, so that no other package
// knows a key or a column.
//
// Five tables, every key beginning with the app id and a comma:
//
//	events   app,user,2019-05-28T00:04:34.000Z,<id>   the log, the truth: one row an event
//	           e:<type>,<name>,<facet>   the event's filters of one facet (see log.go)
//	           m:event                   the event as it was sent, with receipt time and index
//	users    app,user,                                 one row a user
//	           u:c ticket counter, u:m manifest, u:d deletedUntil, u:v strategy version of the newest profile
//	           p:p profiles, p:s each without its affinities; cell time = ticket x 1000 microseconds
//	histories
//	         app,user,<ticket %016x>,<n %04x>          packed ranges of the log: those are valid that the manifest names
//	           b:b a block, never rewritten, cell time = its latest event
//	objects  app,index,objectID                        the catalog
//	           o:record the object as sent, o:filters its filters and the settings version they were made under
//	refused  app,                                      refused events of an app
//	           c:<reason> counters, r:00..r:99 a ring of the last hundred
//
// A user token never contains a comma, so the keys of one user are exactly those
// with his prefix, comma included ('+' sorts before ',').
package store

import (
	"context"
	"fmt"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Table ids.
const (
	TableEvents    = "events"
	TableUsers     = "users"
	TableHistories = "histories"
	TableObjects   = "objects"
	TableRefused   = "refused"
)

// Column families. Single letters because a family and a qualifier travel with
// every cell that is read.
const (
	familyFilters  = "e"
	familyOriginal = "m"
	familyState    = "u"
	familyProfile  = "p"
	familyBlock    = "b"
	familyObject   = "o"
	familyCounts   = "c"
	familyRing     = "r"
)

// Table is one table with its families.
type Table struct {
	Name     string
	Families []Family
}

// Family is one column family. Aged families hold events and may be collected
// by age, once they are older than every app's retention; all others keep the
// newest version of a cell for ever.
type Family struct {
	Name string
	Aged bool
}

// Tables is the whole schema.
var Tables = []Table{
	{TableEvents, []Family{{familyFilters, true}, {familyOriginal, true}}},
	{TableUsers, []Family{{familyState, false}, {familyProfile, false}}},
	{TableHistories, []Family{{familyBlock, false}}},
	{TableObjects, []Family{{familyObject, false}}},
	{TableRefused, []Family{{familyCounts, false}, {familyRing, false}}},
}

// CreateTables makes what is missing of the schema, for stacks that Terraform
// does not stand up. Aged families get no age here: collection follows the wall
// clock and would eat imported history. With selfCollecting, for a store whose
// Config says so, large tables get no policy at all.
func CreateTables(ctx context.Context, admin *bigtable.AdminClient, selfCollecting bool) error {
	for _, t := range Tables {
		if err := admin.CreateTable(ctx, t.Name); err != nil && status.Code(err) != codes.AlreadyExists {
			return fmt.Errorf("create table %s: %w", t.Name, err)
		}
		for _, f := range t.Families {
			var family bigtable.Family // without a policy: an empty one would have the emulators walk the log in vain
			if !f.Aged && (!selfCollecting || t.Name == TableRefused) {
				family.GCPolicy = bigtable.MaxVersionsPolicy(1)
			}
			err := admin.CreateColumnFamilyWithConfig(ctx, t.Name, f.Name, family)
			if err != nil && status.Code(err) != codes.AlreadyExists {
				return fmt.Errorf("create family %s of table %s: %w", f.Name, t.Name, err)
			}
		}
	}
	return nil
}
