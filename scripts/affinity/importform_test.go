package main

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/shared/event"
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

// One row of a time that cannot be, such as a database's end of all days, is a bad line.
// All others move to today.
func TestOddRowDoesNotShiftTheOthers(t *testing.T) {
	const day = 24 * time.Hour
	last := time.Date(2019, 10, 20, 12, 0, 0, 0, time.UTC)
	for name, odd := range map[string]string{
		"the end of all days": "9999-12-31 00:00:00,brand:Acme",
		"1970":                "0,brand:Acme",
		"two days ahead":      time.Now().Add(2*day).UTC().Format(time.RFC3339) + ",brand:Acme",
	} {
		t.Run(name, func(t *testing.T) {
			s := startEngine(t, stack.Options{ConfigTTL: time.Millisecond, RetentionDays: 90})
			strategy := file(t, "strategy.json", `{"eventsScoring":[{"eventName":"Seen","eventType":"view","score":1}],"facetsScoring":[{"facetName":"brand","score":1}],"personalizationImpact":50}`)
			rows := []string{"timestamp,filters,eventType,eventName,userToken"}
			for i := range 20 {
				rows = append(rows, last.Add(time.Duration(i-19)*day).Format(time.DateTime)+",brand:Acme,view,Seen,u")
			}
			events := file(t, "events.csv", append(rows, odd+",view,Seen,odd")...)
			days := int64(time.Since(last) / day)
			affinity(t, "", "import", "--strategy", strategy, events, "--shift-to-now", "--url", s.URL).
				wants(t, command.ExitLines, "events are moved by "+cli.Count(days, "day")+"\n", "imported 20 events", "events.csv:22: The timestamp ", "1 of 21 lines did not go in; all others did")
			at := last.Add(time.Duration(days) * day).UnixMilli()
			compare(t, s, []realProfile{{"u", at, map[string]map[string]float64{"brand": {"Acme": 20}}}})
		})
	}
}

// The forms of a time that the help and the documents show are those that the engine reads.
func TestTimeFormsAreShown(t *testing.T) {
	help := affinity(t, "", "import", "--help")
	help.wants(t, cli.ExitOK, "A time without a zone is UTC")
	page, err := os.ReadFile("../../functions/docs/reference/import.md")
	must(t, err)
	table := "| form | such as |\n|---|---|\n"
	for _, form := range event.TimeForms {
		table += "| " + form.Form + " | `" + strings.Join(form.Examples, "`, `") + "` |\n"
		if want := "  " + form.Form + "\n      " + strings.Join(form.Examples, ", ") + "\n"; !strings.Contains(help.out, want) {
			t.Errorf("the help of import lacks %q", want)
		}
	}
	if !strings.Contains(string(page), table+"\n") {
		t.Errorf("reference/import.md lacks the table\n%s", table)
	}
}

// The zone of the machine does not move an event, and its name is no offset.
func TestImportOfTimesInZones(t *testing.T) {
	s := startEngine(t, stack.Options{ConfigTTL: time.Millisecond})
	at := time.Now().UTC().Add(-48 * time.Hour).Truncate(time.Second)
	var rows []string
	for _, zone := range []string{"EST", "-05", "-0500", " -05:00"} {
		rows = append(rows, fmt.Sprintf("view,Seen,u,brand:Acme,%s%s", at.Add(-5*time.Hour).Format(time.DateTime), zone))
	}
	rows = append(rows, "view,Seen,u,brand:Acme,"+fmt.Sprint(at.UnixMicro()), "view,Seen,u,brand:Acme,\""+at.Format(http.TimeFormat)+"\"")
	events := file(t, "events.csv", append([]string{"eventType,eventName,userToken,filters,timestamp"}, rows...)...)
	affinity(t, "", "import", events, "--url", s.URL).wants(t, command.ExitLines, "events.csv:2: The timestamp names a time zone other than UTC: write the offset alone, such as -05:00",
		"read 6 lines: 1 imported, 4 equal to another line", "1 refused")
}

func TestImportRefusesWrongForms(t *testing.T) {
	events := file(t, "events.csv", "when,who\n")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--map", "user=who"}, `"user" is no field of an event: these are eventType, eventName, userToken`},
		{[]string{"--event", "cart=buy"}, "--event cart=buy: the type must be view, click, conversion or skip"},
		{[]string{"--archive", "--hash-tokens"}, "are not for --archive"},
		{[]string{"--delimiter", ";;"}, `--delimiter ";;": must be one character`},
	} {
		affinity(t, "", append([]string{"import", events}, c.args...)...).wants(t, cli.ExitUsage, c.want)
	}
	affinity(t, "", "import", "--shift-to-now", "-").wants(t, cli.ExitUsage, "cannot be standard input")
	s := startEngine(t, stack.Options{})
	affinity(t, "", "import", events, "--url", s.URL).wants(t, cli.ExitFailed, "events.csv: no column holds eventName or eventType", "the columns are when, who")
}
