package job

import (
	"maps"
	"reflect"
	"strings"
)

// Counts are the numbers of what is done, by the names that a kind of jobs gives to what it
// counts. A number of 0 is missing, and a map without numbers is nil. Each kind has a struct
// of int64 fields for its counts: Count and CountsOf convert it, and its field Known has the
// name known.
type Counts map[string]int64

// Names that counts of several kinds have.
const (
	CountUsers  = "users"  // processed users
	CountEvents = "events" // events read
	CountRows   = "rows"   // rows written, deleted or compared
	// CountFaulty counts what is wrong or damaged, of which Faults lists the first.
	CountFaulty = "faulty"
)

// Count returns the counts that a struct of int64 fields holds.
func Count(c any) Counts {
	v, counts := reflect.ValueOf(c), Counts{}
	for i := range v.NumField() {
		counts[countName(v.Type().Field(i))] = v.Field(i).Int()
	}
	return Counts(nil).Plus(counts)
}

// CountsOf returns counts as a struct of int64 fields. It leaves out what the struct has no
// field for.
func CountsOf[C any](c Counts) C {
	var of C
	v := reflect.ValueOf(&of).Elem()
	for i := range v.NumField() {
		v.Field(i).SetInt(c[countName(v.Type().Field(i))])
	}
	return of
}

// countNames returns the names of the counts in a struct.
func countNames(t reflect.Type) (names []string) {
	for i := range t.NumField() {
		names = append(names, countName(t.Field(i)))
	}
	return names
}

func countName(f reflect.StructField) string { return strings.ToLower(f.Name[:1]) + f.Name[1:] }

// Plus returns the sums of two counts, nil if all are 0.
func (c Counts) Plus(d Counts) Counts {
	sums := make(Counts, len(c))
	maps.Copy(sums, c)
	for name, n := range d {
		sums[name] += n
	}
	maps.DeleteFunc(sums, func(_ string, n int64) bool { return n == 0 })
	if len(sums) == 0 {
		return nil
	}
	return sums
}

// Minus returns the differences of two counts, nil if all are 0.
func (c Counts) Minus(d Counts) Counts {
	negative := make(Counts, len(d))
	for name, n := range d {
		negative[name] = -n
	}
	return c.Plus(negative)
}

// Totals are sums over the shards of a job.
type Totals struct {
	Shards int `firestore:"shards"`
	Done   int `firestore:"done"`
	Failed int `firestore:"failed"`
	// PlannedUsers counts the users that the planning found.
	PlannedUsers int64  `firestore:"plannedUsers"`
	Counts       Counts `firestore:"counts,omitempty"`
	// Stale counts the users or rows that the last Verify found stale.
	Stale int64 `firestore:"stale"`
}
