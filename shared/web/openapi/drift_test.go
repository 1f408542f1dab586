package openapi_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/rank/boost"
	"github.com/affinityengine/affinity/shared/score/strategy"
	"github.com/affinityengine/affinity/shared/web/openapi"
)

// decoded is what these tests read of the document.
type decoded struct {
	Paths      map[string]map[string]operation `json:"paths"`
	Components struct {
		Schemas map[string]object `json:"schemas"`
	} `json:"components"`
}

type operation struct {
	ID        string   `json:"operationId"`
	BodyLimit string   `json:"x-body-limit"`
	ACL       []string `json:"x-acl"`
	Tags      []string `json:"tags"`

	Parameters []struct {
		Name   string `json:"name"`
		Schema struct {
			Enum []string `json:"enum"`
		} `json:"schema"`
	} `json:"parameters"`
}

type object struct {
	Type       any                 `json:"type"`
	Properties map[string]property `json:"properties"`
}

type property struct {
	Description string `json:"description"`
	MaxItems    int    `json:"maxItems"`
	MaxLength   int    `json:"maxLength"`
	Maximum     int    `json:"maximum"`
	Default     any    `json:"default"`
}

func document(t *testing.T) decoded {
	t.Helper()
	var doc decoded
	must.Succeed(t, json.Unmarshal(openapi.Document(), &doc))
	return doc
}

// TestDescribedTypes compares the JSON fields of the types of package api with the
// properties of the schemas of the same name.
func TestDescribedTypes(t *testing.T) {
	described := document(t).Components.Schemas
	for _, v := range []any{
		api.Affinity{}, api.Audit{}, api.AuditDifference{}, api.AuditRequest{}, api.BatchAction{}, api.BatchAnswer{}, api.BatchRequest{},
		api.DeletedObject{}, api.DeletedUser{}, api.Event{}, api.EventsRequest{}, api.CallsAnswer{}, api.TrackNames{}, api.ExplainedEvents{}, api.Explanation{}, api.FacetPreview{},
		api.Health{}, api.ImportAnswer{}, api.Message{}, api.Migration{}, api.MigrationJob{}, api.Mover{}, api.ObjectData{},
		api.PersonalizationProfile{}, api.Preview{}, api.PreviewOrders{}, api.PreviewObjects{}, api.PreviewCost{}, api.PreviewExample{}, api.PreviewRequest{}, api.Profile{}, api.Profiles{}, api.ProfilesRequest{},
		api.RankAnswer{}, api.RankCorrelation{}, api.RankedItem{}, api.RankFeature{}, api.RankField{}, api.RankItem{}, api.RankPart{}, api.RankRequest{}, api.RankOrder{}, api.OrderedItem{}, strategy.Diversity{},
		api.FeedPage{}, api.Boost{}, api.BoostAffinity{}, api.DroppedAffinity{}, api.BacktestJob{}, api.Backtests{}, api.BacktestSummary{}, api.BacktestRequest{}, api.BacktestResult{}, api.BacktestWithin{}, api.BacktestGain{}, api.BacktestLift{}, api.TuneRequest{}, api.TuneSearch{}, api.Tuning{}, api.Recompute{}, api.RecomputeRequest{}, api.Recomputes{}, api.ReenrichRequest{}, api.Reenrichment{},
		api.Reenrichments{}, api.RefusedEvent{}, api.RefusedEvents{}, api.SeenEvents{}, api.SeenEvent{}, api.SeenFacet{}, api.SeenToken{}, api.RecentEvents{}, api.RecentEvent{}, api.RecentUsers{}, api.RecentUser{}, api.RefusedLine{}, api.Schema{}, api.SchemaBackfillRequest{},
		api.SchemaDropRequest{}, api.SchemaStartRequest{}, api.Settings{}, api.SettingsAnswer{}, api.Shards{}, api.TaskAnswer{},
		api.ExportLine{}, api.ExportedUser{}, api.ExportedEvent{}, api.ExportedFault{}, api.ExportEnd{}, api.ExportedApp{}, api.ExportedSettings{}, api.ExportedFeed{}, api.ExportedSegment{}, api.ExportedObject{}, api.ExportedDeletion{}, api.ExportedLinks{}, api.ExportedLinkEntry{}, api.ExportedLinked{}, api.ExportNext{}, api.AuditLog{}, api.AuditLogEntry{}, api.AppSettings{}, api.AppLimits{}, api.AppKey{}, api.Usage{}, api.UsageDay{}, api.UsageCounts{}, api.StrategyVersions{}, api.StrategyVersion{}, api.RestoreStrategyRequest{},
		api.Strategy{}, api.EventScore{}, api.FacetScore{}, api.Ranking{}, api.SessionRanking{}, api.PopularityRanking{},
		api.PairsRanking{}, api.FreshnessRanking{},
	} {
		typ := reflect.TypeOf(v)
		if diff := cmp.Diff(sorted(fields(typ)), sorted(keys(described[typ.Name()].Properties))); diff != "" {
			t.Errorf("%s (-api +described):\n%s", typ.Name(), diff)
		}
	}
	// One type of package api, and a schema for each of its two forms.
	both := append(keys(described["Contribution"].Properties), keys(described["EarlierContributions"].Properties)...)
	if diff := cmp.Diff(sorted(fields(reflect.TypeOf(api.Contribution{}))), sorted(both)); diff != "" {
		t.Errorf("Contribution (-api +described):\n%s", diff)
	}
	// A line of an import is an event.
	if diff := cmp.Diff(sorted(keys(described["Event"].Properties)), sorted(keys(described["ImportLine"].Properties))); diff != "" {
		t.Errorf("ImportLine (-event +line):\n%s", diff)
	}
}

// fields are the JSON names of a struct's fields, with those of embedded structs.
func fields(typ reflect.Type) []string {
	var names []string
	for i := range typ.NumField() {
		f := typ.Field(i)
		if f.Anonymous && f.Tag.Get("json") == "" {
			inner := f.Type
			if inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			names = append(names, fields(inner)...)
			continue
		}
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "-" && name != "" {
			names = append(names, name)
		}
	}
	return names
}

func keys[V any](m map[string]V) []string {
	var all []string
	for k := range m {
		all = append(all, k)
	}
	return all
}

func sorted(list []string) []string {
	slices.Sort(list)
	return slices.Compact(list)
}

// TestDescribedEngines compares the engines that the document names with those that
// boosts are rendered for.
func TestDescribedEngines(t *testing.T) {
	for _, p := range document(t).Paths["/1/boosts/{userToken}"]["get"].Parameters {
		if p.Name != "engine" {
			continue
		}
		if diff := cmp.Diff(boost.Engines(), p.Schema.Enum); diff != "" {
			t.Errorf("engines (-rendered +described):\n%s", diff)
		}
		return
	}
	t.Error("the parameter engine is not described")
}

// TestDescribedLimits compares limits with the constants that the engine checks.
func TestDescribedLimits(t *testing.T) {
	doc := document(t)
	schemas := doc.Components.Schemas
	for name, test := range map[string]struct{ described, checked int }{
		"events of a request":        {schemas["EventsRequest"].Properties["events"].MaxItems, api.MaxEvents},
		"calls of a request":         {schemas["CallsRequest"].Properties["batch"].MaxItems, api.MaxCalls},
		"body of calls":              {bodyLimit(t, doc, "sendCalls"), api.MaxEventsBody},
		"objectIDs":                  {schemas["Event"].Properties["objectIDs"].MaxItems, api.MaxEventTargets},
		"filters":                    {schemas["Event"].Properties["filters"].MaxItems, api.MaxEventTargets},
		"index of an event":          {schemas["Event"].Properties["index"].MaxLength, api.MaxEventObjectID},
		"value":                      {schemas["Event"].Properties["value"].MaxLength, api.MaxEventValue},
		"refused events":             {schemas["RefusedEvents"].Properties["refused"].MaxItems, api.MaxRefusedEvents},
		"kinds of events seen":       {schemas["SeenEvents"].Properties["events"].MaxItems, api.MaxSeen},
		"facets seen":                {schemas["SeenEvents"].Properties["facets"].MaxItems, api.MaxSeen},
		"recent events":              {schemas["RecentEvents"].Properties["events"].MaxItems, api.MaxRecentEvents},
		"recent users":               {schemas["RecentUsers"].Properties["users"].MaxItems, api.MaxRecentUsers},
		"profiles of a batch":        {schemas["ProfilesRequest"].Properties["userTokens"].MaxItems, api.MaxProfiles},
		"users of a preview":         {schemas["PreviewRequest"].Properties["userTokens"].MaxItems, api.MaxPreviewSample},
		"candidates":                 {schemas["RankRequest"].Properties["objectIDs"].MaxItems, api.MaxCandidates},
		"candidates with fields":     {schemas["RankRequest"].Properties["items"].MaxItems, api.MaxCandidates},
		"impact of a request":        {schemas["RankRequest"].Properties["impact"].Maximum, strategy.MaxImpact},
		"facet of a diversity":       {schemas["Diversity"].Properties["facet"].MaxLength, strategy.MaxName},
		"items of a value":           {schemas["Diversity"].Properties["maxPerValue"].Maximum, strategy.MaxPerValue},
		"candidates of a diversity":  {api.MaxCandidates, strategy.MaxPerValue},
		"body of a ranking":          {bodyLimit(t, doc, "rank"), api.MaxRankBody},
		"sample of a preview":        {schemas["PreviewRequest"].Properties["sample"].Maximum, api.MaxPreviewSample},
		"actions of a batch":         {schemas["BatchRequest"].Properties["requests"].MaxItems, api.MaxActions},
		"facets of an index":         {schemas["SettingsRequest"].Properties["attributesForFaceting"].MaxItems, api.MaxFacetsDeclared},
		"items of a page of a feed":  {schemas["FeedPage"].Properties["items"].MaxItems, api.MaxFeedItems},
		"affinities of a boost":      {schemas["Boost"].Properties["affinities"].MaxItems, api.MaxBoostAffinities},
		"impact of a boost":          {schemas["Boost"].Properties["impact"].Maximum, boost.MaxImpact},
		"private facets of an index": {schemas["SettingsRequest"].Properties["privateFacets"].MaxItems, api.MaxPrivateFacets},
		"jobs of a list":             {schemas["Recomputes"].Properties["recomputes"].MaxItems, api.MaxJobsListed},
		"keys of a page":             {schemas["AppSettings"].Properties["keys"].MaxItems, api.MaxKeys},
		"sample of an audit":         {schemas["AuditRequest"].Properties["sample"].Maximum, api.MaxAuditSample},
		"differences of an audit":    {schemas["Audit"].Properties["differences"].MaxItems, api.MaxAuditReport},
		"rate of a backfill":         {schemas["SchemaBackfillRequest"].Properties["rate"].Maximum, api.MaxBackfillRate},
		"default rate":               {number(schemas["SchemaBackfillRequest"].Properties["rate"]), api.DefaultBackfillRate},
		"default sample of an audit": {number(schemas["AuditRequest"].Properties["sample"]), api.DefaultAuditSample},
		"default sample":             {number(schemas["PreviewRequest"].Properties["sample"]), api.DefaultPreviewSample},
		"default affinities":         {number(schemas["ProfilesRequest"].Properties["limit"]), api.DefaultAffinities},
		"events of a strategy":       {schemas["Strategy"].Properties["eventsScoring"].MaxItems, strategy.MaxEntries},
		"facets of a strategy":       {schemas["Strategy"].Properties["facetsScoring"].MaxItems, strategy.MaxEntries},
		"half-lives":                 {schemas["Strategy"].Properties["halfLives"].MaxItems, strategy.MaxHalfLives},
		"versions of a list":         {schemas["StrategyVersions"].Properties["versions"].MaxItems, config.MaxVersions},
		"body of a restore":          {bodyLimit(t, doc, "restoreStrategy"), api.MaxAdminBody},
		"weight of a ranking":        {schemas["SessionRanking"].Properties["weight"].Maximum, strategy.MaxWeight},
		"weight of pairs":            {schemas["PairsRanking"].Properties["weight"].Maximum, strategy.MaxCrowdWeight},
		"weight of popularity":       {schemas["PopularityRanking"].Properties["weight"].Maximum, strategy.MaxCrowdWeight},
		"weight of other links":      {schemas["LinksRanking"].Properties["weight"].Maximum, strategy.MaxCrowdWeight},
		"impact":                     {schemas["Strategy"].Properties["personalizationImpact"].Maximum, strategy.MaxImpact},
		"points of an event":         {schemas["EventScore"].Properties["score"].Maximum, strategy.MaxScore},
		"name of an event":           {schemas["EventScore"].Properties["eventName"].MaxLength, strategy.MaxName},
		"body of events":             {bodyLimit(t, doc, "sendEvents"), api.MaxEventsBody},
		"body of an import":          {bodyLimit(t, doc, "importEvents"), api.MaxImportBody},
		"body of a batch of users":   {bodyLimit(t, doc, "getProfiles"), api.MaxProfilesBody},
		"body of a strategy":         {bodyLimit(t, doc, "setStrategy"), api.MaxStrategyBody},
		"body of a preview":          {bodyLimit(t, doc, "previewStrategy"), api.MaxPreviewBody},
		"body of a batch":            {bodyLimit(t, doc, "batchObjects"), api.MaxCatalogBody},
		"body of settings":           {bodyLimit(t, doc, "setSettings"), api.MaxCatalogBody},
		"body of a recompute":        {bodyLimit(t, doc, "startRecompute"), api.MaxAdminBody},
	} {
		if test.described != test.checked {
			t.Errorf("%s: %d is described, the engine checks %d", name, test.described, test.checked)
		}
	}
}

func number(p property) int {
	n, ok := p.Default.(float64)
	if !ok {
		return -1
	}
	return int(n)
}

// TestDescribedRankingDefaults compares them with those that the engine fills in.
func TestDescribedRankingDefaults(t *testing.T) {
	schemas := document(t).Components.Schemas
	r := strategy.DefaultRanking()
	for of, want := range map[string]any{
		"Ranking.contrast": r.Contrast, "PairsRanking.weight": r.Pairs.Weight, "LinksRanking.weight": r.Sequence.Weight,
		"SessionRanking.halfLife": r.Session.HalfLife, "SessionRanking.weight": r.Session.Weight,
		"PopularityRanking.halfLife": r.Popularity.HalfLife, "PopularityRanking.weight": r.Popularity.Weight,
		"FreshnessRanking.attribute": r.Freshness.Attribute, "FreshnessRanking.halfLife": r.Freshness.HalfLife,
		"FreshnessRanking.weight": r.Freshness.Weight,
	} {
		schema, property, _ := strings.Cut(of, ".")
		if got := fmt.Sprint(schemas[schema].Properties[property].Default); got != fmt.Sprint(want) {
			t.Errorf("%s: the default %s is described, the engine has %v", of, got, want)
		}
	}
}

var bytesText = regexp.MustCompile(`([\d,]+) bytes`)

func bodyLimit(t *testing.T, doc decoded, id string) int {
	t.Helper()
	for _, methods := range doc.Paths {
		for _, op := range methods {
			if m := bytesText.FindStringSubmatch(op.BodyLimit); op.ID == id && m != nil {
				n, _ := json.Number(strings.ReplaceAll(m[1], ",", "")).Int64()
				return int(n)
			}
		}
	}
	t.Errorf("no limit of the body of %s is described", id)
	return 0
}

var route = regexp.MustCompile(`\b(?:rt|own)\.Handle(?:Own)?\("([A-Z]+ /[^"]*)"`)

// TestDescribedRoutes compares the routes that the public functions register with
// those of the document.
func TestDescribedRoutes(t *testing.T) {
	registered := []string{"GET /openapi.json", "GET /docs", "GET /docs/{resource}", "GET /health"}
	sources := []string{"../../local/stack/functions.go", "../../local/operator/handler.go", "../clientscript/clientscript.go"}
	for _, function := range []string{"admin", "catalog", "imports", "ingest", "profiles", "rank", "segments", "strategies"} {
		files, err := filepath.Glob("../../../functions/" + function + "/*.go")
		if err != nil || len(files) == 0 {
			t.Fatalf("no source of %s: %v", function, err)
		}
		sources = append(sources, files...)
	}
	for _, source := range sources {
		text, err := os.ReadFile(source)
		must.Succeed(t, err)
		for _, m := range route.FindAllSubmatch(text, -1) {
			registered = append(registered, string(m[1]))
		}
	}
	var described []string
	for path, methods := range document(t).Paths {
		for method := range methods {
			described = append(described, strings.ToUpper(method)+" "+path)
		}
	}
	if diff := cmp.Diff(sorted(registered), sorted(described)); diff != "" {
		t.Errorf("routes (-registered +described):\n%s", diff)
	}
}

// TestEveryPropertyIsDescribed looks for properties without a description.
func TestEveryPropertyIsDescribed(t *testing.T) {
	for name, schema := range document(t).Components.Schemas {
		for key, p := range schema.Properties {
			if p.Description == "" {
				t.Errorf("%s.%s has no description", name, key)
			}
		}
	}
}
