package profile

import "sync/atomic"

// Counters count what an engine has done since it was made.
type Counters struct {
	// Folds counts committed folds, FoldsLost those that another change of the
	// manifest preceded.
	Folds, FoldsLost atomic.Int64
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
	// OrphansDeleted counts blocks deleted because no manifest named them.
	OrphansDeleted atomic.Int64
}

// Each calls fn with the metric name, the help text and the value of each counter.
func (c *Counters) Each(fn func(name, help string, read func() int64)) {
	fn("affinity_folds_total", "Folds of histories that were committed.", c.Folds.Load)
	fn("affinity_folds_lost_total", "Folds that failed because the manifest changed first.", c.FoldsLost.Load)
	fn("affinity_fold_faults_total", "Folds and trims of histories that failed.", c.FoldFaults.Load)
	fn("affinity_computed_alone_total", "Users with so many values that their profiles were computed alone.", c.Alone.Load)
	fn("affinity_faulty_users_total", "Users whose profiles could not be computed or stored.", c.Faults.Load)
	fn("affinity_reopened_total", "Times a late event uncovered part of a history.", c.Uncovered.Load)
	fn("affinity_restarts_total", "Computations that started again because a block was missing or damaged.",
		c.Restarts.Load)
	fn("affinity_corrupt_blocks_total", "Lost or damaged blocks; the engine read the log.", c.CorruptBlocks.Load)
	fn("affinity_corrupt_manifests_total", "Damaged manifests; the engine read the log.", c.CorruptManifests.Load)
	fn("affinity_swept_blocks_total", "Blocks deleted because no manifest named them.", c.OrphansDeleted.Load)
}
