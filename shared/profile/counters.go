package profile

import "sync/atomic"

// Counters count what an engine has done since it was made.
type Counters struct {
	// Folds were committed; FoldsLost lost to another change of the manifest.
	Folds, FoldsLost atomic.Int64
	// FoldFaults counts histories that a fault kept from being folded or trimmed.
	FoldFaults atomic.Int64
	// Reopened counts messages whose late events uncovered part of a history.
	Reopened atomic.Int64
	// Restarts counts computations that started again because a block was missing or
	// damaged.
	Restarts atomic.Int64
	// CorruptBlocks and CorruptManifests could not be read; the log was, in their
	// place.
	CorruptBlocks, CorruptManifests atomic.Int64
	// Swept counts blocks that were deleted because no manifest named them.
	Swept atomic.Int64
}

// Each calls fn with the metric name, the help text and the value of each counter.
func (c *Counters) Each(fn func(name, help string, read func() int64)) {
	fn("affinity_folds_total", "Folds of histories that were committed.", c.Folds.Load)
	fn("affinity_folds_lost_total", "Folds that lost to another change of the manifest.", c.FoldsLost.Load)
	fn("affinity_fold_faults_total", "Histories that a fault kept from being folded.", c.FoldFaults.Load)
	fn("affinity_reopened_total", "Times a late event uncovered part of a history.", c.Reopened.Load)
	fn("affinity_restarts_total", "Computations that started again because a block was missing or damaged.", c.Restarts.Load)
	fn("affinity_corrupt_blocks_total", "Blocks that could not be read; the log was.", c.CorruptBlocks.Load)
	fn("affinity_corrupt_manifests_total", "Manifests that could not be read; the log was.", c.CorruptManifests.Load)
	fn("affinity_swept_blocks_total", "Blocks deleted because no manifest named them.", c.Swept.Load)
}
