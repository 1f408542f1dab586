package ingest_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/functions/ingest"
	"github.com/affinityengine/affinity/shared/app/limit"
	"github.com/affinityengine/affinity/shared/local/functiontest"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// While an app sends half as much again as its limit, every event is accepted and
// ends in a profile, by one lane or the other.
func TestBusyHourLosesNothing(t *testing.T) {
	s := functiontest.Start(t)
	ctx := t.Context()
	scores := strategy.Strategy{EventsScoring: []strategy.EventScore{{EventName: "Seen", EventType: "view", Score: 1}},
		FacetsScoring: []strategy.FacetScore{{FacetName: "color", Score: 1}}}
	if _, _, err := s.Backends.CachedConfig.SetStrategy(ctx, functiontest.App, scores); err != nil {
		t.Fatal(err)
	}
	if err := s.Backends.CachedConfig.SetLimits(ctx, functiontest.App, limit.Numbers{EventsPerSecond: 2}); err != nil {
		t.Fatal(err)
	}
	at := time.Now().Add(-2 * time.Hour)
	b := s.Backends.ForIngest()
	b.Now = func() time.Time { return at }
	b.Limits = limit.New(b.Now, limit.Numbers{}, nil, nil)
	h := ingest.New(b)
	const each = 3
	body, sent := `{"events":[`+event+strings.Repeat(","+event, each-1)+`]}`, 0
	for range 100 {
		if status, answer := functiontest.Call(h, "search", "POST", "/1/events", body); status != http.StatusOK {
			t.Fatalf("after %d events: %d %s", sent, status, answer)
		}
		sent += each
		at = at.Add(time.Second)
	}
	if err := s.Idle(ctx); err != nil {
		t.Fatal(err)
	}
	app, err := s.Backends.Config.App(ctx, functiontest.App)
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.Backends.Profiles.Read(ctx, app, "ann", 0)
	if err != nil || len(p.Affinities) != 1 || p.Affinities[0].Scores[0] != float64(sent) {
		t.Errorf("%+v, %v; want color:Red with %d", p, err, sent)
	}
}
