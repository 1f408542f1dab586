package configtest

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
)

// A deleted app is gone at once, its id is reserved until 30 days after the end of
// the deletion, and a new app of that id has nothing of the old one's settings.
func testDeletion(t *testing.T, s store) {
	ctx := t.Context()
	for _, id := range []string{"shop", "shop-", "sho"} {
		create(t, s, id)
	}
	setStrategy(t, s, "shop", scores(1), 1, true)
	if _, err := s.UpdateMove(ctx, "shop", func(a *config.App) error { a.Region = "us"; return nil }); err != nil {
		t.Fatal(err)
	}
	if err := s.PutKey(ctx, "shop", config.Key{Hash: hash("a")}); err != nil {
		t.Fatal(err)
	}
	_, err := s.Deletion(ctx, "shop")
	wantError(t, "deletion of a living app", err, config.ErrNotFound)
	began, err := s.DeleteApp(ctx, "shop")
	if err != nil || began.App != "shop" || began.Region != "us" || began.Attempt != 1 || began.Ended() ||
		time.Since(began.StartedAt) > time.Hour {
		t.Fatalf("deletion %+v, error %v", began, err)
	}
	_, appErr := s.App(ctx, "shop")
	_, keysErr := s.Keys(ctx, "shop")
	_, _, strategyErr := s.SetStrategy(ctx, "shop", scores(2))
	_, nowhere := s.DeleteApp(ctx, "nowhere")
	_, updateErr := s.UpdateDeletion(ctx, "sho", func(*config.Deletion) error { return nil })
	for what, err := range map[string]error{
		"app": appErr, "keys": keysErr, "strategy": strategyErr, "retention": s.SetRetention(ctx, "shop", 1),
		"put key": s.PutKey(ctx, "shop", config.Key{Hash: hash("b")}), "delete an unknown app": nowhere,
		"update no deletion": updateErr,
	} {
		wantError(t, what, err, config.ErrNotFound)
	}
	ids, err := s.Apps(ctx)
	read(t, "apps", ids, err, []string{"sho", "shop-"})
	again, err := s.DeleteApp(ctx, "shop")
	read(t, "the second deletion", again, err, began)
	stored, err := s.Deletion(ctx, "shop")
	read(t, "the deletion", stored, err, began)

	if err := s.CreateApp(ctx, config.App{ID: "shop"}); !config.IsDeleted(err) ||
		!strings.Contains(err.Error(), "is being deleted") {
		t.Errorf("create it during the deletion: %v", err)
	}
	end := func(at time.Time) {
		t.Helper()
		if _, err := s.UpdateDeletion(ctx, "shop", func(d *config.Deletion) error { d.End(at, 7); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	end(time.Now())
	ended, err := s.Deletion(ctx, "shop")
	if err != nil || !ended.Ended() || ended.Rows != 7 ||
		ended.ReusableFrom.Sub(ended.EndedAt) != 30*24*time.Hour || !ended.StartedAt.Equal(began.StartedAt) {
		t.Errorf("ended deletion %+v, error %v", ended, err)
	}
	if err := s.CreateApp(ctx, config.App{ID: "shop"}); !config.IsDeleted(err) ||
		!strings.Contains(err.Error(), ended.ReusableFrom.Format(time.RFC3339)) {
		t.Errorf("create it within 30 days: %v", err)
	}
	if _, err := s.UpdateDeletion(ctx, "shop", func(*config.Deletion) error { return errors.New("no") }); err == nil {
		t.Error("a change that fails is stored")
	}
	end(time.Now().Add(-config.Reserved))
	create(t, s, "shop")
	app, err := s.App(ctx, "shop")
	if err != nil || app.StrategyVersion != 0 {
		t.Errorf("the new app: %+v, error %v", app, err)
	}
	_, err = s.Deletion(ctx, "shop")
	wantError(t, "deletion of the new app", err, config.ErrNotFound)
}

// deletedAtOnce deletes and creates an app on two stores at once: there is one
// deletion, and no app beside it.
func deletedAtOnce(t *testing.T, one, two store) {
	create(t, one, "leaving")
	var group sync.WaitGroup
	deletions := make([]config.Deletion, 4)
	for i := range deletions {
		group.Go(func() {
			var err error
			if deletions[i], err = []store{one, two}[i%2].DeleteApp(t.Context(), "leaving"); err != nil {
				t.Errorf("deletion %d: %v", i, err)
			}
		})
		group.Go(func() {
			if err := one.CreateApp(t.Context(), config.App{ID: "leaving"}); err == nil {
				t.Error("the app is created again during its deletion")
			}
		})
	}
	group.Wait()
	for _, d := range deletions {
		if !d.StartedAt.Equal(deletions[0].StartedAt) {
			t.Errorf("deletions %+v, want one", deletions)
		}
	}
	_, err := two.App(t.Context(), "leaving")
	wantError(t, "the app", err, config.ErrNotFound)
}
