package main

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/shared/local/stack"
)

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
		counts, _, _ = strings.Cut(counts, "\n")
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
