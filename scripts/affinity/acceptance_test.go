package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/app/limit"
	"github.com/affinityengine/affinity/shared/local/race"
	"github.com/affinityengine/affinity/shared/local/realdata"
	"github.com/affinityengine/affinity/shared/local/stack"
)

// realData is the name of a data set of package realdata.
type realData string

func eachRealData(t *testing.T, do func(t *testing.T, d realData)) {
	for _, name := range realdata.With(t, realdata.ProfilesFile) {
		t.Run(name, func(t *testing.T) { do(t, realData(name)) })
	}
}

func (d realData) file(t *testing.T, name string) string { return realdata.Path(t, string(d), name) }

// expected are the users whose profiles are compared: all that are known, or some
// under the race detector.
func (d realData) expected(t *testing.T) []realProfile {
	all := realdata.Decoded[realProfile](t, string(d), realdata.ProfilesFile)
	return all[:len(all)/race.Or(1, 3)]
}

// eventsFile is the file of events to import: those of the compared users and some of the
// others, or all events.
func (d realData) eventsFile(t *testing.T, compared []realProfile) string {
	t.Helper()
	if os.Getenv(wholeData) == "1" {
		return d.file(t, realdata.EventsFile)
	}
	one := race.Or(10, 40)
	wanted := map[string]bool{}
	for _, p := range compared {
		wanted[p.UserToken] = true
	}
	var b bytes.Buffer
	i := 0
	for line := range realdata.Lines(t, string(d), realdata.EventsFile) {
		var e struct{ UserToken string }
		must(t, json.Unmarshal(line, &e))
		if wanted[e.UserToken] || i%one == 0 {
			b.Write(line)
			b.WriteByte('\n')
		}
		i++
	}
	path := filepath.Join(t.TempDir(), "events.ndjson")
	must(t, os.WriteFile(path, b.Bytes(), 0o600))
	return path
}

// realProfile is an expected profile: plain sums.
type realProfile struct {
	UserToken   string
	LastEventAt int64
	Scores      map[string]map[string]float64
}

// post sends a body with the demo app's key and returns the answer to a 200.
func post(ctx context.Context, s *stack.Stack, path string, body any) ([]byte, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+path, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	req.Header.Set("X-Algolia-Application-Id", "demo")
	req.Header.Set("X-Algolia-API-Key", "demokey")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("POST %s: %d %s", path, res.StatusCode, answer)
	}
	return answer, err
}

// profiles reads the whole profiles of up to a thousand users.
func profiles(t *testing.T, s *stack.Stack, users []string) map[string]realProfile {
	t.Helper()
	answer, err := post(t.Context(), s, "/1/profiles/batch", map[string]any{"userTokens": users, "limit": 1_000_000})
	must(t, err)
	var got struct {
		Profiles []struct {
			UserToken   string
			LastEventAt time.Time
			Affinities  []struct {
				Facet, Value string
				Score        float64
			}
		}
	}
	must(t, json.Unmarshal(answer, &got))
	all := map[string]realProfile{}
	for _, p := range got.Profiles {
		r := realProfile{p.UserToken, p.LastEventAt.UnixMilli(), map[string]map[string]float64{}}
		for _, a := range p.Affinities {
			if r.Scores[a.Facet] == nil {
				r.Scores[a.Facet] = map[string]float64{}
			}
			r.Scores[a.Facet][a.Value] = a.Score
		}
		all[p.UserToken] = r
	}
	return all
}

// compare compares the profiles of a running engine with the expected ones.
func compare(t *testing.T, s *stack.Stack, want []realProfile) {
	t.Helper()
	for part := range slices.Chunk(want, 1000) {
		var users []string
		for _, p := range part {
			users = append(users, p.UserToken)
		}
		got := profiles(t, s, users)
		for _, p := range part {
			if diff := cmp.Diff(p, got[p.UserToken]); diff != "" {
				t.Fatalf("profile of %s (-want +got):\n%s", p.UserToken, diff)
			}
		}
	}
}

func TestRealDataImported(t *testing.T) {
	t.Parallel()
	eachRealData(t, func(t *testing.T, d realData) {
		s := startEngine(t, stack.Options{RetentionDays: 0})
		want := d.expected(t)
		command := []string{"import", "--url", s.URL, "--index", "shop", "--objects", d.file(t, realdata.ObjectsFile),
			"--strategy", d.file(t, realdata.StrategyFile), d.eventsFile(t, want)}
		affinity(t, "", command...).wants(t, cli.ExitOK)
		compare(t, s, want)
		if d == "onlineretail" { // import the smaller one again: nothing may change
			affinity(t, "", command...).wants(t, cli.ExitOK)
			compare(t, s, want)
		}
	})
}

// realEvent is an event of the data sets.
type realEvent struct {
	EventType string   `json:"eventType"`
	EventName string   `json:"eventName"`
	UserToken string   `json:"userToken"`
	Timestamp int64    `json:"timestamp"`
	Index     string   `json:"index"`
	ObjectIDs []string `json:"objectIDs"`
}

func TestRealDataSentAsEvents(t *testing.T) {
	t.Parallel()
	eachRealData(t, func(t *testing.T, d realData) {
		if race.On && d != "onlineretail" {
			t.Skip("the smaller data set is enough under the race detector")
		}
		s := startEngine(t, stack.Options{RetentionDays: 90, Limits: limit.Numbers{EventsPerSecond: limit.Max, UserEventsPerDay: limit.Max}})
		// An import of no events sets objects and strategy.
		affinity(t, "", "import", "--url", s.URL, "--index", "shop", "--objects", d.file(t, realdata.ObjectsFile),
			"--strategy", d.file(t, realdata.StrategyFile), "-").wants(t, cli.ExitOK)
		events := realdata.Decoded[realEvent](t, string(d), realdata.EventsFile)
		moved := moveIntoLastDays(events, s.Backends.Now(), 20)
		want := d.expected(t)
		chosen := map[string]bool{}
		for i, p := range want {
			want[i].LastEventAt = moved(p.LastEventAt)
			chosen[p.UserToken] = true
		}
		want = append(want, more(t, d, events, chosen, moved, race.Or(500, 50))...)
		send(t, s, events, chosen, moved)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		must(t, s.Idle(ctx))
		compare(t, s, want)
	})
}

// moveIntoLastDays maps the times of the data to the days before now, in order.
func moveIntoLastDays(events []realEvent, now time.Time, days int64) func(int64) int64 {
	first, last := events[0].Timestamp, events[0].Timestamp
	for _, e := range events {
		first, last = min(first, e.Timestamp), max(last, e.Timestamp)
	}
	span := days * 24 * time.Hour.Milliseconds()
	return func(t int64) int64 {
		return now.UnixMilli() - span + int64(float64(t-first)/float64(last-first+1)*float64(span))
	}
}

// more chooses further users and computes their profiles as plain sums over their
// events.
func more(t *testing.T, d realData, events []realEvent, chosen map[string]bool, moved func(int64) int64, n int) []realProfile {
	t.Helper()
	weights, points := strategyOf(t, d)
	objects := map[string]map[string]any{}
	for _, o := range realdata.Decoded[map[string]any](t, string(d), realdata.ObjectsFile) {
		objects[o["objectID"].(string)] = o
	}
	byUser, seen := map[string]*realProfile{}, map[string]bool{}
	for _, user := range spread(events, chosen, n) {
		byUser[user] = &realProfile{UserToken: user, Scores: map[string]map[string]float64{}}
		chosen[user] = true
	}
	for _, e := range events {
		p := byUser[e.UserToken]
		// Two events of equal content at one time are one event.
		content := fmt.Sprint(e)
		if p == nil || seen[content] {
			continue
		}
		seen[content] = true
		p.LastEventAt = max(p.LastEventAt, moved(e.Timestamp))
		for facet, weight := range weights {
			for _, id := range e.ObjectIDs {
				for _, value := range valuesOf(objects[id][facet]) {
					if add := weight * points[e.EventType+" "+e.EventName]; add > 0 {
						if p.Scores[facet] == nil {
							p.Scores[facet] = map[string]float64{}
						}
						p.Scores[facet][value] += add
					}
				}
			}
		}
	}
	var all []realProfile
	for _, p := range byUser {
		all = append(all, *p)
	}
	return all
}

// spread returns n users that are not chosen yet, evenly over the data.
func spread(events []realEvent, chosen map[string]bool, n int) []string {
	var users []string
	seen := map[string]bool{}
	for _, e := range events {
		if !seen[e.UserToken] && !chosen[e.UserToken] {
			seen[e.UserToken] = true
			users = append(users, e.UserToken)
		}
	}
	some := make([]string, n)
	for i := range some {
		some[i] = users[i*len(users)/n]
	}
	return some
}

func strategyOf(t *testing.T, d realData) (weights, points map[string]float64) {
	t.Helper()
	text, err := os.ReadFile(d.file(t, realdata.StrategyFile))
	must(t, err)
	var st struct {
		EventsScoring []struct {
			EventType, EventName string
			Score                float64
		}
		FacetsScoring []struct {
			FacetName string
			Score     float64
		}
	}
	must(t, json.Unmarshal(text, &st))
	weights, points = map[string]float64{}, map[string]float64{}
	for _, f := range st.FacetsScoring {
		weights[f.FacetName] = f.Score
	}
	for _, e := range st.EventsScoring {
		points[e.EventType+" "+e.EventName] = e.Score
	}
	return weights, points
}

func valuesOf(v any) []string {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		var all []string
		for _, x := range v {
			all = append(all, valuesOf(x)...)
		}
		return all
	}
	return nil
}

// send sends the chosen users' events in random order, one in ten twice.
func send(t *testing.T, s *stack.Stack, events []realEvent, chosen map[string]bool, moved func(int64) int64) {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	var all []realEvent
	for _, e := range events {
		if chosen[e.UserToken] {
			e.Timestamp, e.Index = moved(e.Timestamp), "shop"
			all = append(all, e)
			if random.IntN(10) == 0 {
				all = append(all, e)
			}
		}
	}
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	g, ctx := errgroup.WithContext(t.Context())
	g.SetLimit(8)
	for part := range slices.Chunk(all, 50) {
		g.Go(func() error {
			_, err := post(ctx, s, "/1/events", map[string]any{"events": part})
			return err
		})
	}
	must(t, g.Wait())
}
