package store

import (
	"cloud.google.com/go/bigtable"

	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/store/rowstream"
)

// tables finds the tables that hold a user of an app. Nothing else in this
// package keeps a *bigtable.Table.
type tables struct {
	all      *tableSet
	client   *bigtable.Client
	suffix   string                          // of the names of tables
	analysis map[schema.Name]*bigtable.Table // logs, through the app profile for analysis; nil: there is none
	router   *router                         // of a store of several regions; nil: all apps are here
}

// allUsers selects the tables of all users of an app: for a request that covers
// several users, and for rows that belong to no user.
const allUsers = ""

// in returns the tables of the region of an app.
func (t tables) in(app string) tables {
	if t.router == nil {
		return t
	}
	return t.router.reads(app).tables
}

// of returns the tables that hold a user of an app.
func (t tables) of(app, _ string) *tableSet { return t.in(app).all }

// named returns the table of that name that holds rows of an app.
func (t tables) named(app, name string) *bigtable.Table {
	at := t.in(app)
	return at.client.Open(name + at.suffix)
}

// tableSet is one set of tables.
type tableSet struct {
	logs    map[schema.Name]*bigtable.Table
	users   *bigtable.Table
	serving *bigtable.Table // users, through the serving app profile
	// Single rows of users and of serving, by the parts that are read.
	userRows, servingRows [len(userFilters)]*rowstream.Point
	blocks                *bigtable.Table
	terms                 *bigtable.Table // dictionaries
	objects               *bigtable.Table
	dated                 *bigtable.Table
	refused               *bigtable.Table
	crowd                 *bigtable.Table
	segments              *bigtable.Table
	usage                 *bigtable.Table
	rates                 *bigtable.Table
	auditLog              *bigtable.Table
	calls                 *bigtable.Table // the memory of calls
	changes               *bigtable.Table // the list of changed users
	jobs                  *bigtable.Table // details of jobs
	recent                *bigtable.Table // the sample of recent events
	locations             *bigtable.Table
}

func openLogs(c client) map[schema.Name]*bigtable.Table {
	return map[schema.Name]*bigtable.Table{schema.Narrow: c.table(TableEventsNarrow), schema.Wide: c.table(TableEvents)}
}

func openTables(client, serving client) tables {
	t := &tableSet{
		logs:      openLogs(client),
		users:     client.table(TableUsers),
		serving:   serving.table(TableUsers),
		blocks:    client.table(TableHistories),
		terms:     client.table(TableDictionaries),
		objects:   client.table(TableObjects),
		dated:     client.table(TableDated),
		refused:   client.table(TableRefused),
		crowd:     client.table(TableCrowd),
		segments:  client.table(TableSegments),
		usage:     client.table(TableUsage),
		rates:     client.table(TableRates),
		auditLog:  client.table(TableAuditLog),
		calls:     client.table(TableCalls),
		changes:   client.table(TableChanges),
		jobs:      client.table(TableJobs),
		recent:    client.table(TableRecent),
		locations: client.table(TableLocations),
	}
	for parts, filter := range userFilters {
		t.userRows[parts] = rowstream.NewPoint(client.conns, t.users, filter)
		t.servingRows[parts] = rowstream.NewPoint(serving.conns, t.serving, filter)
	}
	return tables{client: client.Client, suffix: client.suffix, all: t}
}
