package migration

import (
	"log/slog"

	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/score/schema"
)

// Collection names the collection of the jobs under an app. The JSON of /1/schema calls
// a migration a move.
var Collection = job.Collection{Name: "migrations", Decode: job.DecodeParams[Params]}

// The kinds of jobs.
const (
	kindBackfill = "backfill"
	kindVerify   = "verify"
	kindDrop     = "drop"
)

// Params are the parameters of the jobs of a migration.
type Params struct {
	// From and To are the schemas. A drop removes the app's rows in From.
	From schema.Name `firestore:"from"`
	To   schema.Name `firestore:"to"`
	// Rate is how many rows a second all tasks of a backfill copy together, 0
	// for no limit.
	Rate int `firestore:"rate"`
	job.LogWindow
}

var _ job.Params = Params{}

// LogAttrs returns the schemas.
func (p Params) LogAttrs() []slog.Attr {
	return []slog.Attr{slog.String("from", string(p.From)), slog.String("to", string(p.To))}
}

// BackfillCounts counts the work of a backfill.
type BackfillCounts struct {
	Users       int64 // users with rows
	Rows        int64 // rows read
	Copied      int64 // rows copied
	Undecodable int64 // rows that cannot be copied
}

func (c BackfillCounts) stored() job.Counts {
	return job.Counts{Visited: c.Users, Events: c.Rows, Changed: c.Copied, Faulty: c.Undecodable}
}

// VerifyCounts counts the work of a verification.
type VerifyCounts struct {
	Users     int64 // users with rows
	Profiles  int64 // users of the sample whose profiles were compared
	Rows      int64 // rows compared
	Repaired  int64 // rows that differed and do no longer
	Different int64 // rows and profiles that differed
}

// VerifyCountsOf names the counts of a verification.
func VerifyCountsOf(c job.Counts) VerifyCounts {
	return VerifyCounts{Users: c.Visited, Profiles: c.Users, Rows: c.Events, Repaired: c.Changed, Different: c.Faulty}
}

func (c VerifyCounts) stored() job.Counts {
	return job.Counts{Visited: c.Users, Users: c.Profiles, Events: c.Rows, Changed: c.Repaired, Faulty: c.Different}
}

// DropCounts counts the work of a drop.
type DropCounts struct {
	Removed int64 // rows
}

func (c DropCounts) stored() job.Counts { return job.Counts{Events: c.Removed, Changed: c.Removed} }
