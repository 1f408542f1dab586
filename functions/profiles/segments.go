package profiles

import (
	"context"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/cache"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/rank/segment"
)

// compiledConditions is how many compiled conditions of saved segments a process keeps.
const compiledConditions = 1_000

// membership says to which saved segments a profile belongs. It judges the profile
// itself, so it needs no lists.
type membership struct {
	config   *config.Cached
	compiled cache.Map[conditionKey, *segment.Query]
}

// conditionKey names a compiled condition: aliases and half-lives are those of a scoring
// version.
type conditionKey struct {
	app     string
	version int64
	where   string
}

func newMembership(c *config.Cached) membership {
	return membership{c, cache.New[conditionKey, *segment.Query](compiledConditions)}
}

// saved returns the saved segments of an app if a request asks for them. The list is then
// not nil.
func (m membership) saved(ctx context.Context, app string, asked bool) ([]config.SavedSegment, error) {
	if !asked {
		return nil, nil
	}
	saved, err := m.config.SavedSegments(ctx, app)
	if saved == nil {
		saved = []config.SavedSegment{}
	}
	return saved, err
}

// of returns the names of the segments to which a profile with all its affinities
// belongs, sorted; nil if saved is nil. A segment that names a half-life which the
// strategy does not have any more has no users.
func (m membership) of(saved []config.SavedSegment, r profile.Result) ([]string, error) {
	if saved == nil {
		return nil, nil
	}
	names := []string{}
	if !r.Known {
		return names, nil
	}
	for _, s := range saved {
		q, err := m.query(s, r.App)
		if err != nil {
			return nil, err
		}
		if q == nil {
			continue
		}
		if _, holds := q.Holds(r.Profile); holds {
			names = append(names, s.Name)
		}
	}
	return names, nil
}

// query returns the compiled condition of a segment, nil if the strategy does not have
// one of its half-lives.
func (m membership) query(s config.SavedSegment, app config.App) (*segment.Query, error) {
	key := conditionKey{app.ID, app.ScoringVersion, s.Where}
	if q, ok := m.compiled.Get(key); ok {
		return q, nil
	}
	where, err := segment.Parse([]byte(s.Where))
	if err != nil {
		return nil, err
	}
	q, err := where.Compile(app.Strategy)
	if err != nil {
		q = nil
	}
	m.compiled.Set(key, q)
	return q, nil
}
