package store

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/affinityengine/affinity/terraform"
)

// Table ids.
const (
	TableEvents       = "events"
	TableEventsNarrow = "events_narrow"
	TableUsers        = "users"
	TableHistories    = "histories"
	TableDictionaries = "dictionaries"
	TableObjects      = "objects"
	TableDated        = "dated"
	TableRefused      = "refused"
	TableCrowd        = "crowd"
	TableSegments     = "segments"
	TableUsage        = "usage"
	TableRates        = "rates"
	TableAuditLog     = "audit_log"
	TableCalls        = "calls"
	TableChanges      = "changes"
	TableJobs         = "jobs"
	TableRecent       = "recent"
	TableLocations    = "locations"
)

// Column families. They are single letters because every cell of an answer carries
// its family and qualifier. Package schema has the families of events' filters.
const (
	familyOriginal = "m"
	familyState    = "u"
	familyProfile  = "p"
	familyBlock    = "b"
	familyInline   = "h" // of table users: the block in the user's row
	familyExposed  = "e" // of table users: which experiments the user has met
	familyTerms    = "d" // dictionaries
	familyObject   = "o"
	familyCounts   = "c"
	familyRing     = "r"
	// The families of crowd statistics: names of generations, and what they hold.
	familyPointer    = "n"
	familyGeneration = "g"
	// The families of segments: the manifest, what describes parts, postings, sizes of
	// saved segments, files of exports.
	familyManifest = "m"
	familyPart     = "d"
	familyPostings = "p"
	familySizes    = "s"
	familyExport   = "x"
	// The families of usage, beside familyCounts: numbers of batches, names of events and
	// facets, hot users, last days of keys.
	familyBatches = "b"
	familyNames   = "n"
	familyHot     = "h"
	familyKeys    = "k"
	familySaid    = "s"
	// The families of the audit log.
	familyEntry  = "e"
	familySecret = "s"
	// The families of the memory of calls and of the list of changes.
	familyCall   = "c"
	familyChange = "c"
	// The families of the details of jobs: of what may change, and of what has ended.
	familyOpen  = "o"
	familyEnded = "e"
	// The family of the sample of recent events.
	familyRecent = "e"
	// The family of locations.
	familyLocation = "l"
)

// Table is one table with its families.
type Table struct {
	Name string `json:"name"`
	// Key is the form of the row keys, Holds what a row is.
	Key      string   `json:"key"`
	Holds    string   `json:"holds"`
	Families []Family `json:"families"`
}

// Family is one column family.
type Family struct {
	Name    string  `json:"name"`
	Collect Collect `json:"collect"`
	// Days is the age in days at which Bigtable drops the newest version too, or 0.
	// The cells of such a family have the time of their writing.
	Days int `json:"days,omitempty"`
	// Owner is the package that knows what the values mean. Holds says it in words.
	Owner string `json:"owner"`
	Holds string `json:"holds"`
	// Personal is whether rows or values name a user or a hash of one. Erased is what
	// then removes that.
	Personal bool     `json:"personal"`
	Erased   Erasure  `json:"erased,omitempty"`
	Formats  []Format `json:"formats"`
	// DerivedFrom names the families from which the engine can make this one again, as
	// table/family. Empty: it is no copy of anything.
	DerivedFrom []string `json:"derivedFrom,omitempty"`
}

// Erasure is what removes personal data.
type Erasure string

// A deletion of the user removes most personal data. Of the user row it leaves the
// user token with what keeps the deletion in force. Some data goes with time alone, or
// with the next build of what it is part of.
const (
	ByDeletion   Erasure = "deletion"
	LeavesRow    Erasure = "partly"
	ByAgeOfCells Erasure = "age"
	ByBuild      Erasure = "build"
)

// Format is the form of the values of some columns.
type Format struct {
	// Columns are qualifiers, separated by commas; a* stands for all that begin with a.
	Columns string `json:"columns"`
	Value   string `json:"value"`
	// Codec is the constant that holds the newest format that the engine writes, as
	// package.constant, and Version its number, which is the first byte of a value. A
	// value may have an older format.
	Codec   string `json:"codec,omitempty"`
	Version int    `json:"version,omitempty"`
	// Encoding is the form of values without a format byte.
	Encoding Encoding `json:"encoding,omitempty"`
}

// Encoding is the form of values without a format byte.
type Encoding string

// A number is 8 bytes, the highest first, or nothing for 0.
const (
	JSON    Encoding = "json"
	Number  Encoding = "number"
	Text    Encoding = "text"
	asBytes Encoding = "bytes"
)

// Has reports whether the format is that of a column.
func (f Format) Has(qualifier string) bool {
	for c := range strings.SplitSeq(f.Columns, ", ") {
		prefix, open := strings.CutSuffix(c, "*")
		if c == qualifier || open && strings.HasPrefix(qualifier, prefix) {
			return true
		}
	}
	return false
}

// String names the format and its version.
func (f Format) String() string {
	if f.Version > 0 {
		return fmt.Sprintf("%s: %s, format %d", f.Columns, f.Value, f.Version)
	}
	return fmt.Sprintf("%s: %s, %s", f.Columns, f.Value, f.Encoding)
}

// Collect is the garbage collection of a family.
type Collect string

// Bigtable drops cells of events by age, when they are older than every app's
// retention. All other families keep the newest version of a cell, forever or for
// the family's days.
const (
	ByAge     Collect = "age"
	ButNewest Collect = "newest"
)

const day = 24 * time.Hour

// neverVersions is the number of versions in a policy that drops nothing: no column
// of a row has as many. Terraform has the same number.
const neverVersions = math.MaxInt32

// Policy returns the garbage collection of the family as Terraform deploys it.
// longestRetentionDays is the longest retention of all apps; 0 means no limit.
// The age is one day longer than the retention, because clocks differ. Without a
// limit, or with one that no duration can express, the policy drops nothing. It is
// not an empty policy, because Bigtable may report an empty policy as a missing one.
func (f Family) Policy(longestRetentionDays int) bigtable.GCPolicy {
	if f.Collect == ButNewest && f.Days > 0 {
		return bigtable.UnionPolicy(bigtable.MaxVersionsPolicy(1), bigtable.MaxAgePolicy(time.Duration(f.Days)*day))
	}
	if f.Collect == ButNewest {
		return bigtable.MaxVersionsPolicy(1)
	}
	if longestRetentionDays <= 0 || longestRetentionDays >= int(math.MaxInt64/day) {
		return bigtable.MaxVersionsPolicy(neverVersions)
	}
	return bigtable.MaxAgePolicy(time.Duration(longestRetentionDays+1) * day)
}

// aged are the tables whose cells have the time of their writing, so that they may
// have an age. Everywhere else a cell has the time of the data that it describes.
var aged = map[string]bool{TableSegments: true, TableRefused: true, TableUsage: true, TableRates: true,
	TableAuditLog: true, TableCalls: true,
	TableChanges: true, TableJobs: true, TableRecent: true}

// Tables returns all tables as terraform/bigtable.json declares them. Its error
// says what is wrong with that file.
var Tables = sync.OnceValues(func() ([]Table, error) {
	tables, err := decodeTables(terraform.Bigtable)
	if err != nil {
		return nil, fmt.Errorf("terraform/bigtable.json: %w", err)
	}
	return tables, nil
})

func decodeTables(text string) ([]Table, error) {
	var file struct {
		Tables []Table `json:"tables"`
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&file); err != nil {
		return nil, err
	}
	for _, t := range file.Tables {
		ofEvents := t.Name == TableEvents || t.Name == TableEventsNarrow
		for _, f := range t.Families {
			if f.Collect != ButNewest && (f.Collect != ByAge || !ofEvents) {
				return nil, fmt.Errorf("family %s of table %s cannot be collected by %q: want %s, or %s in a table of events",
					f.Name, t.Name, f.Collect, ButNewest, ByAge)
			}
			if f.Days < 0 || f.Days > 0 && !aged[t.Name] {
				return nil, fmt.Errorf("family %s of table %s cannot be dropped after %d days", f.Name, t.Name, f.Days)
			}
		}
	}
	return file.Tables, nil
}

// TableNames returns the names of Tables.
func TableNames() ([]string, error) {
	all, err := Tables()
	names := make([]string, len(all))
	for i, t := range all {
		names[i] = t.Name
	}
	return names, err
}

// CreateTables creates the missing tables and families, for a local stack or a
// test; Terraform creates the deployed tables. No family has an age here, and
// families of events have no policy: an age follows the wall clock and not the
// engine's, and any other policy makes an emulator scan the log for nothing.
func CreateTables(ctx context.Context, admin *bigtable.AdminClient) error {
	return CreateTablesWith(ctx, admin, "")
}

// CreateTablesWith is CreateTables for a set of tables whose names have a suffix.
func CreateTablesWith(ctx context.Context, admin *bigtable.AdminClient, suffix string) error {
	tables, err := Tables()
	if err != nil {
		return err
	}
	for _, t := range tables {
		name := t.Name + suffix
		if err := admin.CreateTable(ctx, name); err != nil && status.Code(err) != codes.AlreadyExists {
			return fmt.Errorf("create table %s: %w", name, err)
		}
		for _, f := range t.Families {
			var family bigtable.Family
			if f.Collect == ButNewest {
				family.GCPolicy = bigtable.MaxVersionsPolicy(1)
			}
			err := admin.CreateColumnFamilyWithConfig(ctx, name, f.Name, family)
			if err != nil && status.Code(err) != codes.AlreadyExists {
				return fmt.Errorf("create family %s of table %s: %w", f.Name, name, err)
			}
		}
	}
	return nil
}
