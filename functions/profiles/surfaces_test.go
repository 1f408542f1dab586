package profiles_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/functions/admin"
	"github.com/affinityengine/affinity/functions/imports"
	"github.com/affinityengine/affinity/functions/ingest"
	"github.com/affinityengine/affinity/functions/profiles"
	"github.com/affinityengine/affinity/functions/worker"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/intake/warehouse/outbox"
	"github.com/affinityengine/affinity/shared/job/tasks/purge"
	"github.com/affinityengine/affinity/shared/local/functiontest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/consent"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// viewsForRank starts an engine in which views are used for rank, and clicks for segments.
func viewsForRank(t *testing.T) *stack.Stack {
	t.Helper()
	s := functiontest.Start(t)
	set := strategy.Strategy{FacetsScoring: []strategy.FacetScore{{FacetName: "color", Score: 100}}}
	for _, kind := range event.AllTypes.List() {
		set.EventsScoring = append(set.EventsScoring, strategy.EventScore{EventName: "Seen", EventType: kind, Score: 10})
	}
	functiontest.SetStrategy(t, s, set)
	setPurposes(t, s,
		consent.Purpose{Name: "personal", Default: true, Types: []event.Type{event.View}, Surfaces: []consent.Surface{consent.Rank}},
		consent.Purpose{Name: "ads", Default: true, Types: []event.Type{event.Click}, Facets: []string{"color"},
			Surfaces: []consent.Surface{consent.Segments, consent.Export}})
	lines := ""
	for _, kind := range []string{"view", "click", "conversion"} {
		lines += `{"eventType":"` + kind + `","eventName":"Seen","index":"i","userToken":"ann","timestamp":1500000000000,"filters":["color:` + kind + `"]}` + "\n"
	}
	functiontest.Do(t, imports.New(s.Backends.ForImports()), "admin", "POST", "/1/events/import", lines)
	return s
}

func TestProfilesBySurface(t *testing.T) {
	s := viewsForRank(t)
	h := profiles.New(s.Backends.ForProfiles())
	const key = "recommendation"
	functiontest.Check(t, h,
		functiontest.Ask(key, "GET", "/1/profiles/ann?surface=mail", "", 422, `surface \"mail\" must be one of [rank boosts feeds segments recommend export]`),
		functiontest.Ask(key, "GET", "/1/profiles/ann?surface=", "", 422, `surface \"\" must be`),
		functiontest.Ask(key, "POST", "/1/profiles/batch", `{"userTokens":["ann"],"surface":"mail"}`, 422, `surface \"mail\" must be`),
		functiontest.Ask(key, "GET", "/1/profiles/ann?surface=feeds", "", 404, "No profile"),
		functiontest.Ask(key, "POST", "/1/profiles/batch", `{"userTokens":["ann"],"surface":"feeds"}`, 200, `"notFound":["ann"]`),
	)
	for _, c := range []struct{ surface, has, lacks string }{{"", `"view"`, `"conversion"`}, {"", `"click"`, `"conversion"`}, {"rank", `"view"`, `"click"`}, {"export", `"click"`, `"view"`}} {
		query, body := "", `{"userTokens":["ann"]}`
		if c.surface != "" {
			query, body = "?surface="+c.surface, `{"userTokens":["ann"],"surface":"`+c.surface+`"}`
		}
		for _, ask := range [][3]string{{"GET", "/1/profiles/ann" + query, ""}, {"POST", "/1/profiles/batch", body}} {
			status, answer := functiontest.Call(h, key, ask[0], ask[1], ask[2])
			if status != http.StatusOK || !strings.Contains(answer, `"value":`+c.has) || strings.Contains(answer, `"value":`+c.lacks) {
				t.Errorf("%v: %d %s", ask, status, answer)
			}
		}
	}
	// At an instant, too.
	if _, answer := functiontest.Call(h, key, "GET", "/1/profiles/ann?surface=rank&at=2020-01-01T00:00:00Z", ""); !strings.Contains(answer, `"value":"view"`) || strings.Contains(answer, `"click"`) {
		t.Errorf("as of an instant: %s", answer)
	}
}

// A user belongs to segments by what counts for segments, whatever else the answer has.
func TestSegmentsByTheirSurface(t *testing.T) {
	s := viewsForRank(t)
	for name, color := range map[string]string{"views": "view", "clicks": "click"} {
		_, _, err := s.Backends.CachedConfig.SaveSegment(t.Context(), functiontest.App, config.SavedSegment{Name: name, Where: `{"filter":"color:` + color + `","above":0}`}, true)
		must.Succeed(t, err)
	}
	h := profiles.New(s.Backends.ForProfiles())
	const key = "recommendation"
	functiontest.Check(t, h,
		functiontest.Ask(key, "GET", "/1/profiles/ann?segments=true", "", 200, `"segments":["clicks"]`),
		functiontest.Ask(key, "GET", "/1/profiles/ann?segments=true&surface=rank", "", 200, `"segments":["clicks"]`),
		functiontest.Ask(key, "POST", "/1/profiles/batch", `{"userTokens":["ann","bob"],"segments":true}`, 200, `"segments":["clicks"]`),
		functiontest.Ask("deleteObject", "PUT", "/1/consents/ann", `{"ads":false}`, 200, ""),
		functiontest.Ask(key, "GET", "/1/profiles/ann?segments=true", "", 200, `"segments":[]`),
		functiontest.Ask(key, "POST", "/1/profiles/batch", `{"userTokens":["ann"],"segments":true}`, 200, `"segments":[]`),
	)
}

// Explanations and exports say for which purposes events count, and an export what the user has said.
func TestExplanationsAndExportsNamePurposes(t *testing.T) {
	s := viewsForRank(t)
	b := s.Backends.ForProfiles()
	b.Queue = &bodies{} // no purge
	h, a := profiles.New(b), admin.New(s.Backends.ForAdmin())
	functiontest.Check(t, h,
		functiontest.Ask("recommendation", "GET", "/1/explain/ann?facet=color&value=click", "", 200, `"purposes":["ads"]`),
		functiontest.Ask("recommendation", "GET", "/1/explain/ann?facet=color&value=view", "", 200, `"purposes":["personal"]`),
		functiontest.Ask("recommendation", "GET", "/1/explain/ann", "", 200, `"accepted":2`),
	)
	functiontest.Check(t, a,
		functiontest.Ask("admin", "GET", "/1/export/ann", "", 200, `"consents":[{"name":"personal","granted":true,"asked":false},{"name":"ads","granted":true,"asked":false}]`),
		functiontest.Ask("admin", "GET", "/1/export/ann", "", 200, `"purposes":["personal"]`),
		functiontest.Ask("admin", "GET", "/1/export/ann", "", 200, `"purposes":["ads"]`),
	)
	functiontest.Check(t, h, functiontest.Ask("deleteObject", "PUT", "/1/consents/ann", `{"ads":false}`, 200, ""))
	status, answer := functiontest.Call(a, "admin", "GET", "/1/export/ann", "")
	if status != http.StatusOK || strings.Contains(answer, "color:click") || !strings.Contains(answer, `{"name":"ads","granted":false,"asked":true,"since":"`) ||
		!strings.Contains(answer, `"exportEnd":{"events":1,"faults":0}`) {
		t.Errorf("before the purge the export is %d %s", status, answer)
	}
	if _, answer := functiontest.Call(h, "recommendation", "GET", "/1/explain/ann", ""); !strings.Contains(answer, `"counted":1`) || !strings.Contains(answer, `"deleted":1`) {
		t.Errorf("before the purge the explanation is %s", answer)
	}
}

// The purge of a withdrawal says in the warehouse what does not count there any more, once for all deliveries.
func TestWithdrawalReachesWarehouse(t *testing.T) {
	s := viewsForRank(t)
	kept, rows := &bodies{}, &deletions{}
	b, w := s.Backends.ForProfiles(), s.Backends.ForWorker()
	b.Queue = kept
	w.Warehouse = outbox.Over(rows, profile.ResidentsOf(b.Profiles), b.Now, b.Log)
	h, work := profiles.New(b), worker.New(w)
	for _, c := range []struct {
		body string
		rows int
	}{{`{"personal":false}`, 0}, {`{"ads":false}`, 1}, {`{"ads":true}`, 1}, {`{"ads":false}`, 2}} {
		functiontest.Check(t, h, functiontest.Ask("deleteObject", "PUT", "/1/consents/ann", c.body, 200, ""))
		for range 2 {
			task := kept.tasks[len(kept.tasks)-1]
			functiontest.Check(t, work, functiontest.Ask("", "POST", purge.Kind.Path, string(task.Body), 200, "purged"))
		}
		if len(rows.of) != c.rows {
			t.Errorf("%s: the warehouse has %v", c.body, rows.of)
		}
	}
}

// deletions are those that a warehouse was sent, but for when each was written.
type deletions struct{ of map[string]bool }

func (d *deletions) PublishEvents(context.Context, string, string, [][]byte) error { return nil }

func (d *deletions) PublishEverywhere(context.Context, []byte) error { return nil }

func (d *deletions) PublishDeletion(_ context.Context, _, _ string, row []byte) error {
	text, _, _ := strings.Cut(string(row), `"written_at"`)
	if d.of == nil {
		d.of = map[string]bool{}
	}
	d.of[text] = true
	return nil
}

// An event that denies a purpose which it serves is dropped, whichever way it comes, and what the user has said stays.
func TestEventsThatCarryConsent(t *testing.T) {
	s := viewsForRank(t)
	_, err := s.Backends.CachedConfig.SetPurposes(t.Context(), functiontest.App, []consent.Purpose{
		{Name: "personal", Default: true, Types: []event.Type{event.View, event.Click}, Surfaces: []consent.Surface{consent.Rank}},
		{Name: "ads", Default: true, Types: []event.Type{event.Click}, Signals: []string{"ad_storage"}, Surfaces: []consent.Surface{consent.Export}}})
	must.Succeed(t, err)
	line := func(user, kind, said string) string {
		return `{"eventType":"` + kind + `","eventName":"Seen","index":"i","userToken":"` + user + `","filters":["color:Red"],"consent":` + said + `}`
	}
	const denied, other = `{"ad_storage":"denied"}`, `{"mail":false,"ads":true}`
	lines := []string{line("kim", "click", denied), line("kim", "view", denied), line("kim", "click", other)}
	functiontest.Check(t, imports.New(s.Backends.ForImports()),
		functiontest.Ask("admin", "POST", "/1/events/import", strings.Join(lines, "\n"), 200, `"accepted":3,"received":3,"deleted":0,"optedOut":0,"withheld":1`),
		functiontest.Ask("admin", "POST", "/1/events/import", lines[0], 200, `"withheld":1`))
	in := ingest.New(s.Backends.ForIngest())
	live := `{"events":[` + line("lee", "click", denied) + `,` + line("lee", "view", denied) + `,` + line("lee", "click", `{"ads":false}`) + `]}`
	functiontest.Check(t, in,
		functiontest.Ask("all", "POST", "/1/events", live, 200, "OK"),
		functiontest.Ask("all", "POST", "/1/events", `{"events":[`+line("max", "click", denied)+`]}`, 200, "OK"),
		functiontest.Ask("all", "POST", "/1/events", `{"events":[`+line("lee", "click", `{"ads":"no"}`)+`]}`, 422, "expected boolean, granted or denied"))
	must.Succeed(t, s.Idle(t.Context()))
	h := profiles.New(s.Backends.ForProfiles())
	functiontest.Check(t, h,
		functiontest.Ask("recommendation", "GET", "/1/explain/kim", "", 200, `"accepted":2`),
		functiontest.Ask("recommendation", "GET", "/1/explain/lee", "", 200, `"accepted":1`),
		functiontest.Ask("recommendation", "GET", "/1/profiles/max", "", 404, "No profile"),
		functiontest.Ask("deleteObject", "GET", "/1/consents/lee", "", 200, `{"name":"ads","granted":true,"asked":false}`))
	must.Succeed(t, s.Backends.Refused.Flush(t.Context()))
	functiontest.Check(t, in, functiontest.Ask("all", "GET", "/1/events/refused", "", 200, `"No purpose that the event serves is granted, or its own consent denies one":6`))
	// What a dump has is judged again where it is restored.
	_, dump := functiontest.Call(admin.New(s.Backends.ForAdmin()), "admin", "GET", "/1/dump", "")
	restored := ""
	for text := range strings.Lines(dump) {
		if strings.Contains(text, `"userToken":"kim"`) {
			restored += strings.Replace(text, `"mail":false,"ads":true`, `"ad_storage":false`, 1)
		}
	}
	functiontest.Check(t, imports.New(s.Backends.ForImports()),
		functiontest.Ask("admin", "POST", "/1/events/import?receipts=kept", strings.ReplaceAll(restored, "kim", "new"), 200, `"accepted":2,"received":0,"deleted":0,"optedOut":0,"withheld":1`),
		functiontest.Ask("admin", "POST", "/1/events/import", strings.ReplaceAll(restored, "kim", "old"), 200, `"withheld":1`))
}
