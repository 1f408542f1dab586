package checkup_test

import (
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/checkup"
)

var noon = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

// days is how many days of use the answers have.
const days = 30

// healthy are answers without a fault.
func healthy() checkup.Answers {
	usage := &api.Usage{Days: make([]api.UsageDay, days)}
	for i := range usage.Days {
		usage.Days[i] = api.UsageDay{Day: noon.AddDate(0, 0, i+1-days).Format(time.DateOnly), Events: 1_000}
		usage.Total.Events += 1_000
	}
	return checkup.Answers{
		Now: noon, Usage: usage,
		Versions: &api.StrategyVersions{Versions: []api.StrategyVersion{{Version: 3, SetAt: api.At(noon.AddDate(0, 0, -1))}}},
		Active: &api.Strategy{EventsScoring: []api.EventScore{{EventName: "Viewed", EventType: "view", Score: 10}},
			FacetsScoring: []api.FacetScore{{FacetName: "brand", Score: 50}}},
		Seen: &api.SeenEvents{Days: 7, Events: []api.SeenEvent{{EventType: "click", EventName: "Clicked", Count: 9},
			{EventType: "view", EventName: "Viewed", Count: 3}}, Facets: []api.SeenFacet{{Facet: "brand", Count: 3}}},
		Crowd: &api.Crowd{Indexes: []string{"products"}, Generations: []api.CrowdGeneration{
			{Index: "products", AsOf: api.At(noon.Add(-10 * time.Hour)), State: api.JobDone}}},
		Recomputes: &api.Recomputes{Recomputes: []api.Recompute{recompute(api.JobDone, 10*time.Hour)}},
		Settings:   &api.AppSettings{ID: "shop", Keys: []api.AppKey{{ID: "0123456789ab", Name: "web", ACL: []string{"search"}}}},
	}
}

func recompute(state api.JobState, ago time.Duration) api.Recompute {
	return api.Recompute{State: state, Maintain: true, Users: 12, StartedAt: api.At(noon.Add(-ago)), Error: "too slow"}
}

func key(name string, left time.Duration) api.AppKey {
	end := api.At(noon.Add(left))
	return api.AppKey{ID: "0123456789ab", Name: name, ACL: []string{"search", "admin"}, ValidUntil: &end}
}

func TestFind(t *testing.T) {
	if faults := checkup.Faults(checkup.Find(healthy())); len(faults) > 0 {
		t.Fatalf("of a healthy app: %v", faults)
	}
	day := 24 * time.Hour
	for name, test := range map[string]struct {
		change func(*checkup.Answers)
		check  string
		text   string // that the only fault has; "": no fault
		remedy string
	}{
		"no strategy": {func(a *checkup.Answers) { a.Versions.Versions, a.Active = nil, nil }, checkup.Strategy,
			"no strategy is set", "affinity strategy suggest"},
		"a strategy of other events": {func(a *checkup.Answers) { a.Active.EventsScoring[0].EventName = "Seen" }, checkup.Strategy,
			`scores no event of the last 7 days: the most are of type click, named "Clicked"`, "affinity events seen"},
		"a score of 0": {func(a *checkup.Answers) { a.Active.EventsScoring[0].Score = 0 }, checkup.Strategy,
			"scores no event", "affinity events seen"},
		"a strategy of other facets": {func(a *checkup.Answers) { a.Active.FacetsScoring[0].FacetName = "colour" }, checkup.Strategy,
			"scores no facet of the events of the last 7 days: the most have brand", "affinity events seen"},
		"events without filters": {func(a *checkup.Answers) { a.Seen.Facets = nil }, checkup.Strategy,
			"no event of the last 7 days has a filter", "affinity events seen"},
		"nothing seen yet": {func(a *checkup.Answers) { a.Seen.Events, a.Seen.Facets = nil, nil }, checkup.Strategy, "", ""},
		"no events": {func(a *checkup.Answers) { clear(a.Usage.Days); a.Usage.Total.Events = 0 }, checkup.Events,
			"no event has arrived in 30 days", "affinity events send"},
		"silence": {func(a *checkup.Answers) { a.Usage.Days[days-1].Events = 0 }, checkup.Events,
			"no events today, and 1,000 on the same day a week ago", "affinity events tail"},
		"silence so early in the day that nothing follows": {func(a *checkup.Answers) {
			a.Now, a.Usage.Days[days-1].Events = noon.Add(-11*time.Hour), 0
		}, checkup.Events, "", ""},
		"silence of two days, early": {func(a *checkup.Answers) {
			a.Now, a.Usage.Days[days-1].Events, a.Usage.Days[days-2].Events = noon.Add(-11*time.Hour), 0, 0
		}, checkup.Events, "no events today", "affinity events tail"},
		"as on each Sunday": {func(a *checkup.Answers) {
			a.Usage.Days[days-1].Events, a.Usage.Days[days-8].Events = 0, 0
		}, checkup.Events, "", ""},
		"some refused": {func(a *checkup.Answers) { a.Usage.Days[days-1].RefusedEvents = 20 }, checkup.Refused, "", ""},
		"many refused": {func(a *checkup.Answers) { a.Usage.Days[days-1].RefusedEvents = 21 }, checkup.Refused,
			"21 refusals yesterday and today, beside 2,000 accepted events", "affinity events refused"},
		"refused long ago": {func(a *checkup.Answers) { a.Usage.Days[days-3].RefusedEvents = 900 }, checkup.Refused, "", ""},
		"dead letters": {func(a *checkup.Answers) { a.Usage.DeadLetters = 1 }, checkup.DeadLetters,
			"1 message of accepted events could not be applied", "affinity replay"},
		"no statistics": {func(a *checkup.Answers) { a.Crowd.Generations = nil }, checkup.Statistics,
			"the index products has no crowd statistics", "affinity crowd build"},
		"statistics of one of two indexes": {func(a *checkup.Answers) { a.Crowd.Indexes = []string{"posts", "products"} },
			checkup.Statistics, "the index posts has no", "affinity crowd build"},
		"no objects": {func(a *checkup.Answers) { *a.Crowd = api.Crowd{} }, checkup.Statistics, "", ""},
		"old statistics": {func(a *checkup.Answers) { a.Crowd.Generations[0].AsOf = api.At(noon.Add(-49 * time.Hour)) },
			checkup.Statistics, "of the index products are of 26 November 11:00 UTC", "affinity crowd build"},
		"a failed build": {func(a *checkup.Answers) {
			a.Crowd.Builds = []api.CrowdBuild{{State: api.JobFailed, Error: "full", StartedAt: api.At(noon.Add(-time.Hour))}}
		}, checkup.Statistics, "started 28 November 11:00 UTC failed: full", "affinity crowd build"},
		"a failed build before one that is done": {func(a *checkup.Answers) {
			a.Crowd.Builds = []api.CrowdBuild{{State: api.JobDone}, {State: api.JobFailed, StartedAt: api.At(noon.Add(-time.Hour))}}
		}, checkup.Statistics, "", ""},
		"no recompute": {func(a *checkup.Answers) { a.Recomputes.Recomputes = nil }, checkup.Folds,
			"no recompute has maintained users' histories", "affinity recompute start --full"},
		"no recompute of a new app": {func(a *checkup.Answers) {
			a.Recomputes.Recomputes = nil
			clear(a.Usage.Days[:days-2])
		}, checkup.Folds, "", ""},
		"an old recompute": {func(a *checkup.Answers) { a.Recomputes.Recomputes[0] = recompute(api.JobDone, 3*day) }, checkup.Folds,
			"since 25 November 12:00 UTC", "affinity recompute start --full"},
		"a recompute that maintains nothing": {func(a *checkup.Answers) { a.Recomputes.Recomputes[0].Maintain = false }, checkup.Folds,
			"no recompute has maintained", "affinity recompute start --full"},
		"a failed recompute": {func(a *checkup.Answers) {
			a.Recomputes.Recomputes = append([]api.Recompute{recompute(api.JobFailed, time.Hour)}, a.Recomputes.Recomputes...)
		}, checkup.Folds, "failed: too slow", "affinity recompute start --full"},
		"a failed recompute before one that is done": {func(a *checkup.Answers) {
			a.Recomputes.Recomputes = append(a.Recomputes.Recomputes, recompute(api.JobFailed, 11*time.Hour))
		}, checkup.Folds, "", ""},
		"a key that ends": {func(a *checkup.Answers) { a.Settings.Keys[0] = key("web", 13*day) }, checkup.Keys,
			"the key web ends 11 December 12:00 UTC", "affinity app key rotate shop web"},
		"a key without a name that ends": {func(a *checkup.Answers) { a.Settings.Keys[0] = key("", day) }, checkup.Keys,
			"the key 0123456789ab ends", "affinity app key add shop --acl search,admin"},
		"two keys that end": {func(a *checkup.Answers) { a.Settings.Keys = []api.AppKey{key("b", 2*day), key("a", day)} },
			checkup.Keys, "the key a ends 29 November 12:00 UTC, and 1 more within 14 days", "affinity app key rotate shop a"},
		"a key that is replaced": {func(a *checkup.Answers) { a.Settings.Keys = append(a.Settings.Keys, key("web", day)) },
			checkup.Keys, "", ""},
		"a key that has ended": {func(a *checkup.Answers) { a.Settings.Keys[0] = key("web", -day) }, checkup.Keys, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			a := healthy()
			test.change(&a)
			faults := checkup.Faults(checkup.Find(a))
			if test.text == "" {
				if len(faults) > 0 {
					t.Errorf("found %v", faults)
				}
				return
			}
			if len(faults) != 1 || faults[0].Name != test.check || faults[0].State != checkup.Fault ||
				!strings.Contains(faults[0].Text, test.text) || !strings.HasPrefix(faults[0].Remedy, test.remedy) {
				t.Errorf("found %+v, want %s: %s -> %s", faults, test.check, test.text, test.remedy)
			}
		})
	}
}

// Without an answer no check is in order.
func TestFindWithoutAnswers(t *testing.T) {
	for _, c := range checkup.Find(checkup.Answers{Now: noon}) {
		if c.State != checkup.Unknown {
			t.Errorf("%+v", c)
		}
	}
}
