package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
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
	lines[16] = `{"eventType":"view","eventName":"Viewed","timestamp":5}` // line 17
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
	lines[900] = `{"eventType":"view","eventName":"Viewed"}`
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
	affinity(t, `{"eventType":"view","userToken":"u","eventName":"n"}`, "import", "--url", engine.URL, "-").
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
