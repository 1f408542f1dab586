package ranker_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/rank/ranking"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/strategy"
	"github.com/affinityengine/affinity/shared/serve/ranker"
	"github.com/affinityengine/affinity/shared/store"
)

// Candidates that are prepared need no catalog. While the user's row cannot be read, a
// request that does not wait for it gets the order of a user without events.
func TestPreparedCandidates(t *testing.T) {
	var away atomic.Bool
	s := storetest.New(t, grpc.WithChainStreamInterceptor(func(ctx context.Context, d *grpc.StreamDesc, c *grpc.ClientConn,
		method string, next grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		if away.Load() {
			return nil, status.Error(codes.Unavailable, "away")
		}
		return next(ctx, d, c, method, opts...)
	}))
	apps := config.NewMemory()
	app := config.App{ID: "shop", RetentionDays: 90}
	must.Succeed(t, apps.CreateApp(t.Context(), app))
	likes := strategy.Strategy{
		EventsScoring:         []strategy.EventScore{{EventName: "Seen", EventType: event.View, Score: 3}},
		FacetsScoring:         []strategy.FacetScore{{FacetName: "color", Score: 10}},
		PersonalizationImpact: 100, Ranking: strategy.PlainRanking(),
	}
	if _, _, err := apps.SetStrategy(t.Context(), "shop", likes); err != nil {
		t.Fatal(err)
	}
	cached := config.NewCached(apps, 0)
	app, err := cached.App(t.Context(), "shop")
	must.Succeed(t, err)
	log := slog.New(slog.DiscardHandler)
	profiles := profile.New(s, apps, cached, time.Now, log)
	_, err = profiles.Apply(t.Context(), app, []store.LogEvent{{
		User: "ann", Time: time.Now().Add(-time.Hour).UnixMilli(), ID: "e", Type: event.View, Name: "Seen",
		Counts: []affinity.Count{{Facet: "color", Value: "Red", N: 1}},
	}})
	must.Succeed(t, err)
	orderer := ranker.New(s, cached, profiles, time.Now, log)
	order := func(user string, wait time.Duration) (ranker.Answer, []string, error) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var candidates []ranking.Candidate
		for _, id := range []string{"Blue", "Red"} {
			candidates = append(candidates, ranking.Candidate{ObjectID: id, Object: ranking.Compile([]event.Filter{{Facet: "color", Value: id}})})
		}
		a, err := orderer.Order(ctx, app, ranker.Request{User: user, Index: "i", Candidates: candidates, Prepared: true, UserWait: wait})
		var ids []string
		for _, item := range a.Items {
			ids = append(ids, item.ObjectID)
		}
		return a, ids, err
	}
	check := func(when, user string, wait time.Duration, fallback string, unread bool, want ...string) {
		t.Helper()
		a, ids, err := order(user, wait)
		if diff := cmp.Diff(want, ids); diff != "" || err != nil || a.Fallback != fallback || (a.Unread != nil) != unread {
			t.Errorf("%s: %v, fallback %q, unread %v (-want +got):\n%s", when, err, a.Fallback, a.Unread, diff)
		}
	}
	check("a known user", "ann", time.Minute, "", false, "Red", "Blue")
	check("no user", "", 0, ranking.Catalog, false, "Blue", "Red")
	away.Store(true)
	check("no user, the store is away", "", 0, ranking.Catalog, false, "Blue", "Red")
	check("the store is away", "ann", 50*time.Millisecond, ranking.Catalog, true, "Blue", "Red")
}
