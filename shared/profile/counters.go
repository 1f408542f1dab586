package profile

import (
	"sync/atomic"

	"github.com/affinityengine/affinity/shared/score/affinity"
)

// Counters count what an engine has done since it was made.
type Counters struct {
	// Folds counts committed folds, FoldsLost those that another change of the
	// manifest preceded.
	Folds, FoldsLost atomic.Int64
	// Added counts refreshes that added events to a base, AddedFromMemory those of them
	// whose base the process had written.
	Added, AddedFromMemory atomic.Int64
	// The others count refreshes that computed a profile, by the reason: no base under
	// this strategy, retention and tombstone; a ticket in between; a late event; an
	// event has left the window; the base cannot tell whether it counts an event; it
	// leaves values out; it has had MaxAdditions.
	NotAddedNoBase, NotAddedGap, NotAddedLate, NotAddedExpired atomic.Int64
	NotAddedUnclear, NotAddedLeftOut, NotAddedWorn             atomic.Int64
	// Alone counts users whose profiles were computed alone, because they have too many
	// values.
	Alone atomic.Int64
	// Faults counts users whose profiles could not be computed or stored.
	Faults atomic.Int64
	// FoldFaults counts folds and trims that failed.
	FoldFaults atomic.Int64
	// Uncovered counts how often late events uncovered part of a history.
	Uncovered atomic.Int64
	// Restarts counts computations that started again because a block was missing or
	// damaged.
	Restarts atomic.Int64
	// CorruptBlocks and CorruptManifests count lost or damaged ones. The engine read
	// the log in their place.
	CorruptBlocks, CorruptManifests atomic.Int64
	// TailHits counts refreshes that used the rows which the one before them had read,
	// TailMisses those that read the log outside the blocks as a whole.
	TailHits, TailMisses atomic.Int64
	// LogGroups counts writes of the log that waited for another one, Grouped the messages
	// that they wrote.
	LogGroups, Grouped atomic.Int64
	// Marked counts marks of users whose refresh waits for the end of a write window,
	// Refreshed the refreshes at the end of windows, and Spared those that found a valid
	// profile.
	Marked, Refreshed, Spared atomic.Int64
	// ExposuresLeft counts exposures that found no place to wait: the next answer of the user is noted.
	ExposuresLeft atomic.Int64
	// OrphansDeleted counts blocks deleted because no manifest named them.
	OrphansDeleted atomic.Int64
}

// notAdded counts a refresh that computes.
func (c *Counters) notAdded(why affinity.Refusal) {
	switch why {
	case affinity.Worn:
		c.NotAddedWorn.Add(1)
	case affinity.Expired:
		c.NotAddedExpired.Add(1)
	case affinity.LeftOut:
		c.NotAddedLeftOut.Add(1)
	default:
		c.NotAddedUnclear.Add(1)
	}
}

// Each calls fn with the metric name, the help text and the value of each counter.
func (c *Counters) Each(fn func(name, help string, read func() int64)) {
	fn("affinity.folds", "Folds of histories that were committed.", c.Folds.Load)
	fn("affinity.folds_lost", "Folds that failed because the manifest changed first.", c.FoldsLost.Load)
	fn("affinity.fold_faults", "Folds and trims of histories that failed.", c.FoldFaults.Load)
	fn("affinity.added", "Refreshes that added events to a profile.", c.Added.Load)
	fn("affinity.added_from_memory", "Refreshes that added events to a profile that their process had written.",
		c.AddedFromMemory.Load)
	fn("affinity.not_added_no_base", "Refreshes that computed: no profile to add to.", c.NotAddedNoBase.Load)
	fn("affinity.not_added_gap", "Refreshes that computed: another process refreshes the user.", c.NotAddedGap.Load)
	fn("affinity.not_added_late", "Refreshes that computed: an event was late or refused.", c.NotAddedLate.Load)
	fn("affinity.not_added_expired", "Refreshes that computed: an event has left the window.", c.NotAddedExpired.Load)
	fn("affinity.not_added_unclear", "Refreshes that computed: an event may be counted already.", c.NotAddedUnclear.Load)
	fn("affinity.not_added_left_out", "Refreshes that computed: the profile leaves values out.", c.NotAddedLeftOut.Load)
	fn("affinity.not_added_worn", "Refreshes that computed after 1,000 added events.", c.NotAddedWorn.Load)
	fn("affinity.computed_alone", "Users with so many values that their profiles were computed alone.", c.Alone.Load)
	fn("affinity.faulty_users", "Users whose profiles could not be computed or stored.", c.Faults.Load)
	fn("affinity.reopened", "Times a late event uncovered part of a history.", c.Uncovered.Load)
	fn("affinity.restarts", "Computations that started again because a block was missing or damaged.",
		c.Restarts.Load)
	fn("affinity.corrupt_blocks", "Lost or damaged blocks; the engine read the log.", c.CorruptBlocks.Load)
	fn("affinity.corrupt_manifests", "Damaged manifests; the engine read the log.", c.CorruptManifests.Load)
	fn("affinity.tail_hits", "Refreshes that used the rows that the refresh before had read.", c.TailHits.Load)
	fn("affinity.tail_misses", "Refreshes that read all of the log outside the blocks.", c.TailMisses.Load)
	fn("affinity.log_groups", "Writes of the log that waited for another one, each for all messages that waited.",
		c.LogGroups.Load)
	fn("affinity.grouped_messages", "Messages whose events such a write has written.", c.Grouped.Load)
	fn("affinity.marked_users", "Marks of users whose profiles are refreshed at the end of a write window.", c.Marked.Load)
	fn("affinity.window_refreshes", "Profiles that were computed at the end of a write window.", c.Refreshed.Load)
	fn("affinity.window_spared", "Ends of write windows that found a valid profile.", c.Spared.Load)
	fn("affinity.exposures_left", "Exposures to experiments that found no place to wait.", c.ExposuresLeft.Load)
	fn("affinity.swept_blocks", "Blocks deleted because no manifest named them.", c.OrphansDeleted.Load)
}
