package stack_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/catalog"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/judge/backtest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

const (
	firstStrategy = `{"eventsScoring":[{"eventName":"Seen","eventType":"view","score":3}],
		"facetsScoring":[{"facetName":"color","score":10},{"facetName":"brand","score":4}],"personalizationImpact":50}`
	secondStrategy = `{"eventsScoring":[{"eventName":"Seen","eventType":"view","score":1},{"eventName":"Opened","eventType":"click","score":7}],
		"facetsScoring":[{"facetName":"brand","score":4}],"personalizationImpact":50,"halfLives":[7],
		"ranking":{"session":{"halfLife":"3e","weight":50},"freshness":{"weight":40,"halfLife":10}}}`
)

// A backtest of the live log equals one of the same events and objects in
// files: loose events, folded ones, repeated ones, events by filters and several
// indexes.
func TestBacktestEqualsFiles(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	s := start(t, stack.Options{RetentionDays: 90, Now: now, ConfigTTL: time.Millisecond})
	rng := rand.New(rand.NewPCG(7, 7))
	var objects []backtest.Object
	var actions []string
	for i := range 30 {
		record := fmt.Sprintf(`{"objectID":"o%02d","color":"c%d","brand":["b%d","b%d"],"publishedAt":"2026-11-%02d"}`, i, i%4, i%5, i%3+5, i%20+1)
		filters, err := catalog.Filters([]byte(record), catalog.Settings{})
		must.Succeed(t, err)
		at, _ := catalog.Date([]byte(record), "publishedAt")
		objects = append(objects, backtest.Object{ID: fmt.Sprintf("o%02d", i), Filters: filters, Dates: map[string]int64{"publishedAt": at}})
		actions = append(actions, `{"action":"addObject","body":`+record+`}`)
	}
	wantStatus(t, s, http.StatusOK, "POST", "/1/indexes/shoes/batch", `{"requests":[`+strings.Join(actions, ",")+`]}`)

	log, err := backtest.NewLog("shoes", objects)
	must.Succeed(t, err)
	var lines []string
	for range 900 {
		kind := [][2]string{{"view", "Seen"}, {"click", "Opened"}, {"view", "Ignored"}}[rng.IntN(3)]
		named := fmt.Sprintf(`"objectIDs":["o%02d","o%02d"]`, rng.IntN(33), rng.IntN(33))
		if rng.IntN(4) == 0 {
			named = fmt.Sprintf(`"filters":["color:c%d","brand:b%d","size:%d"]`, rng.IntN(5), rng.IntN(8), rng.IntN(3))
		}
		line := fmt.Sprintf(`{"eventType":%q,"eventName":%q,"userToken":"user-%d","timestamp":%d,"index":%q,%s}`,
			kind[0], kind[1], rng.IntN(40), now.Add(-time.Duration(rng.IntN(60*24*60))*time.Minute).UnixMilli(),
			[]string{"shoes", "shoes", "shoes", "hats"}[rng.IntN(4)], named)
		e, err := event.Decode([]byte(line), event.Rules{Now: now})
		must.Succeed(t, err)
		log.Add(backtest.Event{User: e.UserToken, Time: e.Time, ID: e.ID(), Type: e.Type, Name: e.Name, Index: e.Index, ObjectIDs: e.ObjectIDs, Filters: e.Filters})
		lines = append(lines, line)
	}
	lines = append(lines, lines[:50]...) // a repeated event counts once
	wantStatus(t, s, http.StatusOK, "POST", "/1/events/import", strings.Join(lines, "\n"))
	wantStatus(t, s, http.StatusOK, "POST", "/1/strategies/personalization", secondStrategy) // folds histories
	wantStatus(t, s, http.StatusOK, "POST", "/1/recomputes", "")

	given := []backtest.Given{{Name: "strategy 1", Strategy: decodeStrategy(t, firstStrategy)}, {Name: "version 1", Strategy: decodeStrategy(t, secondStrategy)}}
	for _, o := range []backtest.Options{{}, {Protocol: backtest.Rolling, At: 5}, {Within: "color", Sample: 12}} {
		report, err := log.Judge(t.Context(), given, o, nil)
		must.Succeed(t, err)
		body, err := json.Marshal(api.BacktestRequest{
			Index: "shoes", Strategies: []json.RawMessage{json.RawMessage(firstStrategy), json.RawMessage("1")},
			Protocol: string(o.Protocol), At: o.At, Within: o.Within, Sample: o.Sample,
		})
		must.Succeed(t, err)
		got := backtestOf(t, s, string(body))
		if got.State != api.JobDone || got.Backtest == nil {
			t.Fatalf("the backtest is %s: %s", got.State, got.Error)
		}
		if diff := cmp.Diff(report.API(), *got.Backtest); diff != "" {
			t.Errorf("%+v: backtest of the log (-files +log):\n%s", o, diff)
		}
		if got.Users != 40 || got.PlannedUsers != 40 || got.Events == 0 || got.Sampled {
			t.Errorf("%d of %d users, %d events, sampled: %v", got.Users, got.PlannedUsers, got.Events, got.Sampled)
		}
	}
}

func decodeStrategy(t *testing.T, text string) strategy.Strategy {
	t.Helper()
	s, err := strategy.Decode([]byte(text))
	must.Succeed(t, err)
	return s
}

// backtestOf runs a backtest to its end.
func backtestOf(t *testing.T, s *stack.Stack, body string) (j api.BacktestJob) {
	t.Helper()
	answer := wantStatus(t, s, http.StatusOK, "POST", "/1/backtests", body)
	poll(t, time.Minute, func() (string, bool) {
		j = api.BacktestJob{}
		if err := json.Unmarshal([]byte(answer), &j); err != nil {
			t.Fatalf("%v: %s", err, answer)
		}
		if !j.State.Ended() {
			answer = wantStatus(t, s, http.StatusOK, "GET", "/1/backtests/"+j.ID, "")
		}
		return answer, j.State.Ended()
	})
	return j
}

func TestBacktestRefusals(t *testing.T) {
	s := start(t, stack.Options{ConfigTTL: time.Millisecond})
	for body, want := range map[string]string{
		`{"strategies":[1]}`:                                "index is required",
		`{"index":"shoes","strategies":[]}`:                 "1 to 10 entries",
		`{"index":"shoes","strategies":[7]}`:                "no version 7",
		`{"index":"shoes","strategies":["x"]}`:              "the number of a version",
		`{"index":"shoes","strategies":[{"colour":1}]}`:     "colour",
		`{"index":"shoes","strategies":[1],"protocol":"x"}`: "protocol",
		`{"index":"shoes","strategies":[1],"at":-1}`:        "top list",
		`{"index":"shoes","tune":{"trials":301}}`:           "tune.trials must be from 1 to 300, got 301",
		`{"index":"shoes","tune":{"trials":-1}}`:            "from 1 to 300, got -1",
		`{"index":"shoes","tune":{},"strategies":[1,1]}`:    "at most 1 entry with tune",
		`{"index":"shoes","tune":{}}`:                       "no strategy to begin with",
		`{"index":"shoes","tune":{"seed":1}}`:               "no other keys than",
		`{"index":"shoes","tune":{},"strategies":[7]}`:      "no version 7",
		`{"index":"shoes","strategies":[1],"asOf":1}`:       "no other keys than",
		`{"index":"shoes","strategies":[{"eventsScoring":[],"facetsScoring":[],"personalizationImpact":50}]}`: "strategies[0]: the strategy scores nothing",
	} {
		if answer := wantStatus(t, s, http.StatusUnprocessableEntity, "POST", "/1/backtests", body); !strings.Contains(answer, want) {
			t.Errorf("%s: %s, want %q", body, answer, want)
		}
	}
	wantStatus(t, s, http.StatusNotFound, "GET", "/1/backtests/backtest-1", "")

	// Nothing to judge: the job fails and says why.
	line := fmt.Sprintf(`{"eventType":"view","eventName":"Seen","userToken":"u","timestamp":%d,"index":"shoes","objectIDs":["o1"]}`, time.Now().UnixMilli())
	wantStatus(t, s, http.StatusOK, "POST", "/1/events/import", line)
	body := `{"index":"shoes","strategies":[` + firstStrategy + `]}`
	if j := backtestOf(t, s, body); j.State != api.JobFailed || !strings.Contains(j.Error, "has no objects") || j.Backtest != nil {
		t.Errorf("a backtest without objects is %s: %s", j.State, j.Error)
	}
}

// Of two backtests at a time the second is refused.
func TestOneBacktestAtATime(t *testing.T) {
	s := start(t, stack.Options{ConfigTTL: time.Hour}) // jobs do not begin
	body := `{"index":"shoes","strategies":[` + firstStrategy + `]}`
	wantStatus(t, s, http.StatusOK, "POST", "/1/backtests", body)
	if answer := wantStatus(t, s, http.StatusConflict, "POST", "/1/backtests", body); !strings.Contains(answer, "is under way") {
		t.Errorf("a second backtest: %s", answer)
	}
}

// Strategies that are too large for the document of a job are refused in words,
// versions of that size are not.
func TestLargeStrategies(t *testing.T) {
	s := start(t, stack.Options{ConfigTTL: time.Millisecond})
	var aliases []string
	for i := range 700 {
		aliases = append(aliases, fmt.Sprintf(`"%d%s":"x"`, i, strings.Repeat("<", 90)))
	}
	large := strings.TrimSuffix(firstStrategy, "}") + `,"aliases":{"color":{` + strings.Join(aliases, ",") + `}}}`
	body := `{"index":"shoes","strategies":[` + large + `,` + large + `]}`
	if answer := wantStatus(t, s, http.StatusUnprocessableEntity, "POST", "/1/backtests", body); !strings.Contains(answer, "bytes as stored") {
		t.Errorf("two large strategies: %s", answer)
	}
	wantStatus(t, s, http.StatusOK, "POST", "/1/strategies/personalization", large)
	backtestOf(t, s, `{"index":"shoes","strategies":[1,1,1,1,1,1,1,1,1,1]}`)
}
