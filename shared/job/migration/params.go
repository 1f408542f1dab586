package migration

import (
	"log/slog"

	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/schema"
)

// Collection is where the jobs lie under an app. It is named after the first
// word for migrations, which the routes and the configuration have too.
var Collection = job.Collection{Name: "moves", Decode: job.DecodeParams[Params]}

// Kinds of jobs.
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

// LogAttrs are the schemas.
func (p Params) LogAttrs() []slog.Attr {
	return []slog.Attr{slog.String("from", string(p.From)), slog.String("to", string(p.To))}
}

// BackfillCounts are how much a backfill has copied.
type BackfillCounts struct {
	Users       int64 // whose rows were read
	Rows        int64 // read
	Copied      int64 // rows
	Undecodable int64 // rows that cannot be copied
}

// BackfillCountsOf names the counts of a backfill.
func BackfillCountsOf(c job.Counts) BackfillCounts {
	return BackfillCounts{Users: c.Visited, Rows: c.Events, Copied: c.Changed, Undecodable: c.Faulty}
}

func (c BackfillCounts) stored() job.Counts {
	return job.Counts{Visited: c.Users, Events: c.Rows, Changed: c.Copied, Faulty: c.Undecodable}
}

// VerifyCounts are how much a verification has compared.
type VerifyCounts struct {
	Users     int64 // whose rows were compared
	Profiles  int64 // compared, of a sample of the users
	Rows      int64 // compared
	Repaired  int64 // rows that differed
	Different int64 // rows and profiles that differed
}

// VerifyCountsOf names the counts of a verification.
func VerifyCountsOf(c job.Counts) VerifyCounts {
	return VerifyCounts{Users: c.Visited, Profiles: c.Users, Rows: c.Events, Repaired: c.Changed, Different: c.Faulty}
}

func (c VerifyCounts) stored() job.Counts {
	return job.Counts{Visited: c.Users, Users: c.Profiles, Events: c.Rows, Changed: c.Repaired, Faulty: c.Different}
}

// DropCounts are how much a drop has removed.
type DropCounts struct {
	Removed int64 // rows
}

// DropCountsOf names the counts of a drop.
func DropCountsOf(c job.Counts) DropCounts { return DropCounts{Removed: c.Changed} }

func (c DropCounts) stored() job.Counts { return job.Counts{Events: c.Removed, Changed: c.Removed} }
