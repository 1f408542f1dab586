package migration

import (
	"log/slog"

	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/score/schema"
)

// Collection names the collection of the jobs under an app. The JSON of /1/schema calls
// a migration a move.
var Collection = job.NewCollection[Params, Counts]("migrations")

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

// Counts counts the work of a job.
type Counts struct {
	Users    int64 // users with rows
	Profiles int64 // users of the sample whose profiles a verification compared
	Rows     int64 // rows that a backfill read, a verification compared, or a drop deleted
	Changed  int64 // rows that a backfill copied or a drop deleted, or that differed and do no longer
	Faulty   int64 // rows that cannot be copied, or rows and profiles that differed
}
