package daterows

// SetPart sets the number of rows between two checkpoints.
func (r *Runner) SetPart(rows int) { r.work.partRows = rows }
