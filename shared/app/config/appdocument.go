package config

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/affinityengine/affinity/shared/app/limit"
	"github.com/affinityengine/affinity/shared/catalog"
	"github.com/affinityengine/affinity/shared/score/experiment"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// The documents; store says where each lies.
type (
	appDocument struct {
		ID            string `firestore:"id"`
		RetentionDays int    `firestore:"retentionDays"`
		// Consistency is empty in a document in which nobody set it.
		Consistency    Consistency `firestore:"consistency,omitempty"`
		BrowserRanking bool        `firestore:"browserRanking,omitempty"`
		// SegmentsSince is zero while segments are off.
		SegmentsSince   time.Time `firestore:"segmentsSince,omitempty"`
		Strategy        string    `firestore:"strategy"`
		StrategyVersion int64     `firestore:"strategyVersion"`
		ScoringVersion  int64     `firestore:"scoringVersion,omitempty"`
		// Ranking is JSON. Empty: the strategy has none.
		Ranking   string    `firestore:"ranking,omitempty"`
		CreatedAt time.Time `firestore:"createdAt"`
		ChangedAt time.Time `firestore:"changedAt"`
		// Limits is nil in a document of an app that has only defaults.
		Limits *limitsDocument `firestore:"limits,omitempty"`
		Log    logDocument     `firestore:"log"`
		// Migration is nil if the log was never migrated.
		Migration *migrationDocument `firestore:"migration,omitempty"`
		// Region is empty, and Move nil, in a document of an app that was never given a
		// region.
		Region string        `firestore:"region,omitempty"`
		Move   *moveDocument `firestore:"move,omitempty"`
		// PrivateFacets is JSON. Empty: there are none.
		PrivateFacets string `firestore:"privateFacets,omitempty"`
		// NumericBands is JSON. Empty: there never were any.
		NumericBands string `firestore:"numericBands,omitempty"`
		// Identity is JSON. Empty: no token was ever linked.
		Identity string `firestore:"identity,omitempty"`
		// Residency is JSON. Empty: all users live in Region.
		Residency string `firestore:"residency,omitempty"`
		// Purposes is JSON. Empty: all events count.
		Purposes string `firestore:"purposes,omitempty"`
		// Holdout is JSON. Empty: nobody is held out.
		Holdout string `firestore:"holdout,omitempty"`
		// HoldoutSince is zero while nobody is held out.
		HoldoutSince time.Time `firestore:"holdoutSince,omitempty"`
		// Experiment and ArmRankings are JSON. Empty: there never was one.
		Experiment  string `firestore:"experiment,omitempty"`
		ArmRankings string `firestore:"armRankings,omitempty"`
		// TrackNames is JSON. Empty: there are none.
		TrackNames string `firestore:"trackNames,omitempty"`
		// Dates is JSON. Empty: there are none.
		Dates       string `firestore:"dates,omitempty"`
		FeedVersion int64  `firestore:"feedVersion,omitempty"`
	}
	limitsDocument struct {
		EventsPerSecond   int `firestore:"eventsPerSecond,omitempty"`
		ImportsPerSecond  int `firestore:"importsPerSecond,omitempty"`
		ReadsPerSecond    int `firestore:"readsPerSecond,omitempty"`
		JobsPerHour       int `firestore:"jobsPerHour,omitempty"`
		StrategiesPerHour int `firestore:"strategiesPerHour,omitempty"`
		UserEventsPerDay  int `firestore:"userEventsPerDay,omitempty"`
		WriteWindowMs     int `firestore:"writeWindowMs,omitempty"`
	}
	logDocument struct {
		Write    []schema.Name   `firestore:"write"`
		Read     schema.Name     `firestore:"read"`
		Encoding schema.Encoding `firestore:"encoding"`
		// Generation is as in schema.Layout.
		Generation int64 `firestore:"generation"`
	}
	migrationDocument struct {
		ID        string      `firestore:"id"`
		From      schema.Name `firestore:"from"`
		To        schema.Name `firestore:"to"`
		Phase     Phase       `firestore:"phase"`
		Job       string      `firestore:"job"`
		Backfill  string      `firestore:"backfill"`
		Rate      int         `firestore:"rate"`
		Undone    bool        `firestore:"undone"`
		StartedAt time.Time   `firestore:"startedAt"`
	}
	moveDocument struct {
		ID        string    `firestore:"id"`
		From      string    `firestore:"from"`
		To        string    `firestore:"to"`
		Births    string    `firestore:"births"`
		Phase     MovePhase `firestore:"phase"`
		Back      bool      `firestore:"back"`
		Job       string    `firestore:"job"`
		StartedAt time.Time `firestore:"startedAt"`
		// ChangedAt is set by Firestore's clock if it is zero.
		ChangedAt time.Time `firestore:"changedAt,serverTimestamp"`
	}
	keyringDocument struct {
		ID        string    `firestore:"id"`
		ChangedAt time.Time `firestore:"changedAt,serverTimestamp"`
	}
	keyDocument struct {
		Hash      string    `firestore:"hash"`
		ACL       []string  `firestore:"acl"`
		CreatedAt time.Time `firestore:"createdAt"`
		// The fields below are absent in a document without these attributes.
		Name        string    `firestore:"name,omitempty"`
		Description string    `firestore:"description,omitempty"`
		ValidUntil  time.Time `firestore:"validUntil,omitempty"`
		Indexes     []string  `firestore:"indexes,omitempty"`
		Referers    []string  `firestore:"referers,omitempty"`
		AddressRate int       `firestore:"addressRate,omitempty"`
		HashTokens  bool      `firestore:"hashTokens,omitempty"`
		Region      string    `firestore:"region,omitempty"`
		Parent      []byte    `firestore:"parent,omitempty"`
	}
	strategyDocument struct {
		Version        int64     `firestore:"version"`
		Strategy       string    `firestore:"strategy"`
		CreatedAt      time.Time `firestore:"createdAt"`
		ScoringVersion int64     `firestore:"scoringVersion"`
		Ranking        string    `firestore:"ranking"` // as in appDocument
		Note           string    `firestore:"note,omitempty"`
	}
	feedDocument struct {
		Name       string `firestore:"name"`
		Version    int64  `firestore:"version"`
		Index      string `firestore:"index"`
		Date       string `firestore:"date"`
		Definition string `firestore:"definition"`
	}
	experimentDocument struct {
		Name       string `firestore:"name"`
		Definition string `firestore:"definition"`
	}
	segmentDocument struct {
		Name  string    `firestore:"name"`
		Where string    `firestore:"where"`
		SetAt time.Time `firestore:"setAt"`
	}
	indexDocument struct {
		Index                 string   `firestore:"index"`
		AttributesForFaceting []string `firestore:"attributesForFaceting"`
		// AllFacets says that AttributesForFaceting were never set. An empty list, which Firestore does
		// not tell from none, is a setting.
		AllFacets bool  `firestore:"allFacets,omitempty"`
		Version   int64 `firestore:"version"`
		// NumericBands is JSON. Both fields are absent in the document of an index that
		// never had bands.
		NumericBands string `firestore:"numericBands,omitempty"`
		BandsVersion int64  `firestore:"bandsVersion,omitempty"`
	}
)

func (d appDocument) app() (App, error) {
	a := App{ID: d.ID, RetentionDays: d.RetentionDays, StrategyVersion: d.StrategyVersion, Consistency: d.Consistency,
		BrowserRanking: d.BrowserRanking, Segments: Segments{Since: d.SegmentsSince.UTC()}, Log: schema.Layout(d.Log),
		HoldoutSince: d.HoldoutSince.UTC(),
		CreatedAt:    d.CreatedAt.UTC(), ChangedAt: d.ChangedAt.UTC()}
	if d.Limits != nil {
		a.Limits = limit.Numbers(*d.Limits)
	}
	// Reading an unknown layout as another one would lose events.
	if err := checkLog(a.Log); err != nil {
		return App{}, fmt.Errorf("stored %w", err)
	}
	if d.Migration != nil {
		d.Migration.StartedAt = d.Migration.StartedAt.UTC()
		a.Migration = Migration(*d.Migration)
	}
	a.Region = d.Region
	if d.Move != nil {
		d.Move.StartedAt = d.Move.StartedAt.UTC()
		a.Move = Move(*d.Move)
	}
	a.FeedVersion = d.FeedVersion
	// An app of which one of these is unknown must not look like one without it: its private facets would be shown,
	// its links, its purposes, its holdout, its experiment and the regions of its users forgotten, and its objects would
	// leave the feeds.
	for _, part := range []struct {
		name, text string
		value      any
	}{
		{"private facets", d.PrivateFacets, &a.PrivateFacets}, {"numeric bands", d.NumericBands, &a.NumericBands},
		{"identity", d.Identity, &a.Identity}, {"residency", d.Residency, &a.Residency},
		{"purposes", d.Purposes, &a.Purposes}, {"holdout", d.Holdout, &a.Holdout},
		{"experiment", d.Experiment, &a.Experiment}, {"rankings of arms", d.ArmRankings, &a.ArmRankings},
		{"names of track calls", d.TrackNames, &a.TrackNames}, {"dates", d.Dates, &a.Dates},
	} {
		if part.text == "" {
			continue
		}
		if err := json.Unmarshal([]byte(part.text), part.value); err != nil {
			return App{}, fmt.Errorf("parse stored %s: %w", part.name, err)
		}
	}
	if d.StrategyVersion == 0 {
		return a, nil
	}
	a.ScoringVersion = d.ScoringVersion
	var err error
	a.Strategy, err = parseStrategy(d.Strategy, d.Ranking)
	return a, err
}

// newAppDocument returns the document of an app.
func newAppDocument(a App) (appDocument, error) {
	d := appDocument{
		ID: a.ID, RetentionDays: a.RetentionDays, Consistency: a.Consistency, BrowserRanking: a.BrowserRanking,
		SegmentsSince: a.Segments.Since, HoldoutSince: a.HoldoutSince,
		StrategyVersion: a.StrategyVersion, ScoringVersion: a.ScoringVersion, CreatedAt: a.CreatedAt, ChangedAt: a.ChangedAt,
		Log: logDocument(a.Log), Region: a.Region, FeedVersion: a.FeedVersion,
	}
	if a.Limits != (limit.Numbers{}) {
		limits := limitsDocument(a.Limits)
		d.Limits = &limits
	}
	if a.Migration != (Migration{}) {
		migration := migrationDocument(a.Migration)
		d.Migration = &migration
	}
	if a.Move != (Move{}) {
		move := moveDocument(a.Move)
		d.Move = &move
	}
	var err error
	if a.StrategyVersion > 0 {
		if d.Strategy, d.Ranking, err = strategyTexts(a.Strategy); err != nil {
			return d, err
		}
	}
	for _, part := range []struct {
		text  *string
		value any
		there bool
	}{
		{&d.PrivateFacets, a.PrivateFacets, a.PrivateFacets != nil},
		{&d.NumericBands, a.NumericBands, a.NumericBands != nil},
		{&d.Identity, a.Identity, a.Identity != Identity{}},
		{&d.Residency, a.Residency, a.Residency.On()},
		{&d.Purposes, a.Purposes, a.Purposes.Last > 0},
		{&d.Holdout, a.Holdout, a.Holdout != experiment.Holdout{}},
		{&d.Experiment, a.Experiment, a.Experiment.On()},
		{&d.ArmRankings, a.ArmRankings, a.ArmRankings != nil},
		{&d.TrackNames, a.TrackNames, a.TrackNames != nil},
		{&d.Dates, a.Dates, a.Dates != nil},
	} {
		if !part.there {
			continue
		}
		text, err := json.Marshal(part.value)
		if err != nil {
			return d, fmt.Errorf("encode settings of app %q: %w", a.ID, err)
		}
		*part.text = string(text)
	}
	return d, nil
}

// strategyTexts returns a strategy without its ranking, and the ranking, as documents hold them.
func strategyTexts(s strategy.Strategy) (text, ranking string, err error) {
	if s.Ranking != nil {
		encoded, err := json.Marshal(s.Ranking)
		if err != nil {
			return "", "", err
		}
		ranking = string(encoded)
	}
	s.Ranking = nil
	encoded, err := json.Marshal(s)
	return string(encoded), ranking, err
}

// newStrategyDocument returns the document of an app's active strategy.
func newStrategyDocument(app App, note string) (d strategyDocument, err error) {
	d = strategyDocument{Version: app.StrategyVersion, ScoringVersion: app.ScoringVersion,
		CreatedAt: Stamp(time.Time{}), Note: note}
	d.Strategy, d.Ranking, err = strategyTexts(app.Strategy)
	return d, err
}

func (d strategyDocument) kept() Version {
	return Version{Version: d.Version, ScoringVersion: d.ScoringVersion, SetAt: d.CreatedAt.UTC(), Note: d.Note}
}

func (d segmentDocument) segment() SavedSegment {
	d.SetAt = d.SetAt.UTC()
	return SavedSegment(d)
}

func (d keyDocument) key() Key {
	d.CreatedAt, d.ValidUntil = d.CreatedAt.UTC(), d.ValidUntil.UTC()
	return Key(d)
}

func (d indexDocument) settings() (catalog.Settings, error) {
	s := catalog.Settings{AttributesForFaceting: d.AttributesForFaceting, Version: d.Version, BandsVersion: d.BandsVersion}
	if s.AttributesForFaceting == nil && !d.AllFacets {
		s.AttributesForFaceting = []string{}
	}
	if d.NumericBands == "" {
		return s, nil
	}
	if err := json.Unmarshal([]byte(d.NumericBands), &s.NumericBands); err != nil {
		return s, fmt.Errorf("parse stored numeric bands: %w", err)
	}
	return s, nil
}

func newIndexDocument(index string, s catalog.Settings) (indexDocument, error) {
	d := indexDocument{Index: index, AttributesForFaceting: s.AttributesForFaceting,
		AllFacets: s.AttributesForFaceting == nil, Version: s.Version, BandsVersion: s.BandsVersion}
	if len(s.NumericBands) == 0 {
		return d, nil
	}
	text, err := json.Marshal(s.NumericBands)
	d.NumericBands = string(text)
	return d, err
}

// parseStrategy decodes a stored strategy. It was validated when it was set, under
// the limits of that time.
func parseStrategy(text, ranking string) (strategy.Strategy, error) {
	var s strategy.Strategy
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return s, fmt.Errorf("parse stored strategy: %w", err)
	}
	if ranking == "" {
		return s, nil
	}
	if err := json.Unmarshal([]byte(ranking), &s.Ranking); err != nil {
		return s, fmt.Errorf("parse stored ranking: %w", err)
	}
	return s, nil
}
