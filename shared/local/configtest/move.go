package configtest

import (
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/affinityengine/affinity/shared/app/config"
)

var move = config.Move{
	ID: "move-1", From: "eu", To: "us", Births: "us", Phase: config.MoveUsers, Back: true, Job: "job-2",
	StartedAt: time.Date(2026, 3, 4, 5, 6, 7, 123456000, time.UTC),
}

func updateMove(t *testing.T, s store, change func(*config.App)) config.App {
	t.Helper()
	app, err := s.UpdateMove(t.Context(), "shop", func(a *config.App) error {
		change(a)
		return nil
	})
	if err != nil {
		t.Fatalf("change the region: %v", err)
	}
	got, err := s.App(t.Context(), "shop")
	read(t, "app after a change of its region", got, err, app)
	return app
}

// A new app lives in the region that it names, and nothing but the region and the move
// changes with a move.
func testUpdateMove(t *testing.T, s store) {
	if err := s.CreateApp(t.Context(), config.App{ID: "shop", Region: "eu", Move: move}); err != nil {
		t.Fatal(err)
	}
	setStrategy(t, s, "shop", scores(1), 1, true)
	want := readApp(t, s, "shop")
	if want.Region != "eu" || want.Move != (config.Move{}) || want.Moving() {
		t.Fatalf("new app in region %q, with move %+v", want.Region, want.Move)
	}
	want.Move = move
	got := updateMove(t, s, func(a *config.App) {
		*a = config.App{ID: "other", RetentionDays: 1, StrategyVersion: 7, Region: a.Region, Move: move}
	})
	if !got.ChangedAt.After(want.ChangedAt) {
		t.Errorf("the move began and ChangedAt is %v, as before", got.ChangedAt)
	}
	want.ChangedAt, want.Move.ChangedAt = got.ChangedAt, got.ChangedAt
	read(t, "app", got, nil, want)
	pass(got.ChangedAt)
	if err := s.SetRetention(t.Context(), "shop", 12); err != nil {
		t.Fatal(err)
	}
	if app := readApp(t, s, "shop"); !app.PlacedAt().Equal(want.ChangedAt) || !app.ChangedAt.After(want.ChangedAt) {
		t.Errorf("another change at %v: the app's place has changed at %v, want %v as before", app.ChangedAt,
			app.PlacedAt(), want.ChangedAt)
	} else {
		want.ChangedAt = app.ChangedAt
	}
	if got := updateMove(t, s, func(a *config.App) { a.Move.Job = "job-3" }); !got.ChangedAt.Equal(want.ChangedAt) {
		t.Errorf("another job of the same phase set ChangedAt from %v to %v", want.ChangedAt, got.ChangedAt)
	}
	if got := updateMove(t, s, func(a *config.App) {
		a.Region, a.Move = "us",
			config.Move{}
	}); got.Region != "us" || got.Move != (config.Move{}) {
		t.Errorf("after the move: region %q, move %+v", got.Region, got.Move)
	}
}

// A change that fails, or that leads to a move that cannot be, changes nothing.
func testUpdateMoveRefused(t *testing.T, s store) {
	create(t, s, "shop")
	updateMove(t, s, func(a *config.App) { a.Region, a.Move = "eu", move })
	want := readApp(t, s, "shop")
	errChange := status.Error(codes.Aborted, "not now") // and no conflict of the store's own
	for i, change := range []func(*config.App) error{
		func(a *config.App) error { a.Region = "us"; return errChange },
		func(a *config.App) error { a.Region = "EU!"; return nil },
		func(a *config.App) error { a.Region = "asia"; return nil },
		func(a *config.App) error { a.Move.Births = "asia"; return nil },
		func(a *config.App) error { a.Move.To = a.Move.From; return nil },
		func(a *config.App) error { a.Move.Phase = "fly"; return nil },
		func(a *config.App) error { a.Move.ID = ""; return nil },
	} {
		if _, err := s.UpdateMove(t.Context(), "shop", change); err == nil {
			t.Errorf("change %d was accepted", i)
		}
		got, err := s.App(t.Context(), "shop")
		read(t, fmt.Sprintf("app after change %d", i), got, err, want)
	}
}
