// Package configtest checks a config.Store against what its methods promise, over each kind
// of documents, and what a config.Cached adds to it.
package configtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/catalog"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/score/experiment"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// Run tests a Store. open returns an empty one.
func Run(t *testing.T, open func(*testing.T) *config.Store) {
	run(t, func(t *testing.T) store { return plain(open(t)) })
}

// RunCached tests a Store that is read and changed through a Cached. open returns an empty
// one.
func RunCached(t *testing.T, open func(*testing.T) *config.Store) {
	run(t, func(t *testing.T) store {
		s := open(t)
		c := cached{config.NewCached(s, config.TTL), behind{s}}
		return store{c, c, c, c, s}
	})
}

func run(t *testing.T, open func(*testing.T) store) {
	tests := []struct {
		name string
		run  func(*testing.T, store)
	}{
		{"Apps", testApps},
		{"AppsRefused", testAppsRefused},
		{"Retention", testRetention},
		{"Consistency", testConsistency},
		{"BrowserRanking", testBrowserRanking},
		{"Identity", testIdentity},
		{"Purposes", testPurposes},
		{"Holdout", testHoldout},
		{"Experiments", testExperiments},
		{"ExperimentsRefused", testExperimentsRefused},
		{"ExperimentStrategies", testExperimentStrategies},
		{"Residency", testResidency},
		{"SegmentsSwitch", testSegmentsSwitch},
		{"Limits", testLimits},
		{"TrackNames", testTrackNames},
		{"ChangedAt", testChangedAt},
		{"LogOfNewApps", testLogOfNewApps},
		{"UpdateLog", testUpdateLog},
		{"UpdateLogRefused", testUpdateLogRefused},
		{"Generation", testGeneration},
		{"UpdateLogOnly", testUpdateLogOnly},
		{"LogChangedAt", testLogChangedAt},
		{"LogAtOnce", testLogAtOnce},
		{"UpdateMove", testUpdateMove},
		{"UpdateMoveRefused", testUpdateMoveRefused},
		{"Keys", testKeys},
		{"KeysOfApps", testKeysOfApps},
		{"KeysRefused", testKeysRefused},
		{"Parents", func(t *testing.T, s store) { parentsAtOnce(t, s) }},
		{"Strategies", testStrategies},
		{"StrategyForms", testStrategyForms},
		{"ScoringVersion", testScoringVersion},
		{"StrategyVersions", testStrategyVersions},
		{"StrategyCondition", testStrategyCondition},
		{"StrategiesAtOnce", testStrategiesAtOnce},
		{"ChangesAtOnce", testChangesAtOnce},
		{"IndexSettings", testIndexSettings},
		{"IndexNames", testIndexNames},
		{"NumericBands", testNumericBands},
		{"BandsWithoutFacets", testBandsWithoutFacets},
		{"NumericBandsRefused", testNumericBandsRefused},
		{"NumericBandsAtOnce", testNumericBandsAtOnce},
		{"PrivateFacets", testPrivateFacets},
		{"PrivateFacetsBounded", testPrivateFacetsBounded},
		{"Feeds", testFeeds},
		{"FeedsChangeTheApp", testFeedsChangeTheApp},
		{"FeedsAtOnce", testFeedsAtOnce},
		{"Segments", testSegments},
		{"Sessions", testSessions},
		{"SegmentsAtOnce", testSegmentsAtOnce},
		{"Deletion", testDeletion},
		{"Unknown", testUnknown},
		{"Cancelled", testCancelled},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { tt.run(t, open(t)) })
	}
}

// RunShared tests two Stores that share one empty database and no memory, as two
// processes do.
func RunShared(t *testing.T, first, second *config.Store) {
	one, two := plain(first), plain(second)
	create(t, one, "shop")
	setAtOnce(t, "shop", one, two)
	create(t, one, "moving")
	logsAtOnce(t, "moving", one, two)
	parentsAtOnce(t, one, two)
	deletedAtOnce(t, one, two)
	wantError(t, "create an app that the other created", two.CreateApp(t.Context(), config.App{ID: "shop"}),
		config.ErrExists)
}

// scores is a strategy that differs from that of every other n.
func scores(n int) strategy.Strategy {
	return strategy.Strategy{
		EventsScoring:         []strategy.EventScore{{EventName: "Viewed", EventType: event.View, Score: n}},
		FacetsScoring:         []strategy.FacetScore{{FacetName: "brand", Score: 50}},
		PersonalizationImpact: 70,
	}
}

// hash is a well-formed hash, the same for the same letter.
func hash(letter string) string { return strings.Repeat(letter, 64) }

// create adds an app with a retention of 90 days.
func create(t *testing.T, s store, id string) {
	t.Helper()
	if err := s.CreateApp(t.Context(), config.App{ID: id, RetentionDays: 90}); err != nil {
		t.Fatalf("create app %q: %v", id, err)
	}
}

// setStrategy makes strategy n active and checks the outcome.
func setStrategy(t *testing.T, s store, app string, set strategy.Strategy, wantVersion int64, wantChanged bool) {
	t.Helper()
	got, changed, err := s.SetStrategy(t.Context(), app, set)
	if err != nil || got.StrategyVersion != wantVersion || changed != wantChanged {
		t.Fatalf("set strategy: got version %d, changed %v, error %v; want version %d, changed %v",
			got.StrategyVersion, changed, err, wantVersion, wantChanged)
	}
}

// read checks what a read returned.
func read[T any](t *testing.T, what string, got T, err error, want T) {
	t.Helper()
	if err != nil {
		t.Fatalf("read %s: %v", what, err)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func wantError(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: got error %v, want %v", what, err, want)
	}
}

func testKeys(t *testing.T, s store) {
	create(t, s, "shop")
	keys, err := s.Keys(t.Context(), "shop")
	read(t, "no keys", keys, err, nil)

	created := time.Date(2026, 3, 4, 5, 6, 7, 8000, time.UTC)
	a := config.Key{
		Hash: hash("a"), ACL: []string{"search"}, CreatedAt: created, Name: "web", Description: "the shop's pages",
		ValidUntil: created.Add(time.Hour),
		Indexes:    []string{"products", "news_*"}, Referers: []string{"https://*.shop.example/*"}, AddressRate: 60,
		HashTokens: true, Region: "us",
		Parent: []byte("sealed"),
	}
	b := config.Key{Hash: hash("b"), CreatedAt: created}
	for _, key := range []config.Key{b, a} {
		// A read before it exists must not hide it afterwards.
		_, err := s.Key(t.Context(), "shop", key.Hash)
		wantError(t, "a key that does not exist yet", err, config.ErrNotFound)
		if err := s.PutKey(t.Context(), "shop", key); err != nil {
			t.Fatal(err)
		}
		got, err := s.Key(t.Context(), "shop", key.Hash)
		read(t, "key", got, err, key)
	}
	keys, err = s.Keys(t.Context(), "shop")
	read(t, "keys", keys, err, []config.Key{a, b})

	keys, err = s.Parents(t.Context(), "shop")
	read(t, "parents", keys, err, []config.Key{a})
	keys, err = s.Parents(t.Context(), "nowhere")
	read(t, "parents of an unknown app", keys, err, nil)

	a = config.Key{Hash: a.Hash, ACL: []string{"admin", "search"}, CreatedAt: created}
	if err := s.PutKey(t.Context(), "shop", a); err != nil {
		t.Fatal(err)
	}
	got, err := s.Key(t.Context(), "shop", a.Hash)
	read(t, "replaced key", got, err, a)
	keys, err = s.Parents(t.Context(), "shop")
	read(t, "no parents", keys, err, nil)

	if err := s.DeleteKey(t.Context(), "shop", a.Hash); err != nil {
		t.Fatal(err)
	}
	_, err = s.Key(t.Context(), "shop", a.Hash)
	wantError(t, "deleted key", err, config.ErrNotFound)
	wantError(t, "delete it again", s.DeleteKey(t.Context(), "shop", a.Hash), config.ErrNotFound)
	keys, err = s.Keys(t.Context(), "shop")
	read(t, "keys left", keys, err, []config.Key{b})
}

// A key opens only its own app.
func testKeysOfApps(t *testing.T, s store) {
	create(t, s, "one")
	create(t, s, "two")
	if err := s.PutKey(t.Context(), "one", config.Key{Hash: hash("a")}); err != nil {
		t.Fatal(err)
	}
	_, err := s.Key(t.Context(), "two", hash("a"))
	wantError(t, "key of another app", err, config.ErrNotFound)
	keys, err := s.Keys(t.Context(), "two")
	read(t, "keys of the other app", keys, err, nil)
	wantError(t, "delete it there", s.DeleteKey(t.Context(), "two", hash("a")), config.ErrNotFound)
	if _, err := s.Key(t.Context(), "one", hash("a")); err != nil {
		t.Errorf("key of its own app: %v", err)
	}
}

func testKeysRefused(t *testing.T, s store) {
	create(t, s, "shop")
	for _, bad := range []string{"", "demokey", hash("A"), hash("a") + "0", hash("g"), strings.Repeat("a/", 32)} {
		if err := s.PutKey(t.Context(), "shop", config.Key{Hash: bad}); err == nil {
			t.Errorf("put key with hash %q: it was accepted", bad)
		}
		_, err := s.Key(t.Context(), "shop", bad)
		wantError(t, fmt.Sprintf("key %q", bad), err, config.ErrNotFound)
	}
	for _, bad := range []config.Key{
		{Name: "a b"}, {Name: strings.Repeat("a", 51)}, {Description: strings.Repeat("a", 501)}, {AddressRate: -1},
		{AddressRate: 1_000_001},
		{Indexes: []string{""}}, {Indexes: make([]string, 101)}, {Referers: []string{" a"}},
		{Referers: []string{"\xff"}}, {Parent: make([]byte, 1001)},
	} {
		bad.Hash = hash("a")
		if err := s.PutKey(t.Context(), "shop", bad); err == nil {
			t.Errorf("put key %+v: it was accepted", bad)
		}
	}
	keys, err := s.Keys(t.Context(), "shop")
	read(t, "keys", keys, err, nil)
}

func testStrategies(t *testing.T, s store) {
	create(t, s, "shop")
	_, err := s.StrategyVersion(t.Context(), "shop", 1)
	wantError(t, "a version that does not exist yet", err, config.ErrNotFound)

	setStrategy(t, s, "shop", scores(1), 1, true)
	setStrategy(t, s, "shop", scores(1), 1, false)
	setStrategy(t, s, "shop", scores(2), 2, true)
	setStrategy(t, s, "shop", scores(1), 3, true)

	app, err := s.App(t.Context(), "shop")
	if err != nil || app.StrategyVersion != 3 || !app.Strategy.Equal(scores(1)) || app.RetentionDays != 90 {
		t.Errorf("got %+v, error %v; want strategy 1 as version 3", app, err)
	}
	for version, want := range map[int64]strategy.Strategy{1: scores(1), 2: scores(2), 3: scores(1)} {
		got, err := s.StrategyVersion(t.Context(), "shop", version)
		read(t, fmt.Sprintf("version %d", version), got, err, want)
	}
	for _, version := range []int64{-1, 0, 4} {
		_, err := s.StrategyVersion(t.Context(), "shop", version)
		wantError(t, fmt.Sprintf("version %d", version), err, config.ErrNotFound)
	}
}

// A strategy is read as it was set, also an empty one and the largest one.
func testStrategyForms(t *testing.T, s store) {
	create(t, s, "shop")
	full := scores(3)
	full.HalfLives = strategy.InDays(30, 7)
	full.Ranking = strategy.PlainRanking()
	full.Ranking.Session.HalfLife = strategy.Events(2.5)
	full.Aliases = map[string]map[string]string{"a.b/c`": {"": "x", "é\n\"": "y"}, "colour": {"grey": "gray"}}
	full.IgnoredValues = []string{"é\n\"", "-"}
	full.AllowedValues = map[string]strategy.ValueSet{"a.b/c`": strategy.SetOf("é\n\"", "y")}
	none := scores(5)
	none.IgnoredValues = []string{}
	large := scores(4)
	large.Aliases = map[string]map[string]string{"brand": {}}
	for i := range 5000 {
		large.Aliases["brand"][fmt.Sprintf("%040d", i)] = fmt.Sprintf("brand %034d", i)
	}
	for i, set := range []strategy.Strategy{{}, full, large, none, scores(0)} {
		version := int64(i + 1)
		setStrategy(t, s, "shop", set, version, true)
		setStrategy(t, s, "shop", set, version, false)
		app, err := s.App(t.Context(), "shop")
		read(t, "active strategy", app.Strategy, err, set)
		kept, err := s.StrategyVersion(t.Context(), "shop", version)
		read(t, "kept strategy", kept, err, set)
	}
}

// Nothing can be read of, or added to, an app that does not exist.
func testUnknown(t *testing.T, s store) {
	ctx, collect, prepare := t.Context(), config.Identity{Mode: config.IdentityCollect}, residence(config.ResidencyPrepare)
	calls := map[string]func() error{
		"App":               func() error { _, err := s.App(ctx, "shop"); return err },
		"SetRetention":      func() error { return s.SetRetention(ctx, "shop", 1) },
		"SetConsistency":    func() error { return s.SetConsistency(ctx, "shop", config.Strong) },
		"SetBrowserRanking": func() error { return s.SetBrowserRanking(ctx, "shop", true) },
		"SetSegments":       func() error { return s.SetSegments(ctx, "shop", true) },
		"SetHoldout":        func() error { _, err := s.SetHoldout(ctx, "shop", experiment.Holdout{}); return err },
		"SetPurposes":       func() error { _, err := s.SetPurposes(ctx, "shop", nil); return err },
		"SetIdentity":       func() error { _, err := s.SetIdentity(ctx, "shop", collect, 0); return err },
		"SetResidency":      func() error { _, err := s.SetResidency(ctx, "shop", prepare, 0); return err },
		"SetTrackNames": func() error {
			_, err := s.SetTrackNames(ctx, "shop", config.TrackNames{"Mine": "view"})
			return err
		},
		"UpdateLog": func() error {
			_, err := s.UpdateLog(ctx, "shop", func(*config.App) error { return nil })
			return err
		},
		"UpdateMove": func() error {
			_, err := s.UpdateMove(ctx, "shop", func(*config.App) error { return nil })
			return err
		},
		"Key":              func() error { _, err := s.Key(ctx, "shop", hash("a")); return err },
		"Keys":             func() error { _, err := s.Keys(ctx, "shop"); return err },
		"PutKey":           func() error { return s.PutKey(ctx, "shop", config.Key{Hash: hash("a")}) },
		"DeleteKey":        func() error { return s.DeleteKey(ctx, "shop", hash("a")) },
		"SetStrategy":      func() error { _, _, err := s.SetStrategy(ctx, "shop", scores(1)); return err },
		"StrategyVersion":  func() error { _, err := s.StrategyVersion(ctx, "shop", 1); return err },
		"StrategyVersions": func() error { _, err := s.StrategyVersions(ctx, "shop"); return err },
		"IndexSettings":    func() error { _, err := s.IndexSettings(ctx, "shop", "products"); return err },
		"SettingsIndexes":  func() error { _, err := s.SettingsIndexes(ctx, "shop"); return err },
		"SetIndexSettings": func() error {
			_, err := s.SetIndexSettings(ctx, "shop", "products", catalog.Change{})
			return err
		},
		"Feed":  func() error { _, err := s.Feed(ctx, "shop", "news"); return err },
		"Feeds": func() error { _, err := s.Feeds(ctx, "shop"); return err },
		"SetFeed": func() error {
			_, _, err := s.SetFeed(ctx, "shop", config.Feed{Name: "news"}, time.Now())
			return err
		},
		"DeleteFeed":    func() error { return s.DeleteFeed(ctx, "shop", "news", time.Now()) },
		"SavedSegment":  func() error { _, err := s.SavedSegment(ctx, "shop", "vip"); return err },
		"SavedSegments": func() error { _, err := s.SavedSegments(ctx, "shop"); return err },
		"SaveSegment": func() error {
			_, _, err := s.SaveSegment(ctx, "shop", config.SavedSegment{Name: "vip"}, false)
			return err
		},
		"DeleteSegment":    func() error { return s.DeleteSegment(ctx, "shop", "vip") },
		"SetPrivateFacets": func() error { return s.SetPrivateFacets(ctx, "shop", "products", []string{"a"}) },
	}
	for name, call := range calls {
		wantError(t, name, call(), config.ErrNotFound)
	}
	// Having been asked for it does not hide it once it exists.
	create(t, s, "shop")
	if _, err := s.App(ctx, "shop"); err != nil {
		t.Errorf("app once created: %v", err)
	}
}

// A cancelled call returns the cancellation, and never ErrNotFound.
func testCancelled(t *testing.T, s store) {
	create(t, s, "shop")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, readErr := s.App(ctx, "shop")
	_, listErr := s.Apps(ctx)
	_, _, strategyErr := s.SetStrategy(ctx, "shop", scores(1))
	_, logErr := s.UpdateLog(ctx, "shop", func(a *config.App) error { a.Log = both; return nil })
	createErr := s.CreateApp(ctx, config.App{ID: "other"})
	for name, err := range map[string]error{"App": readErr, "Apps": listErr, "SetStrategy": strategyErr,
		"UpdateLog": logErr, "CreateApp": createErr} {
		if err == nil || errors.Is(err, config.ErrNotFound) || errors.Is(err, config.ErrExists) {
			t.Errorf("%s: got error %v, want that of the context", name, err)
		}
	}
	app, err := s.App(t.Context(), "shop")
	if err != nil || app.StrategyVersion != 0 || !app.Log.Equal(schema.Default()) {
		t.Errorf("afterwards: got %+v, error %v; want the app as it was made", app, err)
	}
}
