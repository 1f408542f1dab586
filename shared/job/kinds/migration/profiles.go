package migration

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/googleapis/gax-go/v2"

	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/store"
)

const (
	// lag is the age from which an event is surely in both schemas. A busy user
	// always has younger events that are in one schema only.
	lag = 10 * time.Second
	// sampleTime is how long the comparison of profiles may take after the
	// task's time is over.
	sampleTime = time.Minute
)

// held is what the comparison of a user's profiles holds of each: some 10 MB. A user
// with more values is scored in passes.
var held = affinity.Hold{Values: 50_000, Bytes: 4 << 20}

// compareProfiles compares the profiles of the sampled users from both schemas.
func (v *verification) compareProfiles(ctx context.Context) error {
	c := affinity.Compile(v.app.Strategy)
	for _, user := range v.users.Users {
		if v.now().After(v.until.Add(sampleTime)) {
			return nil // the users have very many events: the first ones of the sample suffice
		}
		difference := ""
		for _, pause := range v.pauses {
			if err := gax.Sleep(ctx, pause); err != nil {
				return err
			}
			var err error
			if difference, err = v.compareProfile(ctx, c, user); errors.Is(err, errTime) {
				return nil // the user has very many values
			} else if err != nil {
				return err
			}
			if difference == "" {
				break
			}
		}
		if difference != "" {
			v.addFault("profile of %s: %s", user, difference)
		}
		v.counts.Profiles++
	}
	return nil
}

// compareProfile describes how a user's profiles from the two schemas differ;
// "" if they are the same.
func (v *verification) compareProfile(ctx context.Context, c *affinity.Compiled, user string) (string, error) {
	row, err := v.store.Users.ReadUser(ctx, v.app.ID, user)
	if err != nil {
		return "", err
	}
	window := affinity.Window{
		Now: v.now().Add(-lag).UnixMilli(), RetentionDays: v.app.RetentionDays,
		// The rows between are compared one by one, with their receipts.
		DeletedUntil: max(row.Tombstone().Alive()-1, 0),
	}
	scores := map[schema.Name]affinity.Profile{}
	for _, n := range []schema.Name{v.from, v.to} {
		from := history.Pos{Time: max(window.From(), v.params.SinceMillis())}
		events := []store.UserRange{{User: user, From: from, To: history.Pos{Time: window.Now + 1}}}
		l := v.store.Events.Log(v.app.ID, schema.Layout{Write: v.app.Log.Write, Read: n, Encoding: v.app.Log.Encoding})
		var damage error // the first row that does not decode
		rows := store.NewLogScorer(c)
		scorer, err := affinity.InPasses(c, window, v.held, func(sc *affinity.Scorer) error {
			if v.now().After(v.until.Add(sampleTime)) {
				return errTime
			}
			return l.ReadFor(ctx, events, c, func(_ string, row store.LogRow) error {
				damage = rows.Score(row, sc)
				return damage
			})
		})
		switch {
		case damage != nil:
			return fmt.Sprintf("%s: %v", n, damage), nil
		case errors.Is(err, store.ErrLogKey):
			return fmt.Sprintf("%s: %v", n, err), nil
		case err != nil:
			return "", err
		}
		scores[n] = scorer.Profile()
	}
	return diffProfiles(scores[v.from], scores[v.to]), nil
}

// diffProfiles describes how two profiles differ; "" if they are the same. Sums of
// another order differ in their last bits, so of the values at a bound each may list
// others.
func diffProfiles(a, b affinity.Profile) string {
	switch {
	case a.Known != b.Known || a.LastEventAt != b.LastEventAt:
		return fmt.Sprintf("last event at %d or %d", a.LastEventAt, b.LastEventAt)
	case a.Total != b.Total:
		return fmt.Sprintf("%d affinities or %d", a.Total, b.Total)
	case a.Truncated() != b.Truncated():
		return fmt.Sprintf("%d affinities of %d, or %d", len(a.Affinities), a.Total, len(b.Affinities))
	}
	if difference := diffLists(a, b); difference != "" {
		return difference
	}
	return diffLists(b, a)
}

// diffLists describes which affinity of a profile another one lacks or scores otherwise.
func diffLists(a, b affinity.Profile) string {
	type filter struct{ facet, value string }
	scores, leftOut := map[filter][]float64{}, map[string][]float64{}
	for _, x := range b.Affinities {
		scores[filter{x.Facet, x.Value}] = x.Scores
	}
	for _, x := range b.LeftOut {
		leftOut[x.Facet] = x.Scores
	}
	for _, x := range a.Affinities {
		y, listed := scores[filter{x.Facet, x.Value}]
		most := leftOut[x.Facet]
		if !listed && len(most) != len(x.Scores) {
			return fmt.Sprintf("%s:%s is in one of the two", x.Facet, x.Value)
		}
		for i, score := range x.Scores {
			if !listed && score > most[i]*(1+tolerance) {
				return fmt.Sprintf("%s:%s is in one of the two", x.Facet, x.Value)
			}
			if listed && math.Abs(score-y[i]) > tolerance*max(score, y[i]) {
				return fmt.Sprintf("%s:%s scores %g or %g", x.Facet, x.Value, score, y[i])
			}
		}
	}
	return ""
}
