package migration

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc/status"

	"github.com/affinityengine/affinity/shared/affinity"
	"github.com/affinityengine/affinity/shared/history"
	"github.com/affinityengine/affinity/shared/schema"
	"github.com/affinityengine/affinity/shared/store"
)

const (
	// lag is how old an event is before it is sure to lie in both schemas: younger
	// ones of a busy user would lie in one of them at every look.
	lag = 10 * time.Second
	// sampleTime is how long the sample may take beyond the time of the task.
	sampleTime = time.Minute
)

// profiles compares what the sampled users score by either schema.
func (v *verification) profiles(ctx context.Context) error {
	c := affinity.Compile(v.app.Strategy)
	for _, user := range v.users.chosen {
		if v.now().After(v.until.Add(sampleTime)) {
			return nil // users with very many events: some of the sample will do
		}
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
	window := affinity.Window{Now: v.now().Add(-lag).UnixMilli(), RetentionDays: v.app.RetentionDays, DeletedUntil: row.DeletedUntil}
	scores := map[schema.Name]affinity.Profile{}
	for _, n := range []schema.Name{v.from, v.to} {
		scorer := affinity.NewScorer(c, window)
		spans := []store.UserRange{{User: user, From: history.Pos{Time: max(window.From(), v.since)}, To: history.Pos{Time: window.Now + 1}}}
		l := v.store.Log(v.app.ID, schema.Layout{Write: v.app.Log.Write, Read: n, Encoding: v.app.Log.Encoding})
		if _, err := l.Score(ctx, spans, c, func(string) *affinity.Scorer { return scorer }); err != nil {
			if fault(err) {
				return "", err
			}
			return fmt.Sprintf("%s: %v", n, err), nil
		}
		scores[n] = scorer.Profile()
	}
	return unlikeProfiles(scores[v.from], scores[v.to]), nil
}

// fault tells an error of Bigtable, or an end of the context, from one of what was
// read.
func fault(err error) bool {
	var answer interface{ GRPCStatus() *status.Status }
	return errors.As(err, &answer) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
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
