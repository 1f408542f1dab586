package segment

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// Scoring is what all profiles of a part have in common. A profile of another one
// is refused.
type Scoring struct {
	// Version is that of the strategy at which its scoring last changed. Profiles may be of a
	// later one.
	Version       int64
	RetentionDays int
	HalfLives     []strategy.HalfLife
}

// ErrScoring means that a profile was scored in another way than the part.
var ErrScoring = errors.New("the profile was scored under another strategy or retention")

// Packer makes parts of profiles. It keeps its memory from part to part, and is not
// safe for concurrent use.
type Packer struct {
	scoring    Scoring
	decays     []Decay
	affinities int // at most

	part     Part
	begun    bool
	whole    []int64 // by half-life: Decay.halvings of the part's instant
	stored   affinity.Stored
	tokens   []string
	expiries []expiry
	ahead    []Ahead

	values   numbering
	factors  []carry
	keys     []uint64 // of an affinity, by half-life
	postings *postings
	list     columns
	bands    bandCells
}

// carry is what takes scores as of an instant to keys of a part.
type carry struct {
	factor float64
	whole  Order
}

// NewPacker returns a packer of parts with at most so many affinities, or MaxAffinities
// if it is 0. The last user of a part may exceed the number.
func NewPacker(s Scoring, affinities int) *Packer {
	if affinities <= 0 || affinities > MaxAffinities {
		affinities = MaxAffinities
	}
	p := &Packer{scoring: s, decays: decaysOf(s.HalfLives), affinities: affinities, postings: spare.Get().(*postings)}
	p.factors, p.whole, p.keys = make([]carry, len(p.decays)), make([]int64, len(p.decays)), make([]uint64, len(p.decays))
	return p
}

// Close gives the packer's memory to later ones. The packer can no longer be used.
func (p *Packer) Close() {
	spare.Put(p.postings)
	p.postings, p.begun = nil, false
}

// Begin begins a part at an instant (ms). A delta keeps its lists in buckets. What an
// earlier part has not finished is dropped.
func (p *Packer) Begin(id PartID, delta bool, instant int64) {
	p.part, p.begun = Part{ID: id, Delta: delta, Instant: instant}, true
	for i, d := range p.decays {
		p.whole[i], _ = d.halvings(instant)
	}
	clear(p.tokens)
	p.tokens, p.expiries, p.ahead = p.tokens[:0], p.expiries[:0], p.ahead[:0]
	p.values.begin()
	p.postings.begin(len(p.decays))
}

// Add adds the stored form of a profile (affinity.Profile.AppendBinary) of a user who
// follows all earlier ones in the order of tokens. The packer keeps neither. Users who
// hold nothing and never will are left out. After an error, which says what is wrong with
// the profile, the user is not in the part, and packing can go on.
func (p *Packer) Add(user string, stored []byte) error {
	if n := len(p.tokens); !p.begun || n == MaxUsers || n > 0 && TokenOrder(user, p.tokens[n-1]) <= 0 {
		return fmt.Errorf("pack the profile of %s: the part has %d users and takes none that is not behind them", user, n)
	}
	if err := p.stored.Begin(stored); err != nil {
		return fmt.Errorf("pack the profile of %s: %w", user, err)
	}
	head := &p.stored.Outline
	if head.StrategyVersion < p.scoring.Version || head.RetentionDays != p.scoring.RetentionDays ||
		!slices.EqualFunc(head.HalfLives, p.scoring.HalfLives, strategy.HalfLife.SameAs) {
		return fmt.Errorf("pack the profile of %s: %w", user, ErrScoring)
	}
	ordinal := uint16(len(p.tokens))
	until := p.collect(ordinal)
	if err := p.stored.End(); err != nil {
		return fmt.Errorf("pack the profile of %s: %w", user, err)
	}
	if !p.postings.addUser() && until == math.MaxInt64 {
		return nil
	}
	p.tokens = append(p.tokens, user)
	if until != math.MaxInt64 {
		p.expiries = append(p.expiries, expiry{max(until, 0), ordinal})
	}
	if head.Anchor > p.part.Instant {
		p.ahead = append(p.ahead, Ahead{ordinal, head.Anchor})
	}
	return nil
}

// collect collects the affinities of the current profile, and returns when it expires.
func (p *Packer) collect(ordinal uint16) (until int64) {
	head := &p.stored.Outline
	for i, d := range p.decays {
		whole, rest := d.halvings(head.Anchor)
		p.factors[i] = carry{math.Exp2(rest), Order(whole-p.whole[i]) * octave}
	}
	p.values.facets(p.stored.Facets())
	p.postings.beginUser()
	until = head.Until
	for {
		facet, value, scores, ok := p.stored.Next()
		if !ok {
			return until
		}
		for i, score := range scores {
			key := uint64(0)
			if score > Least {
				c := &p.factors[i]
				key = uint64(min(max(keyOf(score*c.factor)+c.whole, 0), maxKey-1))
			}
			p.keys[i] = key
		}
		p.postings.add(p.values.number(facet, value), ordinal, p.keys)
		if p.stored.LeavesOut && len(scores) > 1 {
			until = min(until, p.settledUntil(scores))
		}
	}
}

// settledUntil returns how long it is certain that the bounds still choose a value: until
// one of its scores counts as none.
func (p *Packer) settledUntil(scores []float64) int64 {
	until := float64(math.MaxInt64)
	for i, score := range scores {
		if h := p.decays[i].halfLife; score > Least && h > 0 {
			until = min(until, float64(p.stored.Outline.Anchor)+h*math.Log2(score/Least))
		}
	}
	if until >= math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(until)
}

// Full reports whether the part takes no more users.
func (p *Packer) Full() bool {
	return len(p.tokens) == MaxUsers || p.postings.count >= p.affinities || p.values.bytes >= valueBytes
}

// FullAfter reports whether the part is full after so many more users like those that it
// has.
func (p *Packer) FullAfter(users int) bool {
	n := len(p.tokens)
	return p.Full() || n > 0 && (n+users >= MaxUsers || p.postings.count+p.postings.count/n*users >= p.affinities)
}

// Users returns the number of users in the part so far.
func (p *Packer) Users() int { return len(p.tokens) }
