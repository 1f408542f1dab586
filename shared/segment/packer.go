package segment

import "github.com/affinityengine/affinity/shared/strategy"

// Scoring is what all profiles of a part have in common. A profile of another one
// is refused.
type Scoring struct {
	Version       int64 // of the strategy, as profiles have it
	RetentionDays int
	HalfLives     []strategy.HalfLife
}

// Packer makes parts of profiles. It keeps its memory from part to part, and is not
// safe for concurrent use.
type Packer struct{}

// NewPacker returns a packer of parts with at most so many affinities, or MaxAffinities
// if it is 0. The last user of a part may exceed the number.
func NewPacker(s Scoring, affinities int) *Packer { return &Packer{} }

// Begin begins a part at an instant (ms). A delta keeps its lists in buckets. What an
// earlier part has not finished is dropped.
func (p *Packer) Begin(id PartID, delta bool, instant int64) {}

// Add adds the stored form of a profile (affinity.Profile.AppendBinary) of a user who
// follows all earlier ones in the order of tokens. The packer keeps neither. Users who
// hold nothing and never will are left out. After an error, which says what is wrong with
// the profile, the user is not in the part, and packing can go on.
func (p *Packer) Add(user string, stored []byte) error { return nil }

// Full reports whether the part takes no more users.
func (p *Packer) Full() bool { return false }

// Users returns the number of users in the part so far.
func (p *Packer) Users() int { return 0 }

// Finish ends the part at an instant (ms) and passes its rows to write, which must not
// keep them. It returns the description of the part, without Generation, From, To and Cut,
// and the first error of write. The packer can then begin another part.
func (p *Packer) Finish(now int64, write func(Row) error) (Part, error) { return Part{}, nil }
