package config_test

import (
	"slices"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/must"
)

// Homes tells where the tasks of each app go, also of one that moves, and of a deleted one until
// its id is free.
func TestHomes(t *testing.T) {
	s, ctx := config.NewMemory(), t.Context()
	for _, app := range []config.App{{ID: "zoo"}, {ID: "shop", Region: "eu"}, {ID: "mover", Region: "eu"}, {ID: "gone", Region: "us"}, {ID: "free"}} {
		must.Succeed(t, s.CreateApp(ctx, app))
	}
	if _, err := s.UpdateMove(ctx, "mover", func(a *config.App) error {
		a.Move = config.Move{ID: "move-1", From: "eu", To: "us", Births: "us", Phase: config.MoveUsers}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for app, ended := range map[string]time.Time{"gone": {}, "free": time.Now().Add(-config.Reserved - time.Hour)} {
		if _, err := s.DeleteApp(ctx, app); err != nil {
			t.Fatal(err)
		}
		if ended.IsZero() {
			continue
		}
		if _, err := s.UpdateDeletion(ctx, app, func(d *config.Deletion) error { d.End(ended, 1); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	want := []config.Home{{App: "gone", Region: "us", Deleted: true}, {App: "mover", Region: "us"}, {App: "shop", Region: "eu"}, {App: "zoo"}}
	if got, err := s.Homes(ctx); err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
}
