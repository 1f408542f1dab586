package stack_test

import (
	"testing"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/stack"
)

// The route says where an app lives, and what it has to itself.
func TestAppSettingsSayWhere(t *testing.T) {
	s := regional(t, stack.Options{Dedicated: config.Dedicated{"demo": "acme"}})
	var app api.AppSettings
	getJSON(t, s, "/1/app", &app)
	if app.ID != "demo" || app.Region != "eu" || app.MovingTo != "" || !app.Dedicated || app.Isolated {
		t.Errorf("%+v", app)
	}
	move := func(change func(*config.App) error) {
		t.Helper()
		if _, err := s.Backends.Config.UpdateMove(t.Context(), "demo", change); err != nil {
			t.Fatal(err)
		}
	}
	move(func(a *config.App) error {
		a.Region = "eu"
		return a.StartMove("move-1", "us", s.Backends.Now())
	})
	getJSON(t, s, "/1/app", &app)
	if app.Region != "eu" || app.MovingTo != "us" {
		t.Errorf("in a move: %+v", app)
	}
}

// An app in tables of its own is in the region that has the tables.
func TestAppSettingsOfAnIsolatedApp(t *testing.T) {
	s := start(t, stack.Options{Regions: []string{"eu"}, Tables: []string{"big"}})
	var app api.AppSettings
	getJSON(t, s, "/1/app", &app)
	if app.Region != "eu" || app.Isolated || app.Dedicated {
		t.Errorf("%+v", app)
	}
	if _, err := s.Backends.Config.UpdateMove(t.Context(), "demo", func(a *config.App) error { a.Region = "big"; return nil }); err != nil {
		t.Fatal(err)
	}
	app = api.AppSettings{}
	getJSON(t, s, "/1/app", &app)
	if app.Region != "eu" || !app.Isolated {
		t.Errorf("isolated: %+v", app)
	}
}
