package profile

import (
	"time"

	"github.com/affinityengine/affinity/shared/score/affinity"
)

// limits of folds and sessions. Tests make them small.
type limits struct {
	// foldEvents is the number of unfolded events from which a refresh folds. Reading
	// fewer events from the log costs less than reading one more block.
	foldEvents int
	// maintainEvents is the same for the nightly round, which also visits users with
	// few new events.
	maintainEvents int
	// foldAge is the age from which folds take an event. A late event costs the whole
	// block that covers its time, and most late events are only a little late. A recompute
	// that is to fold takes younger events too: it is one fold of each user, and not one of
	// every 256 events.
	foldAge time.Duration
	// maxYoung is the number of events younger than foldAge from which a refresh folds
	// most of these too, for very busy users. Each refresh that computes reads all of
	// them again. A fold with a reading of its own costs as much as one such computation,
	// some 150 allocations an event each (BenchmarkYoungEvents), and the next one repays
	// it. So its cost is not what bounds maxYoung, but late events are: each costs its
	// block, which may hold thousands of older events. The newest quarter stays out, where
	// most late events fall: the last 12 s at ten events a second.
	maxYoung int
	// maxFold is the largest number of events of one fold.
	maxFold int
	// inlineEvents is the largest number of events of a block in the user's row.
	inlineEvents int
	// blockEvents is the largest number of events in a block.
	blockEvents int
	// keepRows is the largest number of log rows that a refresh keeps for its folds.
	keepRows int
	// sessionEvents is the largest number of events of a session.
	sessionEvents int
	// maxAdditions is the number of added events after which a refresh computes a profile
	// again.
	maxAdditions int
	// bounds are those of profiles.
	bounds affinity.Bounds
	// hold is what the computation of one user alone holds at a time.
	hold affinity.Hold
	// A user with very many values waits so long for others: in a read or a refresh, and
	// in a recompute.
	patience, bulkPatience time.Duration
	// writeBytes is the size of profiles from which a recompute or a refresh writes
	// them.
	writeBytes int
	// groupBytes is the size of the profiles that a read of many users holds at a time.
	groupBytes int
	// splitUsers is from how many users on a strong read asks two clusters.
	splitUsers int
}

var defaultLimits = limits{
	foldEvents: 256, maintainEvents: 32, foldAge: time.Minute, maxYoung: 500,
	maxFold: 200_000, inlineEvents: inlineEvents, blockEvents: 1 << 20, keepRows: 8_192,
	sessionEvents: affinity.MaxSessionEvents, maxAdditions: affinity.MaxAdditions,
	bounds: affinity.StandardBounds(), hold: affinity.Hold{Values: 200_000, Bytes: 32 << 20}, writeBytes: 4 << 20,
	groupBytes: 8 << 20, splitUsers: splitUsers,
	patience: 10 * time.Second, bulkPatience: 5 * time.Minute,
}
