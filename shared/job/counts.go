package job

// Counts are how much of the work is done. The meaning of the last four depends
// on the job; the packages that define jobs have types that name them:
// recompute.Counts, reenrich.Counts, and one for each kind of job in migration.
type Counts struct {
	// Visited is how many users were processed, Users how many of them the work
	// applies to.
	Visited int64 `firestore:"visited"`
	Users   int64 `firestore:"users"`
	// Events is how many events or rows were read.
	Events int64 `firestore:"events"`
	// Changed is how much was written or would be, Left how much waits for
	// something else, Faulty how much is wrong.
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
	// PlannedUsers is how many users the shards were cut for.
	PlannedUsers int64 `firestore:"plannedUsers"`
	Counts
	// Stale is how many users or rows were not as they should be at the last
	// check.
	Stale int64 `firestore:"stale"`
}

// add adds a shard to the sums.
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
