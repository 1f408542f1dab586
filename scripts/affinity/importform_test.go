package main

import (
	"testing"
	"time"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/local/stack"
)

// A shop's CSV of years ago becomes profiles of today, and so do the same events as a list
// and as track calls; imported again they count once.
func TestImportOfOtherForms(t *testing.T) {
	const day = 24 * time.Hour
	strategy := `{"eventsScoring":[{"eventName":"view","eventType":"view","score":1},{"eventName":"cart","eventType":"click","score":10},` +
		`{"eventName":"Product Viewed","eventType":"view","score":1},{"eventName":"Product Added","eventType":"click","score":10}],` +
		`"facetsScoring":[{"facetName":"brand","score":1}],"personalizationImpact":50}`
	objects := file(t, "objects.json", `[{"objectID":"1","brand":"Acme"},`, `{"objectID":"2","brand":"Zeta"}]`)
	for name, c := range map[string]struct {
		file, text string
		flags      []string
	}{
		"CSV": {"2019-Oct.csv", "event_time,event_type,product_id,user_id\n2019-10-01 00:00:00 UTC,view,1,u\n2019-10-03 10:00:00 UTC,cart,2,u\n",
			[]string{"--map", "timestamp=event_time,objectIDs=product_id,userToken=user_id", "--event", "cart=click"}},
		"a list": {"events.json", `[{"event_type":"view","event_name":"view","user_token":"u","object_ids":["1"],"timestamp":"2019-10-01T00:00:00Z"},` +
			`{"event_type":"cart","user_token":"u","object_id":"2","timestamp":"2019-10-03T10:00:00Z"}]`, []string{"--event", "cart=click"}},
		"track calls": {"track.ndjson", `{"type":"track","event":"Product Viewed","userId":"u","properties":{"product_id":"1"},"timestamp":"2019-10-01T00:00:00Z"}` + "\n" +
			`{"type":"track","event":"Product Added","userId":"u","properties":{"product_id":"2"},"timestamp":"2019-10-03T10:00:00Z"}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := startEngine(t, stack.Options{ConfigTTL: time.Millisecond, RetentionDays: 90})
			affinity(t, "", "strategy", "set", file(t, "strategy.json", strategy), "--url", s.URL).wants(t, cli.ExitOK)
			events := file(t, c.file, c.text)
			run := func(more ...string) ran {
				args := append([]string{"import", "--objects", objects, events, "--url", s.URL}, c.flags...)
				return affinity(t, "", append(args, more...)...)
			}
			run().wants(t, cli.ExitOK, "imported 2 events and 2 objects", "older than the app's retention: 2 events", "--shift-to-now moves old data")
			last := time.Date(2019, 10, 3, 10, 0, 0, 0, time.UTC)
			days := int64(time.Since(last) / day)
			for range 2 {
				run("--shift-to-now").wants(t, cli.ExitOK, "events are moved by "+cli.Count(days, "day")+"\n", "imported 2 events")
			}
			at := last.Add(time.Duration(days) * day).UnixMilli()
			compare(t, s, []realProfile{{"u", at, map[string]map[string]float64{"brand": {"Acme": 1, "Zeta": 10}}}})
		})
	}
}

func TestImportRefusesWrongForms(t *testing.T) {
	events := file(t, "events.csv", "when,who\n")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--map", "user=who"}, `"user" is no field of an event: these are eventType, eventName, userToken`},
		{[]string{"--event", "cart=buy"}, "--event cart=buy: the type must be view, click or conversion"},
		{[]string{"--archive", "--csv"}, "are not for --archive"},
	} {
		affinity(t, "", append([]string{"import", events}, c.args...)...).wants(t, cli.ExitUsage, c.want)
	}
	affinity(t, "", "import", "--shift-to-now", "-").wants(t, cli.ExitUsage, "cannot be standard input")
	s := startEngine(t, stack.Options{})
	affinity(t, "", "import", events, "--url", s.URL).wants(t, cli.ExitFailed, "events.csv: no column holds eventName or eventType", "the columns are when, who")
}
