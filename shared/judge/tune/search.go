package tune

import (
	"context"
	"math/rand/v2"

	"github.com/affinityengine/affinity/shared/score/strategy"
)

// search is a coordinate search from several starts: it changes one setting at a
// time by a step, keeps what is better, and continues in a direction while that
// helps. If no step helps, it changes some settings at once at random and
// searches on from there.
type search struct {
	ctx    context.Context
	space  *space
	judge  func(strategy.Strategy) (float64, error)
	most   int
	report func(Progress)
	rng    *rand.Rand

	trials int
	known  map[string]float64 // by space.key
	best   point
	value  float64
}

func newSearch(ctx context.Context, s *space, judge func(strategy.Strategy) (float64, error), o Options) *search {
	report := o.Progress
	if report == nil {
		report = func(Progress) {}
	}
	return &search{ctx: ctx, space: s, judge: judge, most: o.Trials, report: report,
		rng: rand.New(rand.NewPCG(o.Seed, 11)), known: map[string]float64{}}
}

// run searches until the trials are spent or nothing new is left to try.
func (s *search) run() error {
	s.report(Progress{Most: s.most})
	for _, p := range s.space.starts {
		if _, err := s.try(p); err != nil {
			return err
		}
	}
	at, value := s.best, s.value
	for s.trials < s.most {
		before := s.trials
		if err := s.climb(at, value); err != nil {
			return err
		}
		if s.trials == before {
			return nil
		}
		at = s.shaken()
		var err error
		if value, err = s.try(at); err != nil {
			return err
		}
	}
	return nil
}

// try judges a point unless an equal one has been. The value of a point that the
// trials no longer allow, or that cannot rank, is -1.
func (s *search) try(p point) (float64, error) {
	key := s.space.key(p)
	if v, ok := s.known[key]; ok {
		return v, nil
	}
	if s.trials >= s.most || key == "" {
		return -1, nil
	}
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	v, err := s.judge(s.space.strategy(p))
	if err != nil {
		return 0, err
	}
	s.known[key] = v
	s.trials++
	if s.best == nil || v > s.value {
		s.best, s.value = p, v
	}
	s.report(Progress{Trials: s.trials, Most: s.most, Best: s.value})
	return v, nil
}

// climb steps through the dimensions until a round of all of them brings nothing.
func (s *search) climb(at point, value float64) error {
	for improved := true; improved && s.trials < s.most; {
		improved = false
		for dim := range s.space.dims {
			next, v, err := s.line(at, value, dim)
			if err != nil {
				return err
			}
			if v > value {
				at, value, improved = next, v, true
			}
		}
	}
	return nil
}

// line searches along one dimension, up and else down.
func (s *search) line(at point, value float64, dim int) (point, float64, error) {
	from := value
	for _, step := range []int{1, -1} {
		for level := at[dim] + step; 0 <= level && level < s.space.dims[dim].levels; level += step {
			next := at.with(dim, level)
			v, err := s.try(next)
			if err != nil {
				return nil, 0, err
			}
			if v <= value {
				break
			}
			at, value = next, v
		}
		if value > from {
			break
		}
	}
	return at, value, nil
}

// shaken returns the best point with some settings changed.
func (s *search) shaken() point {
	p := s.best
	for range 3 {
		dim := s.rng.IntN(len(s.space.dims))
		p = p.with(dim, s.rng.IntN(s.space.dims[dim].levels))
	}
	return p
}
