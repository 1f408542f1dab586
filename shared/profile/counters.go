package profile

import "sync/atomic"

// Counters are what an engine has done and met since it began.
type Counters struct {
	// Folds were committed, FoldsLost were overtaken by another change.
	Folds, FoldsLost atomic.Int64
	// FoldFaults counts histories that a fault kept from being folded or trimmed.
	FoldFaults atomic.Int64
	// Reopened counts ranges of histories that late events uncovered, by message.
	Reopened atomic.Int64
	// Restarts counts computations that began again because a block had gone.
	Restarts atomic.Int64
	// CorruptBlocks and CorruptManifests could not be read; the log was.
	CorruptBlocks, CorruptManifests atomic.Int64
	// Swept counts blocks removed because no manifest named them.
	Swept atomic.Int64
}

// Counters returns the engine's counters.
func (e *Engine) Counters() *Counters { return &e.counters }

// Each calls fn with every counter, its name as a metric and what it says.
func (c *Counters) Each(fn func(name, help string, read func() int64)) {
	fn("affinity_folds_total", "Folds of histories that were committed.", c.Folds.Load)
	fn("affinity_folds_lost_total", "Folds that another change overtook.", c.FoldsLost.Load)
	fn("affinity_fold_faults_total", "Histories that a fault kept from being folded.", c.FoldFaults.Load)
	fn("affinity_reopened_total", "Times a late event uncovered part of a history.", c.Reopened.Load)
	fn("affinity_restarts_total", "Computations begun again because a block had gone.", c.Restarts.Load)
	fn("affinity_corrupt_blocks_total", "Blocks that could not be read; the log was.", c.CorruptBlocks.Load)
	fn("affinity_corrupt_manifests_total", "Manifests that could not be read; the log was.", c.CorruptManifests.Load)
	fn("affinity_swept_blocks_total", "Blocks removed because nothing named them.", c.Swept.Load)
}
