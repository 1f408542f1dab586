package job

// Counts counts the work that is done. The last four counts mean different
// things in different jobs. The packages that define jobs have types with names
// for them: recompute.Counts, reenrich.Counts, and one for each kind of job in
// migration.
type Counts struct {
	// Visited counts the processed users, Users those to whom the work applies.
	Visited int64 `firestore:"visited"`
	Users   int64 `firestore:"users"`
	// Events counts the events or rows that the job has read.
	Events int64 `firestore:"events"`
	// Changed counts the items that the job has written, or would write if it
	// were not a dry run. Left counts the items that wait for something else,
	// Faulty the wrong or damaged ones.
	Changed int64 `firestore:"changed"`
	Left    int64 `firestore:"left"`
	Faulty  int64 `firestore:"faulty"`
}

// Plus returns the sums of two counts.
func (c Counts) Plus(d Counts) Counts {
	return Counts{
		Visited: c.Visited + d.Visited, Users: c.Users + d.Users, Events: c.Events + d.Events,
		Changed: c.Changed + d.Changed, Left: c.Left + d.Left, Faulty: c.Faulty + d.Faulty,
	}
}

// Totals are sums over the shards of a job.
type Totals struct {
	Shards int `firestore:"shards"`
	Done   int `firestore:"done"`
	Failed int `firestore:"failed"`
	// PlannedUsers counts the users that the planning found.
	PlannedUsers int64 `firestore:"plannedUsers"`
	Counts
	// Stale counts the users or rows that the last Verify found stale.
	Stale int64 `firestore:"stale"`
}

func (t *Totals) add(s Shard) {
	t.Shards++
	switch s.State {
	case ShardDone:
		t.Done++
	case ShardFailed:
		t.Failed++
	}
	t.PlannedUsers += s.PlannedUsers
	t.Counts = t.Plus(s.Counts)
	t.Stale += s.Stale
}
