// Package view encodes a profile, and the links between tokens, as the HTTP API answers them. Functions profiles and
// recomputes answer profiles, and no other form of them exists.
package view

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// Append appends the answer for a profile, with at most limit affinities, scored
// and sorted by halfLife. The zero value is the strategy's first half-life. The answer is
// an api.Profile, as package json encodes it: a page waits for it, and most of it is a
// hundred affinities of the same form.
func Append(b []byte, user string, r profile.Result, limit int, halfLife strategy.HalfLife) ([]byte, error) {
	return AppendWithSegments(b, user, r, limit, halfLife, nil)
}

// AppendWithSegments is Append with the names of the user's segments, unless they are
// nil.
func AppendWithSegments(b []byte, user string, r profile.Result, limit int, halfLife strategy.HalfLife,
	segments []string) ([]byte, error) {
	at, err := strategy.HalfLifeAt(r.HalfLives, halfLife)
	if err != nil {
		return nil, err
	}
	if at > 0 {
		slices.SortStableFunc(r.Affinities, func(a, b affinity.Affinity) int {
			switch {
			case a.Scores[at] > b.Scores[at]:
				return -1
			case a.Scores[at] < b.Scores[at]:
				return 1
			}
			return strings.Compare(a.Facet+"\x00"+a.Value, b.Facet+"\x00"+b.Value)
		})
	}
	b = appendText(append(b, `{"userToken":`...), user)
	b = api.AtMillis(r.LastEventAt).AppendJSON(append(b, `,"lastEventAt":`...))
	b = api.AtMillis(r.Anchor).AppendJSON(append(b, `,"asOf":`...))
	if r.Since != 0 {
		b = api.AtMillis(r.Since).AppendJSON(append(b, `,"heldFrom":`...))
	}
	b = strconv.AppendInt(append(b, `,"strategyVersion":`...), r.App.StrategyVersion, 10)
	if v := scoringVersion(r.App); v != 0 {
		b = strconv.AppendInt(append(b, `,"scoringVersion":`...), v, 10)
	}
	source := api.SourceComputed
	if r.Stored {
		source = api.SourceStored
	}
	b = appendText(append(b, `,"source":`...), source)
	b = strconv.AppendInt(append(b, `,"total":`...), int64(r.Total), 10)
	if r.Truncated() {
		b = append(b, `,"truncated":true`...)
	}
	if segments != nil {
		b = append(b, `,"segments":[`...)
		for i, name := range segments {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendText(b, name)
		}
		b = append(b, ']')
	}
	if r.HeldOut {
		b = append(b, `,"holdout":true`...)
	}
	if in := r.Assigned; in.Arm != "" {
		b = append(appendText(append(b, `,"experiment":{"name":`...), in.Experiment), `,"arm":`...)
		b = append(appendText(b, in.Arm), '}')
	}
	b = append(b, `,"affinities":[`...)
	names := byName(r.HalfLives)
	for i, a := range r.Affinities[:min(limit, len(r.Affinities))] {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendAffinity(b, a, at, names)
	}
	return append(b, "]}"...), nil
}

// appendAffinity appends an api.Affinity with the score of the half-life at a place, and
// with those of all.
func appendAffinity(b []byte, a affinity.Affinity, at int, names []namedHalfLife) []byte {
	b = appendText(append(b, `{"facet":`...), a.Facet)
	b = append(b, `,"operator":"`+event.Operator+`","value":`...)
	b = appendScore(append(appendText(b, a.Value), `,"score":`...), a.Scores[at])
	for i, h := range names {
		if i == 0 {
			b = append(b, `,"scores":{`...)
		} else {
			b = append(b, ',')
		}
		b = appendScore(append(appendText(b, h.name), ':'), a.Scores[h.at])
	}
	if len(names) > 0 {
		b = append(b, '}')
	}
	return append(b, '}')
}

// namedHalfLife is a half-life and its place among a profile's.
type namedHalfLife struct {
	name string
	at   int
}

// byName returns half-lives in the order of their names, as package json sorts the keys
// of a map.
func byName(halfLives []strategy.HalfLife) []namedHalfLife {
	if len(halfLives) == 0 {
		return nil
	}
	names := make([]namedHalfLife, len(halfLives))
	for i, h := range halfLives {
		names[i] = namedHalfLife{h.String(), i}
	}
	slices.SortFunc(names, func(a, b namedHalfLife) int { return strings.Compare(a.name, b.name) })
	return names
}

// appendText appends a string as package json encodes it.
func appendText(b []byte, s string) []byte {
	for _, r := range s {
		// A byte that is not UTF-8 is read as utf8.RuneError.
		if r < ' ' || r == '"' || r == '\\' || r == '<' || r == '>' || r == '&' || r == '\u2028' || r == '\u2029' ||
			r == utf8.RuneError {
			escaped, _ := json.Marshal(s) // never fails for a string
			return append(b, escaped...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}

// appendScore appends a finite number as package json encodes it: without an exponent,
// unless it is very small or large.
func appendScore(b []byte, score float64) []byte {
	if abs := math.Abs(score); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		encoded, _ := json.Marshal(score) // never fails for a finite number
		return append(b, encoded...)
	}
	return strconv.AppendFloat(b, score, 'f', -1, 64)
}

// scoringVersion returns an app's scoring version if an answer shows it.
func scoringVersion(app config.App) int64 {
	if app.ScoringVersion == app.StrategyVersion {
		return 0
	}
	return app.ScoringVersion
}
