package configtest

import (
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/limit"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

func testApps(t *testing.T, s store) {
	ids, err := s.Apps(t.Context())
	read(t, "no apps", ids, err, nil)

	created := time.Date(2026, 3, 4, 5, 6, 7, 123456789, time.FixedZone("", 3600))
	app := config.App{ID: "shop", RetentionDays: 30, CreatedAt: created}
	if err := s.CreateApp(t.Context(), app); err != nil {
		t.Fatal(err)
	}
	app.CreatedAt, app.Log = created.UTC().Truncate(time.Microsecond), schema.Default()
	got, err := s.App(t.Context(), "shop")
	app.ChangedAt = got.ChangedAt // see testChangedAt
	read(t, "app", got, err, app)

	wantError(t, "create it again", s.CreateApp(t.Context(), config.App{ID: "shop"}), config.ErrExists)
	got, err = s.App(t.Context(), "shop")
	read(t, "app after the second creation", got, err, app)

	for _, id := range []string{"Zoo", "a_b-9", "__x__", strings.Repeat("x", 64)} {
		create(t, s, id)
		got, err := s.App(t.Context(), id)
		if err != nil || got.ID != id || got.CreatedAt.IsZero() {
			t.Errorf("app %q: got %+v, error %v", id, got, err)
		}
	}
	ids, err = s.Apps(t.Context())
	read(t, "all apps", ids, err, []string{"Zoo", "__x__", "a_b-9", "shop", strings.Repeat("x", 64)})
}

func testAppsRefused(t *testing.T, s store) {
	for _, app := range []config.App{
		{ID: ""}, {ID: "a,b"}, {ID: "a/b"}, {ID: "é"}, {ID: "a\n"}, {ID: strings.Repeat("x", 65)},
		{ID: "shop", RetentionDays: -1},
	} {
		if err := s.CreateApp(t.Context(), app); err == nil || errors.Is(err, config.ErrExists) {
			t.Errorf("create %+v: got error %v, want it refused", app, err)
		}
	}
	ids, err := s.Apps(t.Context())
	read(t, "apps", ids, err, nil)

	// A strategy would have no version.
	if err := s.CreateApp(t.Context(), config.App{ID: "shop", Strategy: scores(1), StrategyVersion: 7}); err != nil {
		t.Fatal(err)
	}
	got, err := s.App(t.Context(), "shop")
	if err != nil || got.StrategyVersion != 0 || !got.Strategy.Equal(strategy.Strategy{}) {
		t.Errorf("got %+v, error %v; want no strategy", got, err)
	}
}

func testRetention(t *testing.T, s store) {
	create(t, s, "shop")
	setStrategy(t, s, "shop", scores(1), 1, true)
	before, err := s.App(t.Context(), "shop")
	if err != nil {
		t.Fatal(err)
	}
	for _, days := range []int{30, 0, 3650} {
		if err := s.SetRetention(t.Context(), "shop", days); err != nil {
			t.Fatal(err)
		}
		want := before
		want.RetentionDays = days
		got, err := s.App(t.Context(), "shop")
		want.ChangedAt = got.ChangedAt
		read(t, "app", got, err, want)
	}
	if err := s.SetRetention(t.Context(), "shop", -1); err == nil {
		t.Error("a negative retention was accepted")
	}
	got, err := s.App(t.Context(), "shop")
	if err != nil || got.RetentionDays != 3650 {
		t.Errorf("got retention %d, error %v; want 3650", got.RetentionDays, err)
	}
}

func testConsistency(t *testing.T, s store) {
	create(t, s, "shop")
	before, err := s.App(t.Context(), "shop")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []config.Consistency{config.Strong, config.Eventual} {
		if err := s.SetConsistency(t.Context(), "shop", c); err != nil {
			t.Fatal(err)
		}
		want := before
		want.Consistency = c
		got, err := s.App(t.Context(), "shop")
		read(t, "app", got, err, want)
	}
	if err := s.SetConsistency(t.Context(), "shop", "stale"); err == nil {
		t.Error("an unknown consistency was accepted")
	}
}

// Pages may ask for nothing until it is turned on, and no other change turns it on
// or off.
func testBrowserRanking(t *testing.T, s store) {
	create(t, s, "shop")
	want, err := s.App(t.Context(), "shop")
	if err != nil || want.BrowserRanking {
		t.Fatalf("browser ranking of a new app is %t, error %v", want.BrowserRanking, err)
	}
	for _, on := range []bool{true, true, false, true} {
		if err := s.SetBrowserRanking(t.Context(), "shop", on); err != nil {
			t.Fatal(err)
		}
		want.BrowserRanking = on
		got, err := s.App(t.Context(), "shop")
		read(t, "app", got, err, want)
	}
	setStrategy(t, s, "shop", scores(1), 1, true)
	if app, err := s.App(t.Context(), "shop"); err != nil || !app.BrowserRanking {
		t.Errorf("a new strategy turns browser ranking off (%v)", err)
	}
	wantError(t, "browser ranking of no app", s.SetBrowserRanking(t.Context(), "nowhere", true), config.ErrNotFound)
}

// pass waits until the clock of stores in memory has passed a time: two changes of one
// microsecond have the same stamp.
func pass(at time.Time) {
	for !config.Stamp(time.Time{}).After(at) {
		runtime.Gosched()
	}
}

// Segments are off until they are turned on. Both turns set ChangedAt, and turning on
// again does not: a job that waits for the change would wait longer.
func testSegmentsSwitch(t *testing.T, s store) {
	create(t, s, "shop")
	before, err := s.App(t.Context(), "shop")
	if err != nil || before.Segments.On() {
		t.Fatalf("segments of a new app are on: %v, error %v", before.Segments, err)
	}
	for i, on := range []bool{true, true, false, false, true} {
		pass(before.ChangedAt)
		if err := s.SetSegments(t.Context(), "shop", on); err != nil {
			t.Fatal(err)
		}
		app, err := s.App(t.Context(), "shop")
		if err != nil || app.Segments.On() != on {
			t.Fatalf("turn %d: segments on: %v, error %v; want %v", i, app.Segments, err, on)
		}
		if same := i == 1 || i == 3; app.ChangedAt.Equal(before.ChangedAt) != same ||
			app.Segments.Since.Equal(before.Segments.Since) != same {
			t.Errorf("turn %d to %v: changed at %s since %s; was %s since %s", i, on, app.ChangedAt, app.Segments.Since,
				before.ChangedAt, before.Segments.Since)
		}
		want := before
		want.Segments, want.ChangedAt = app.Segments, app.ChangedAt
		read(t, "app", app, err, want)
		before = app
	}
	setStrategy(t, s, "shop", scores(1), 1, true)
	if app, err := s.App(t.Context(), "shop"); err != nil || app.Segments != before.Segments {
		t.Errorf("a new strategy changes segments to %v, error %v; want %v", app.Segments, err, before.Segments)
	}
	wantError(t, "segments of no app", s.SetSegments(t.Context(), "nowhere", true), config.ErrNotFound)
}

// Limits are kept beside all other changes, and change nothing else.
func testLimits(t *testing.T, s store) {
	first := limit.Numbers{EventsPerSecond: 300, UserEventsPerDay: 7}
	if err := s.CreateApp(t.Context(), config.App{ID: "shop", Limits: first}); err != nil {
		t.Fatal(err)
	}
	setStrategy(t, s, "shop", scores(1), 1, true)
	want, err := s.App(t.Context(), "shop")
	if err != nil || want.Limits != first {
		t.Fatalf("limits %+v, error %v; want %+v", want.Limits, err, first)
	}
	all := limit.Numbers{EventsPerSecond: 1, ImportsPerSecond: 2, ReadsPerSecond: 3, JobsPerHour: 4,
		StrategiesPerHour: 5, UserEventsPerDay: limit.Max, WriteWindowMs: 60_000}
	for _, n := range []limit.Numbers{all, {}, first} {
		if err := s.SetLimits(t.Context(), "shop", n); err != nil {
			t.Fatal(err)
		}
		want.Limits = n
		got, err := s.App(t.Context(), "shop")
		read(t, "app", got, err, want)
	}
	if err := s.SetLimits(t.Context(), "shop", limit.Numbers{JobsPerHour: -1}); err == nil {
		t.Error("a negative limit was accepted")
	}
	wantError(t, "limits of no app", s.SetLimits(t.Context(), "nowhere", first), config.ErrNotFound)
	got, err := s.App(t.Context(), "shop")
	read(t, "app after refusals", got, err, want)
}

// Names of track calls are kept beside all other changes; a change names those that it
// concerns, and is made as a whole or not at all.
func testTrackNames(t *testing.T, s store) {
	create(t, s, "shop")
	setStrategy(t, s, "shop", scores(1), 1, true)
	want, err := s.App(t.Context(), "shop")
	if err != nil || want.TrackNames != nil {
		t.Fatalf("names of a new app %v, error %v", want.TrackNames, err)
	}
	set := func(change, all config.TrackNames) {
		t.Helper()
		got, err := s.SetTrackNames(t.Context(), "shop", change)
		read(t, "names after a change", got, err, all)
		want.TrackNames = all
		app, err := s.App(t.Context(), "shop")
		read(t, "app", app, err, want)
	}
	set(config.TrackNames{"Recipe Saved": "conversion", "A B": "view"},
		config.TrackNames{"Recipe Saved": "conversion", "A B": "view"})
	set(config.TrackNames{"A B": "click", "C": "view", "D": ""},
		config.TrackNames{"Recipe Saved": "conversion", "A B": "click", "C": "view"})
	set(config.TrackNames{}, config.TrackNames{"Recipe Saved": "conversion", "A B": "click", "C": "view"})
	if _, err := s.SetTrackNames(t.Context(), "shop", config.TrackNames{"E": "view", "F": "buy"}); err == nil {
		t.Error("an unknown type was accepted")
	}
	set(config.TrackNames{"Recipe Saved": "", "C": ""}, config.TrackNames{"A B": "click"})
	set(config.TrackNames{"A B": ""}, nil)
	_, err = s.SetTrackNames(t.Context(), "nowhere", config.TrackNames{"A": "view"})
	wantError(t, "names of no app", err, config.ErrNotFound)
}

// A change of an app sets ChangedAt; a call that changes nothing does not.
func testChangedAt(t *testing.T, s store) {
	var changed time.Time
	for _, step := range []struct {
		what   string
		change func() error
		counts bool
	}{
		{"creation", func() error {
			return s.CreateApp(t.Context(), config.App{ID: "shop", CreatedAt: time.Unix(1, 0), ChangedAt: time.Unix(1, 0)})
		}, true},
		{"retention", func() error { return s.SetRetention(t.Context(), "shop", 30) }, true},
		{"strategy", func() error { _, _, err := s.SetStrategy(t.Context(), "shop", scores(1)); return err }, true},
		{"the same strategy", func() error { _, _, err := s.SetStrategy(t.Context(), "shop", scores(1)); return err }, false},
		{"key", func() error { return s.PutKey(t.Context(), "shop", config.Key{Hash: hash("a")}) }, false},
		{"another strategy", func() error { _, _, err := s.SetStrategy(t.Context(), "shop", scores(2)); return err }, true},
	} {
		before := time.Now().Truncate(time.Millisecond) // as Firestore tells its time
		if err := step.change(); err != nil {
			t.Fatal(err)
		}
		after := time.Now()
		app, err := s.App(t.Context(), "shop")
		if err != nil {
			t.Fatal(err)
		}
		if within := !app.ChangedAt.Before(before) && !app.ChangedAt.After(after); step.counts && !within {
			t.Errorf("%s: changed at %v, want within %v and %v", step.what, app.ChangedAt, before, after)
		}
		if !step.counts && !app.ChangedAt.Equal(changed) {
			t.Errorf("%s: changed at %v, want %v as before", step.what, app.ChangedAt, changed)
		}
		changed = app.ChangedAt
	}
}
