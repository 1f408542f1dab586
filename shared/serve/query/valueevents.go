package query

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"slices"

	"github.com/affinityengine/affinity/shared/admission"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/consent"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

const (
	// leastHolders is how many users of a sample must have a value for an estimate of
	// its events.
	leastHolders = 5
	// countedUsers is how many users are computed at a time, and countedBytes what a
	// value of a profile holds until they are counted.
	countedUsers = 50
	countedBytes = 256
)

// CountEvents sets the events of values of a facet: those of users, if they are all users
// of the app, and otherwise the users who have the value, times the mean of those among
// them. It reads the histories of the users.
func (r *Reader) CountEvents(ctx context.Context, app config.App, facet string, values []Value, users []string,
	all bool) error {
	type count struct{ holders, events float64 }
	counts := make(map[string]count, len(values))
	for _, v := range values {
		counts[v.Value] = count{}
	}
	counting := affinity.Compile(countingStrategy(app.Strategy, facet))
	for chunk := range slices.Chunk(users, countedUsers) {
		profiles, err := r.countedProfiles(ctx, app, chunk, counting)
		if err != nil {
			return err
		}
		for _, p := range profiles {
			for _, a := range p[0].Affinities {
				if c, listed := counts[a.Value]; listed {
					counts[a.Value] = count{c.holders + 1, c.events + a.Scores[0]}
				}
			}
		}
	}
	for i := range values {
		v := &values[i]
		switch c := counts[v.Value]; {
		case all:
			v.Events = int64(c.events)
		case c.holders >= leastHolders:
			v.Events = int64(math.Round(c.events / c.holders * float64(v.Users)))
		}
	}
	return nil
}

// countedProfiles computes the profiles of some users. It leaves out faulty users.
func (r *Reader) countedProfiles(ctx context.Context, app config.App, users []string,
	c *affinity.Compiled) (map[string][]affinity.Profile, error) {
	part, end := admission.Part(ctx)
	defer end()
	profiles, err := r.profiles.Compute(ctx, app.For(consent.Segments), users, c)
	var faulty profile.Faulty
	if err != nil && !errors.As(err, &faulty) {
		return nil, err
	}
	for user, err := range faulty {
		r.log.LogAttrs(ctx, slog.LevelError, "the events of a faulty user are not counted",
			slog.String("app", app.ID), slog.String("user", user), slog.Any("error", err))
	}
	held := 0
	for _, p := range profiles {
		held += len(p[0].Affinities) * countedBytes
	}
	return profiles, admission.Take(part, int64(held))
}

// countingStrategy is a strategy under which the score of a value of the facet is the
// number of events that have it: those that s scores.
func countingStrategy(s strategy.Strategy, facet string) strategy.Strategy {
	counting := strategy.Strategy{
		FacetsScoring: []strategy.FacetScore{{FacetName: facet, Score: 1}},
		Aliases:       s.Aliases,
		IgnoredValues: s.IgnoredValues, AllowedValues: s.AllowedValues,
	}
	for _, e := range s.EventsScoring {
		if e.Score > 0 {
			e.Score = 1
			counting.EventsScoring = append(counting.EventsScoring, e)
		}
	}
	return counting
}
