package migration

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/googleapis/gax-go/v2"

	"github.com/affinityengine/affinity/shared/affinity"
	"github.com/affinityengine/affinity/shared/history"
	"github.com/affinityengine/affinity/shared/schema"
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
			if difference, err = v.compareProfile(ctx, c, user); err != nil {
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
	row, err := v.store.ReadUser(ctx, v.app.ID, user)
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
		scorer := affinity.NewScorer(c, window)
		from := history.Pos{Time: max(window.From(), v.params.SinceMillis())}
		events := []store.UserRange{{User: user, From: from, To: history.Pos{Time: window.Now + 1}}}
		l := v.store.Log(v.app.ID, schema.Layout{Write: v.app.Log.Write, Read: n, Encoding: v.app.Log.Encoding})
		var damage error // the first row that does not decode
		rows := store.NewLogScorer(c)
		err := l.ReadFor(ctx, events, c, func(_ string, row store.LogRow) error {
			damage = rows.Score(row, scorer)
			return damage
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

// diffProfiles describes how two profiles differ; "" if they are the same.
func diffProfiles(a, b affinity.Profile) string {
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
			return fmt.Sprintf("%s:%s is in one of the two", y.Facet, y.Value)
		}
		for i := range x {
			if math.Abs(x[i]-y.Scores[i]) > tolerance*max(x[i], y.Scores[i]) {
				return fmt.Sprintf("%s:%s scores %g or %g", y.Facet, y.Value, x[i], y.Scores[i])
			}
		}
	}
	return ""
}
