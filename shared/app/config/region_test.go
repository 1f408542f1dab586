package config_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
)

func TestRegions(t *testing.T) {
	var r config.Regions
	err := r.UnmarshalText([]byte(`[{"name":"eu","instance":"affinity"},{"name":"us","instance":"affinity-us","location":"us-central1","worker":"https://worker.example"}]`))
	if err != nil {
		t.Fatal(err)
	}
	if r.First() != "eu" || !slices.Equal(r.Names(), []string{"eu", "us"}) {
		t.Errorf("%+v", r)
	}
	if us, ok := r.Find("us"); !ok || us.Location != "us-central1" {
		t.Errorf("us is %+v", us)
	}
	if first, ok := r.Find(""); !ok || first.Name != "eu" {
		t.Errorf("the first is %+v", first)
	}
	for region, want := range map[string]string{"": "events", "eu": "events", "us": "events.us"} {
		if got := r.Named("events", region); got != want {
			t.Errorf("topic of %q: %s, want %s", region, got, want)
		}
	}
	for name, want := range map[string]string{"": "", "us": "", "asia": "the regions are eu, us"} {
		if err := r.Check(name); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("region %q: %v, want %q", name, err, want)
		}
	}
	if err := config.Regions(nil).Check("us"); err == nil {
		t.Error("a deployment without regions has one")
	}
	if at := r.Place(config.App{}); at.Read != "eu" || !slices.Equal(at.Write, []string{"eu"}) {
		t.Errorf("an app that names no region is at %+v", at)
	}
}

func TestDrainingRegionsTakeNoApp(t *testing.T) {
	var r config.Regions
	if err := r.UnmarshalText([]byte(`[{"name":"eu","instance":"a"},{"name":"us","instance":"b","draining":true},{"name":"big","in":"us"}]`)); err != nil {
		t.Fatal(err)
	}
	for region, want := range map[string]string{"": "", "eu": "", "us": "region us is draining", "big": "region big is draining", "asia": "there is no region"} {
		if err := r.Takes(region); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("region %q: %v, want %q", region, err, want)
		}
	}
}

// A region within another one has everything of it but the tables.
func TestRegionsWithin(t *testing.T) {
	var r config.Regions
	err := r.UnmarshalText([]byte(`[{"name":"eu","instance":"affinity"},{"name":"us","instance":"affinity-us","location":"us-central1","worker":"https://worker.example"},{"name":"big","in":"us"},{"name":"old","in":"eu"}]`))
	if err != nil {
		t.Fatal(err)
	}
	big, _ := r.Find("big")
	if want := (config.Region{Name: "big", In: "us", Instance: "affinity-us", Location: "us-central1", Worker: "https://worker.example"}); big != want || big.Suffix() != ".big" {
		t.Errorf("%+v, want %+v", big, want)
	}
	if us, _ := r.Find("us"); us.Suffix() != "" || !slices.Equal(r.Within("us"), []string{"big"}) || !slices.Equal(r.Whole().Names(), []string{"eu", "us"}) {
		t.Errorf("within us: %v, whole: %v", r.Within("us"), r.Whole())
	}
	for region, want := range map[string]string{"big": "events.us", "old": "events", "us": "events.us"} {
		if got := r.Named("events", region); got != want {
			t.Errorf("topic of %s: %s, want %s", region, got, want)
		}
	}
}

func TestFaultyRegions(t *testing.T) {
	for text, want := range map[string]string{
		`{}`:                      "want a JSON array",
		`[{"name":"a","in":"b"}]`: `"a" is in "b", which is no region before it`,
		`[{"name":"eu","instance":"a"},{"name":"x","in":"eu"},{"name":"y","in":"x"}]`: `"y" is in "x", which is no region before it`,
		`[{"name":"EU","instance":"a"}]`:                                              `name "EU"`,
		`[{"name":"eu"}]`:                                                             `"eu" has no Bigtable instance`,
		`[{"name":"eu","instance":"a"},{"name":"eu","instance":"b"}]`:                 `"eu" is there twice`,
		`[{"name":"eu","instance":"a","location":"a/b"}]`:                             `the location "a/b"`,
		`[{"name":"eu","instance":"a","worker":"worker"}]`:                            `the worker of "eu" is "worker"`,
	} {
		var r config.Regions
		if err := r.UnmarshalText([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// While an app moves, the rows that belong to no user count in the region that it leaves,
// until there is no way back, and are written in both.
func TestPlace(t *testing.T) {
	app := config.App{ID: "shop", Region: "eu"}
	if err := app.StartMove("m", "us", time.Unix(1_800_000_000, 0)); err != nil {
		t.Fatal(err)
	}
	var got []string
	say := func(a config.App) string {
		return string(a.Move.Phase) + ": " + a.Place().Read + " of " + strings.Join(a.Place().Write, ",")
	}
	undone := app
	for app.Moving() {
		got = append(got, say(app))
		if app.Move.Phase == config.MoveSwitched {
			undone = app
		}
		app.AdvanceMove()
	}
	got = append(got, say(app))
	want := []string{
		"mark: eu of eu", "users: eu of eu,us", "switch: eu of eu,us", "drop: us of us,eu", "erase: us of us", "finish: us of us", ": us of us",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	early := config.App{ID: "shop", Region: "eu"}
	if err := errors.Join(early.StartMove("m", "us", time.Unix(1_800_000_000, 0)), early.UndoMove()); err != nil {
		t.Fatal(err)
	}
	if got := say(early) + ", to " + early.Move.To + ", births in " + early.Births(); got != "finish: eu of eu, to eu, births in eu" {
		t.Errorf("undone at once: %q", got)
	}
	if err := undone.UndoMove(); err != nil {
		t.Fatal(err)
	}
	for got = nil; undone.Moving(); undone.AdvanceMove() {
		got = append(got, say(undone))
	}
	want = []string{
		"arrive: eu of eu,us", "clear: eu of eu,us", "cleared: eu of eu,us", "users: eu of eu,us", "switch: eu of eu,us", "drop: eu of eu,us",
		"erase: eu of eu", "finish: eu of eu",
	}
	if !slices.Equal(got, want) {
		t.Errorf("back: %q, want %q", got, want)
	}
}
