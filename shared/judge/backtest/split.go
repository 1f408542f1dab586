package backtest

// TuningShare is the share of the cases that a search sees, in percent.
const TuningShare = 70

// Split divides the cases by a hash of their users, which other users do not
// change: those that a search and the half-life of popularity-recent go by, and
// those that nothing was chosen by.
func (c *Cases) Split() (tuning, untouched *Cases) {
	part := func(tuned bool) *Cases {
		return c.Subset(func(i int) bool { return mix(c.UserKey(i)+splitStep)%100 < TuningShare == tuned })
	}
	return part(true), part(false)
}

// splitStep makes another hash of a hash. The cases of a sample are those with
// the lowest keys, so the keys themselves must not split them.
const splitStep = 0x9e3779b97f4a7c15
