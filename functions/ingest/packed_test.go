package ingest_test

import (
	"net/http"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/affinityengine/affinity/functions/ingest"
	"github.com/affinityengine/affinity/shared/local/functiontest"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// Events of one user in requests that arrive together count once each, also if they are
// equal.
func TestRequestsAtOnceCountEach(t *testing.T) {
	s := functiontest.Start(t)
	scores := strategy.Strategy{EventsScoring: []strategy.EventScore{{EventName: "Seen", EventType: "view", Score: 1}},
		FacetsScoring: []strategy.FacetScore{{FacetName: "color", Score: 1}}}
	if _, _, err := s.Backends.CachedConfig.SetStrategy(t.Context(), functiontest.App, scores); err != nil {
		t.Fatal(err)
	}
	h := ingest.New(s.Backends.ForIngest())
	const requests = 120
	var g errgroup.Group
	for range requests {
		g.Go(func() error {
			if status, answer := functiontest.Call(h, "search", "POST", "/1/events", `{"events":[`+event+`]}`); status != http.StatusOK {
				t.Errorf("%d %s", status, answer)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	if err := s.Idle(t.Context()); err != nil {
		t.Fatal(err)
	}
	app, err := s.Backends.Config.App(t.Context(), functiontest.App)
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.Backends.Profiles.Read(t.Context(), app, "ann", 0)
	if err != nil || len(p.Affinities) != 1 || p.Affinities[0].Scores[0] != requests {
		t.Errorf("%+v, %v; want color:Red with %d", p, err, requests)
	}
}
