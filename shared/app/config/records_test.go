package config_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/documents"
	"github.com/affinityengine/affinity/shared/catalog"
	"github.com/affinityengine/affinity/shared/local/configtest"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

func openStored(t *testing.T, r, keys documents.Records) *config.Store {
	t.Helper()
	d, err := documents.NewStored(r)
	k, keysErr := documents.NewStored(keys)
	if err := errors.Join(err, keysErr); err != nil {
		t.Fatal(err)
	}
	return config.New(d, k, slog.New(slog.DiscardHandler))
}

// storedContent is what a store answers about the apps shop and gone.
type storedContent struct {
	Apps     []string
	App      config.App
	Keys     []config.Key
	Versions []config.Version
	Old      strategy.Strategy
	Feeds    []config.Feed
	Segments []config.SavedSegment
	Settings catalog.Settings
	Gone     config.Deletion
}

func contentOf(t *testing.T, s *config.Store) (c storedContent) {
	t.Helper()
	ctx := context.Background()
	var errs [9]error
	c.Apps, errs[0] = s.Apps(ctx)
	c.App, errs[1] = s.App(ctx, "shop")
	c.Keys, errs[2] = s.Keys(ctx, "shop")
	c.Versions, errs[3] = s.StrategyVersions(ctx, "shop")
	c.Old, errs[4] = s.StrategyVersion(ctx, "shop", 1)
	c.Feeds, errs[5] = s.Feeds(ctx, "shop")
	c.Segments, errs[6] = s.SavedSegments(ctx, "shop")
	c.Settings, errs[7] = s.IndexSettings(ctx, "shop", "products")
	c.Gone, errs[8] = s.Deletion(ctx, "gone")
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	return c
}

func fill(t *testing.T, s *config.Store) {
	t.Helper()
	ctx, now := context.Background(), time.UnixMilli(1_700_000_000_000)
	scoring := func(score int) strategy.Strategy {
		return strategy.Strategy{EventsScoring: []strategy.EventScore{{EventName: "seen", EventType: "view", Score: score}}}
	}
	for _, err := range []error{
		s.CreateApp(ctx, config.App{ID: "shop", RetentionDays: 7, Log: schema.Default(), CreatedAt: now}),
		s.CreateApp(ctx, config.App{ID: "gone", Log: schema.Default(), CreatedAt: now}),
		s.PutKey(ctx, "shop", config.Key{Hash: strings.Repeat("0", 64), ACL: []string{"search"}, CreatedAt: now, ValidUntil: now, Parent: []byte{1, 2}}),
		s.SetSegments(ctx, "shop", true),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	_, _, err1 := s.SetStrategy(ctx, "shop", scoring(1))
	_, _, err2 := s.SetStrategy(ctx, "shop", scoring(2))
	_, _, err3 := s.SetFeed(ctx, "shop", config.Feed{Name: "new", Index: "products", Date: "at", Definition: "{}"}, now)
	_, _, err4 := s.SaveSegment(ctx, "shop", config.SavedSegment{Name: "red", Where: "{}", SetAt: now}, true)
	_, err5 := s.SetIndexSettings(ctx, "shop", "products", catalog.Change{AttributesForFaceting: []string{"brand", "price"}, NumericBands: catalog.Bands{"price": {10, 20.5}}})
	_, err6 := s.DeleteApp(ctx, "gone")
	if err := errors.Join(err1, err2, err3, err4, err5, err6); err != nil {
		t.Fatal(err)
	}
}

func TestStoredConfigurationOutlivesTheProcess(t *testing.T) {
	records, keys := configtest.Records{}, configtest.Records{}
	first := openStored(t, records, keys)
	fill(t, first)
	want := contentOf(t, first)
	if len(want.Versions) != 2 || len(want.Keys) != 1 || want.Gone.App != "gone" {
		t.Fatalf("the test has not filled the store: %+v", want)
	}
	if diff := cmp.Diff(want, contentOf(t, openStored(t, records, keys))); diff != "" {
		t.Errorf("after a restart (-before +after):\n%s", diff)
	}
}

// fullRecords fail to save, as a full disk does.
type fullRecords struct{ configtest.Records }

var errFull = errors.New("no space left")

func (fullRecords) Save(...documents.Record) error { return errFull }

func TestWhatIsNotSavedIsNotChanged(t *testing.T) {
	records, keys := configtest.Records{}, configtest.Records{}
	fill(t, openStored(t, records, keys))
	s := openStored(t, fullRecords{records}, fullRecords{keys})
	before := contentOf(t, s)
	if err := s.SetRetention(context.Background(), "shop", 99); !errors.Is(err, errFull) {
		t.Errorf("SetRetention: %v, want the fault of the disk", err)
	}
	if _, err := s.DeleteApp(context.Background(), "shop"); !errors.Is(err, errFull) {
		t.Errorf("DeleteApp: %v, want the fault of the disk", err)
	}
	if err := s.PutKey(context.Background(), "shop", config.Key{Hash: strings.Repeat("1", 64)}); !errors.Is(err, errFull) {
		t.Errorf("PutKey: %v, want the fault of the disk", err)
	}
	if diff := cmp.Diff(before, contentOf(t, s)); diff != "" {
		t.Errorf("after failed changes (-before +after):\n%s", diff)
	}
}
