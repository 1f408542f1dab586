package operator_test

import (
	"context"
	"log/slog"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/usage"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/operator"
	"github.com/affinityengine/affinity/shared/local/seal"
)

// used is what an app has used on the last two days before the 22nd of November.
type used struct{}

var today = usage.DayOf(time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC))

func (used) Usage(_ context.Context, _ string, from, to usage.Day) (map[usage.Day]usage.Counts, error) {
	days := map[usage.Day]usage.Counts{}
	for day := max(from, today-1); day <= to; day++ {
		days[day] = usage.Counts{Events: 10, Bytes: 7}
	}
	return days, nil
}

func (used) HotUsers(context.Context, string, usage.Day, usage.Day) ([]usage.User, error) {
	return []usage.User{{Token: "ann", Events: 4}, {Token: "bob", Events: 3}}, nil
}

func (used) LastUsed(_ context.Context, app string) (map[string]usage.Day, error) {
	return map[string]usage.Day{app: today}, nil
}

func TestTop(t *testing.T) {
	store := config.NewMemory()
	must.Succeed(t, store.CreateApp(t.Context(), config.App{ID: "shop"}))
	token := operator.NewToken()
	server := httptest.NewServer(operator.Handler(slog.New(slog.DiscardHandler), token, operator.Place{}, store, store, used{}, today.Time, seal.New(), nil, nil, operator.Moves{}))
	defer server.Close()
	c, err := operator.NewClient(server.URL, token)
	must.Succeed(t, err)
	for days, events := range map[int]int64{1: 10, 2: 20, 400: 20} {
		top, err := c.Top(t.Context(), days)
		want := []usage.AppUse{{App: "shop", Counts: usage.Counts{Events: events, Bytes: events * 7 / 10}, Hottest: &usage.User{Token: "ann", Events: 4}}}
		if diff := cmp.Diff(want, top); err != nil || diff != "" {
			t.Errorf("%d days: %v (-want +got):\n%s", days, err, diff)
		}
	}
	if days, err := c.LastUsed(t.Context(), "shop"); err != nil || !cmp.Equal(days, map[string]usage.Day{"shop": today}) {
		t.Errorf("last uses %v (%v), want one today", days, err)
	}
	if days, err := c.LastUsed(t.Context(), "a,b"); err == nil {
		t.Errorf("a malformed app is answered with %v", days)
	}
	for _, days := range []int{0, -1, 401} {
		if top, err := c.Top(t.Context(), days); err == nil {
			t.Errorf("%d days are answered with %v", days, top)
		}
	}
}
