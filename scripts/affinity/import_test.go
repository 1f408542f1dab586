package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/shared/local/stack"
)

// eventLine is a good event, different for each n.
func eventLine(n int) string {
	return fmt.Sprintf(`{"eventType":"view","eventName":"Viewed","userToken":"u%d","timestamp":%d,"objectIDs":["o1"]}`, n%7, 1_600_000_000_000+n)
}

func eventLines(n int) []string {
	lines := make([]string, n)
	for i := range lines {
		lines[i] = eventLine(i)
	}
	return lines
}

func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	must(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

func TestImportEvents(t *testing.T) {
	t.Parallel()
	engine := newFakeEngine(t)
	lines := eventLines(9000)
	lines[16] = `{"eventName":"Viewed","timestamp":5}` // line 17
	lines[4000] = ""
	lines[4999] = "  "
	lines[5000] = `not JSON`
	lines[8999] = `{"userToken":"u"}`
	path := write(t, "events.ndjson.gz", zipped(t, "\ufeff"+strings.Join(lines, "\r\n"))) // no end of line at the end

	r := affinity(t, "", "import", "--url", engine.URL, path)
	r.wants(t, command.ExitLines, "imported 8995 events", "3 of 8998 lines did not go in; all others did", "events: read 8998 lines: 8995 imported, 3 refused",
		path+":17: The userToken field is required\n", path+":5001: Invalid payload\n", path+":9000: EventName is required\n")
	if first, last := strings.Index(r.err, ":17:"), strings.Index(r.err, ":9000:"); first > last {
		t.Error("bad lines are not printed in the order of the file")
	}
	if len(engine.events) != 8995 {
		t.Errorf("the engine holds %d events, want 8995", len(engine.events))
	}
	for _, n := range engine.imports {
		if n > 2000 {
			t.Errorf("a request had %d lines, want at most 2000", n)
		}
	}
	if len(engine.imports) != 5 {
		t.Errorf("%d requests, want 5", len(engine.imports))
	}

	affinity(t, "", "import", "--url", engine.URL, path).wants(t, command.ExitLines)
	if len(engine.events) != 8995 {
		t.Errorf("imported again, the engine holds %d events, want 8995", len(engine.events))
	}
}

func TestImportIndex(t *testing.T) {
	t.Parallel()
	named := strings.Replace(eventLine(1), "{", `{"index":"shoes",`, 1)
	cases := []struct {
		name, event string
		args        []string
		want        string // index of the events and of the objects
	}{
		{"default", eventLine(1), nil, "products"},
		{"of the first event", named, nil, "shoes"},
		{"given", eventLine(1), []string{"--index", "a b/c"}, "a b/c"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			engine := newFakeEngine(t)
			args := append([]string{"import", "-", "--url", engine.URL, "--objects", file(t, "objects.ndjson", `{"objectID":"o1","brand":"x"}`)}, c.args...)
			affinity(t, c.event, args...).wants(t, cli.ExitOK, "imported 1 event and 1 object")
			if len(engine.objects[c.want]) != 1 {
				t.Errorf("objects lie in %v, want them in %q", engine.objects, c.want)
			}
			for _, event := range engine.events {
				if event.Index != c.want {
					t.Errorf("an event is of index %q, want %q", event.Index, c.want)
				}
			}
		})
	}
}

func TestImportTriesAgain(t *testing.T) {
	t.Parallel()
	cases := map[string][]func(http.ResponseWriter, *http.Request){
		"503":             {refusing(503)},
		"429 then 500":    {refusing(429), refusing(500)},
		"connection lost": {refusing(503), cutting, cutting},
	}
	for name, failures := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			engine := newFakeEngine(t)
			engine.failures = failures
			affinity(t, strings.Join(eventLines(4100), "\n"), "import", "--url", engine.URL, "-").
				wants(t, cli.ExitOK, "imported 4100 events", "trying again in")
			if len(engine.events) != 4100 {
				t.Errorf("the engine holds %d events, want 4100", len(engine.events))
			}
		})
	}
}

func TestImportGivesUp(t *testing.T) {
	t.Parallel()
	engine := newFakeEngine(t)
	for range 10_000 {
		engine.failures = append(engine.failures, refusing(503))
	}
	affinity(t, eventLine(1), "import", "--url", engine.URL, "--retry-for", "20ms", "-").
		wants(t, cli.ExitFailed, "gave up after trying again for 20ms", "503", "run the same command again to resume")
}

func TestImportRefused(t *testing.T) {
	t.Parallel()
	for status, advice := range map[int]string{401: "give --app and --key", 403: "give --key a key that has the permission", 404: "404 Not Found"} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			engine := newFakeEngine(t)
			engine.failures = append(engine.failures, refusing(status))
			affinity(t, eventLine(1), "import", "--url", engine.URL, "-").wants(t, cli.ExitFailed, advice)
		})
	}
}

func TestImportOfAStrangeAnswer(t *testing.T) {
	t.Parallel()
	engine := newFakeEngine(t)
	engine.failures = append(engine.failures, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") })
	affinity(t, eventLine(1), "import", "--url", engine.URL, "-").wants(t, cli.ExitFailed, "not what an Affinity engine sends")
}

func TestImportSplitsTooLargeRequests(t *testing.T) {
	t.Parallel()
	engine := newFakeEngine(t)
	engine.maxBody = 10_000
	lines := eventLines(1500)
	lines[700] = strings.Replace(lines[700], `"u0"`, `"`+strings.Repeat("u", 20_000)+`"`, 1)
	lines[900] = `{"eventName":"Viewed"}`
	affinity(t, strings.Join(lines, "\n"), "import", "--url", engine.URL, "-").
		wants(t, command.ExitLines, "imported 1498 events", "stdin:701: 413", "stdin:901: The userToken field is required")
}

func TestImportSkipsTooLongLine(t *testing.T) {
	t.Parallel()
	engine := newFakeEngine(t)
	long := `{"userToken":"u","eventName":"` + strings.Repeat("n", 8_000_000) + `"}`
	affinity(t, strings.Join([]string{eventLine(1), long, eventLine(2)}, "\n"), "import", "--url", engine.URL, "-").
		wants(t, command.ExitLines, "imported 2 events", "stdin:2: the line is longer than")
}

func TestImportShowsTheFirstBadLines(t *testing.T) {
	t.Parallel()
	engine := newFakeEngine(t)
	r := affinity(t, strings.Repeat("{}\n", 30), "import", "--url", engine.URL, "-")
	r.wants(t, command.ExitLines, "imported 0 events", "none of 30 lines went in (the first 20 are shown above)")
	if n := strings.Count(r.err, "stdin:"); n != 20 {
		t.Errorf("showed %d bad lines, want 20", n)
	}
}

func TestImportOfADamagedFile(t *testing.T) {
	t.Parallel()
	engine := newFakeEngine(t)
	whole := zipped(t, strings.Join(eventLines(20_000), "\n"))
	path := write(t, "cut.gz", whole[:len(whole)/2])
	affinity(t, "", "import", "--url", engine.URL, path).wants(t, cli.ExitFailed, "is it damaged or cut short?", "events went in before that")
	if len(engine.events) == 0 {
		t.Error("the readable part was not imported")
	}
	checked := affinity(t, "", "import", "--check", path)
	checked.wants(t, cli.ExitFailed, "is it damaged or cut short?")
	if strings.Contains(checked.err, "went in") {
		t.Errorf("a check says that something went in: %s", checked.err)
	}
}

func TestImportOfEventsWithoutTime(t *testing.T) {
	t.Parallel()
	engine := newFakeEngine(t)
	affinity(t, `{"userToken":"u","eventName":"n"}`, "import", "--url", engine.URL, "-").
		wants(t, cli.ExitOK, "warning: without a timestamp: 1 event;", "counts them again")
}

func TestImportOfNothing(t *testing.T) {
	t.Parallel()
	affinity(t, "", "import", "--url", newFakeEngine(t).URL, "-").wants(t, cli.ExitOK, "imported 0 events")
}

func TestImportInterrupted(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	engine := newFakeEngine(t)
	engine.failures = append(engine.failures, func(w http.ResponseWriter, _ *http.Request) {
		stop()
		refuse(w, 503, "busy")
	})
	affinityWith(t, ctx, eventLine(1), func(*program) {}, "import", "--url", engine.URL, "-").wants(t, cli.ExitFailed, "interrupted")
}

func TestImportObjects(t *testing.T) {
	t.Parallel()
	engine := newFakeEngine(t)
	var lines []string
	for i := range 2500 {
		lines = append(lines, fmt.Sprintf(`{"objectID":"o%d","n":%d}`, i, i))
	}
	lines[9] = `{"objectID":"o9","bad":true}`
	lines[1700] = `{"objectID":"o1700","bad":true}`
	lines[20] = `{"name":"no id"}`
	lines[30] = `[{"objectID":"a"}]`
	lines[40] = `{"objectID":`
	lines = append(lines, `{"objectID":"o1","n":"the later one"}`)
	path := write(t, "objects.ndjson.gz", zipped(t, strings.Join(lines, "\n")))
	events := file(t, "events.ndjson", eventLine(1))
	affinity(t, "", "import", "--url", engine.URL, "--objects", path, events).wants(t, command.ExitLines, "and 2496 objects", "objects: read 2501 lines: 2495 imported, 1 with the objectID of another line, of which the last one stays, 5 refused",
		path+":10: 422 the record is not good", path+":1701: 422", path+":21: objectID is missing", path+":31: a JSON array",
		path+":41: not a JSON object", `objects go to the index "products"`)
	if got := len(engine.objects["products"]); got != 2495 {
		t.Errorf("the engine holds %d objects, want 2495", got)
	}
	if got := string(engine.objects["products"]["o1"]); !strings.Contains(got, "the later one") {
		t.Errorf("of two objects with one id the engine holds %s", got)
	}
}

func TestImportObjectsFails(t *testing.T) {
	t.Parallel()
	engine := newFakeEngine(t)
	engine.failures = append(engine.failures, refusing(403))
	objects := file(t, "objects.ndjson", `{"objectID":"a"}`)
	affinity(t, eventLine(1), "import", "--url", engine.URL, "--objects", objects, "-").wants(t, cli.ExitFailed, "no events went in")
	if len(engine.events) > 0 {
		t.Error("events went in although their objects did not")
	}
}

func TestImportStrategy(t *testing.T) {
	t.Parallel()
	cases := []struct{ name, file, want, says string }{
		{"as it is", `{"eventsScoring":[],"facetsScoring":[],"personalizationImpact":7}`, `7`, ""},
		{"without impact", `{"eventsScoring":[],"facetsScoring":[]}`, `50`, "it is sent with 50"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			engine := newFakeEngine(t)
			engine.failures = append(engine.failures, refusing(503))
			affinity(t, eventLine(1), "import", "--url", engine.URL, "--strategy", file(t, "s.json", c.file), "-").wants(t, cli.ExitOK, c.says)
			var got map[string]json.RawMessage
			if err := json.Unmarshal(engine.strategy, &got); err != nil || string(got["personalizationImpact"]) != c.want {
				t.Errorf("the engine was given %s (%v), want an impact of %s", engine.strategy, err, c.want)
			}
		})
	}
}

// A silent pipe does not keep the command from ending.
func TestImportEndsWithBlockedInput(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]string{"at the first line": "", "later": strings.Join(eventLines(2001), "\n") + "\n"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			engine := newFakeEngine(t)
			engine.failures = append(engine.failures, refusing(401))
			in, feed := io.Pipe()
			go func() {
				_, _ = io.WriteString(feed, after)
				if after == "" {
					stop()
				}
			}()
			r := affinityWith(t, ctx, "", func(tl *program) { tl.In = in }, "import", "--url", engine.URL, "-")
			r.wants(t, cli.ExitFailed)
		})
	}
}

// Lines that are equal in all fields are one event, and the command says so. An eventId
// tells them apart.
func TestEqualLinesAreCounted(t *testing.T) {
	t.Parallel()
	s := startEngine(t, stack.Options{RetentionDays: 0})
	line := func(more string) string {
		return `{"eventType":"view","eventName":"Seen","userToken":"ann","index":"i","filters":["color:Red"],"timestamp":1795175000000` + more + "}\n"
	}
	text := line("") + line("") + line(`,"unread":1`) + line(`,"eventId":"a"`) + line(`,"eventId":"b"`) + line(`,"eventId":"b"`)
	path := file(t, "events.ndjson", text)
	const want = "events: read 6 lines: 3 imported, 3 equal to another line and counted once (an eventId makes each count), 0 refused"
	affinity(t, "", "import", "--url", s.URL, path).wants(t, cli.ExitOK, want)
	affinity(t, "", "import", "--url", s.URL, path).wants(t, cli.ExitOK, want)
	affinity(t, "", "export", "ann", "--url", s.URL).wants(t, cli.ExitOK, `{"exportEnd":{"events":3,"faults":0}}`)
	csv := file(t, "events.csv", "event_type,event_name,user_token,filters,timestamp,event_id\n"+
		strings.Repeat("view,Seen,bob,color:Red,1795175000,x\n", 2)+"view,Seen,bob,color:Red,1795175000,y\n")
	affinity(t, "", "import", "--url", s.URL, "--index", "i", csv).wants(t, cli.ExitOK, "imported 2 events", "read 3 lines: 2 imported, 1 equal")
	affinity(t, "", "export", "bob", "--url", s.URL).wants(t, cli.ExitOK, `{"exportEnd":{"events":2,"faults":0}}`)
}

// A check prints what an import would refuse, ends as it would, and sends nothing.
func TestCheckSendsNothing(t *testing.T) {
	t.Parallel()
	engine := newFakeEngine(t)
	events := file(t, "events.csv", "eventType,eventName,userToken,filters,timestamp",
		"view,V,r0,color:Red,1795175000000", `view,V,r1,"color:Red,1795175000000`, "view,V,r2,color:Caf\xe9,1795175000000", "view,V,r 3,color:Red,1795175000000",
		"view,V,r0,color:Red,1795175000000", "", "view,V,r4,color:Red")
	objects := file(t, "objects.ndjson", `{"objectID":"a"}`, `{"objectID":"a","n":1}`, `{"n":"Caf`+"\xe9"+`"}`, `{"objectID":7}`)
	strategy := file(t, "s.json", `{"eventsScoring":[],"facetsScoring":[]}`)
	bad := []string{events + ":3: a quote begins cell 4 of the row, and no quote ends it", events + ":4: not valid UTF-8: it is probably WINDOWS-1252, which `iconv -f",
		events + ":5: UserToken must contain only", events + ":8: the row has 4 cells, and the line of names has 5"}
	affinity(t, "", "import", "--check", "--url", engine.URL, "--strategy", strategy, "--objects", objects, events).wants(t, command.ExitLines, append(bad,
		"checked the files: nothing was sent", "objects: read 4 lines: 2 can go in, 1 with the objectID of another line, of which the last one stays, 1 refused",
		"events: read 6 lines: 1 can go in, 1 equal to another line and counted once (an eventId makes each count), 4 refused",
		"5 of 10 lines would not go in; all others would")...)
	affinity(t, "", "catalog", "import", "--check", "--url", engine.URL, objects).wants(t, command.ExitLines, objects+":3: not valid UTF-8",
		"read 4 lines: 2 can go in, 1 with the objectID", "1 of 4 lines would not go in")
	affinity(t, "", "import", "--check", "--url", engine.URL, "--objects", objects).wants(t, command.ExitLines, "1 of 4 lines would not go in")
	affinity(t, "", "import", "--check", "--url", "http://127.0.0.1:1", "--strategy", file(t, "bad.json", `{"eventsScoring":[{}]}`), events).wants(t, cli.ExitFailed, "the strategy: ")
	affinity(t, strings.Repeat("{}\n", 30), "import", "--check", "-").wants(t, command.ExitLines, "stdin:30: ", "none of 30 lines would go in")
	affinity(t, eventLine(1), "import", "--check", "-").wants(t, cli.ExitOK, "events: read 1 line: 1 can go in, 0 refused")
	if len(engine.imports)+len(engine.objects["products"]) > 0 {
		t.Errorf("the engine was asked for %d imports and %d objects", len(engine.imports), len(engine.objects["products"]))
	}
}

// Archives and tables that are not text are named, and nothing is said to have gone in.
func TestImportOfOtherFormats(t *testing.T) {
	t.Parallel()
	path := write(t, "events.csv.zip", "PK\x03\x04\x14\x00")
	affinity(t, "", "import", "--url", newFakeEngine(t).URL, path).wants(t, cli.ExitFailed, path+": the file is a zip archive or an Excel workbook: unpack it")
	affinity(t, "", "catalog", "import", "--check", path).wants(t, cli.ExitFailed, "zip archive")
}

// UTF-16 with a mark is what some programs write as text.
func TestImportOfUTF16(t *testing.T) {
	t.Parallel()
	engine := newFakeEngine(t)
	var text strings.Builder
	text.WriteString("\xff\xfe")
	for _, unit := range utf16.Encode([]rune("event_type,event_name,user_token,filters,timestamp\r\nview,V,u,brand:Café 😀,1795175000000\r\n")) {
		text.Write(binary.LittleEndian.AppendUint16(nil, unit))
	}
	affinity(t, "", "import", "--url", engine.URL, write(t, "events.csv", text.String())).wants(t, cli.ExitOK, "read 1 line: 1 imported, 0 refused")
	for _, event := range engine.events {
		if !slices.Equal(event.Filters, []string{"brand:Café 😀"}) {
			t.Errorf("the filters are %q", event.Filters)
		}
	}
}

// A check refuses and counts what an engine does.
func TestCheckAgreesWithTheEngine(t *testing.T) {
	t.Parallel()
	s := startEngine(t, stack.Options{RetentionDays: 0})
	event := func(more string) string {
		return `{"eventType":"view","eventName":"Seen","userToken":"ann","filters":["color:Red"],"timestamp":1795175000000` + more + "}"
	}
	var products []string
	for i := range 45 {
		products = append(products, fmt.Sprintf(`{"sku":"%d"}`, i))
	}
	path := file(t, "events.ndjson", event(""), event(""), event(`,"eventId":"a"`), event(`,"positions":[1]`), "x", "[]", "{}", `"text"`, event(",")+"}", event(`,"index":""`), event(`,"index":"`+strings.Repeat("i", 600)+`"`),
		`{"eventType":"view","eventName":"Caf`+"\xe9"+`"}`, strings.Replace(event(""), "view", "instantsearch", 1), strings.Replace(event(""), "1795175000000", "99999999999999", 1),
		strings.Replace(event(""), "1795175000000", "-1", 1), strings.Replace(event(""), "1795175000000", "1.5", 1), strings.Replace(event(""), "ann", "a n", 1), `{"exportedUser":{"app":"demo","userToken":"ann"}}`, `{"exportEnd":{"events":3,"faults":0}}`,
		`{"exportedEvent":{"time":1795175000000,"id":"4hLwDk033U4","receivedAt":"2026-11-27T13:31:05.024Z","index":"i","filters":[["color","Red",1]],"event":`+event("")+`}}`,
		`{"exportedEvent":{"time":-1,"id":"4hLwDk033U4","filters":[],"event":`+event("")+`}}`, `{"exportedEvent":7}`, `{"exportedDeletion":{"userToken":"ann"}}`, `{"exportCut":{"message":"m"}}`, `{"exportedApp":{"app":"demo"}}`,
		`{"type":"track","event":"Order Completed","userId":"u","timestamp":"2026-11-20T10:00:00Z","properties":{"products":[`+strings.Join(products, ",")+`]}}`,
		`{"type":"track","event":"Order Completed","userId":"a@b","timestamp":"2026-11-20T10:00:00Z","properties":{"products":[`+strings.Join(products, ",")+`]}}`)
	outcome := func(args ...string) (string, string) {
		r := affinity(t, "", append([]string{"import", path, "--index", "i"}, args...)...)
		var bad []string
		for line := range strings.Lines(r.err) {
			if strings.HasPrefix(line, path) {
				bad = append(bad, line)
			}
		}
		_, counts, _ := strings.Cut(r.out, "events: ")
		return strings.Join(bad, ""), strings.Replace(counts, "can go in", "imported", 1)
	}
	checked, counted := outcome("--check")
	bad, counts := outcome("--url", s.URL)
	if checked != bad || bad == "" {
		t.Errorf("a check refuses\n%sthe engine\n%s", checked, bad)
	}
	if counted != counts || counts == "" {
		t.Errorf("a check counts %q, an import %q", counted, counts)
	}
}
