package migrate

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/affinityengine/affinity/shared/affinity"
	"github.com/affinityengine/affinity/shared/history"
	"github.com/affinityengine/affinity/shared/schema"
	"github.com/affinityengine/affinity/shared/store"
)

// profiles compares what the sampled users score by either schema.
func (v *verification) profiles(ctx context.Context) error {
	c := affinity.Compile(v.app.Strategy)
	for _, user := range v.users.chosen {
		difference := ""
		for _, pause := range v.pauses {
			if err := wait(ctx, pause); err != nil {
				return err
			}
			var err error
			if difference, err = v.profile(ctx, c, user); err != nil {
				return err
			}
			if difference == "" {
				break
			}
		}
		if difference != "" {
			v.fault(&v.result, "profile of %s: %s", user, difference)
		}
		v.result.Users++
	}
	return nil
}

// profile says how a user's profile by one schema differs from that by the other.
func (v *verification) profile(ctx context.Context, c *affinity.Compiled, user string) (string, error) {
	row, err := v.store.ReadUser(ctx, v.app.ID, user)
	if err != nil {
		return "", err
	}
	window := affinity.Window{Now: v.now().UnixMilli(), RetentionDays: v.app.RetentionDays, DeletedUntil: row.DeletedUntil}
	scores := map[schema.Name]affinity.Profile{}
	for _, n := range []schema.Name{v.from, v.to} {
		scorer := affinity.NewScorer(c, window)
		spans := []store.Span{{User: user, From: history.Pos{Time: max(window.From(), v.since)}, To: history.End}}
		l := v.store.Log(v.app.ID, schema.Layout{Write: v.app.Log.Write, Read: n, Encoding: v.app.Log.Encoding})
		if _, err := l.Score(ctx, spans, c, func(string) *affinity.Scorer { return scorer }); err != nil {
			return fmt.Sprintf("%s: %v", n, err), ctx.Err()
		}
		scores[n] = scorer.Profile()
	}
	return unlikeProfiles(scores[v.from], scores[v.to]), nil
}

// unlikeProfiles says how two profiles differ; "" if they do not.
func unlikeProfiles(a, b affinity.Profile) string {
	type filter struct{ facet, value string }
	if a.Known != b.Known || a.LastEventAt != b.LastEventAt {
		return fmt.Sprintf("last event at %d or %d", a.LastEventAt, b.LastEventAt)
	}
	scores := map[filter][]float64{}
	for _, x := range a.Affinities {
		scores[filter{x.Facet, x.Value}] = x.Scores
	}
	if len(a.Affinities) != len(b.Affinities) {
		return fmt.Sprintf("%d affinities or %d", len(a.Affinities), len(b.Affinities))
	}
	for _, y := range b.Affinities {
		x := scores[filter{y.Facet, y.Value}]
		if len(x) != len(y.Scores) {
			return fmt.Sprintf("%s:%s is in one of them", y.Facet, y.Value)
		}
		for i := range x {
			if math.Abs(x[i]-y.Scores[i]) > tolerance*max(x[i], y.Scores[i]) {
				return fmt.Sprintf("%s:%s scores %g or %g", y.Facet, y.Value, x[i], y.Scores[i])
			}
		}
	}
	return ""
}

// sample is some of the users that have passed, each with the same chance.
type sample struct {
	rnd    *rand.Rand
	seen   int
	chosen []string
}

func (s *sample) add(user string) {
	s.seen++
	if len(s.chosen) < sampled {
		s.chosen = append(s.chosen, user)
	} else if i := s.rnd.IntN(s.seen); i < sampled {
		s.chosen[i] = user
	}
}
