package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/stack"
)

// Files as programs write them go in with one command, and profiles count them.
func TestImportOfFilesAsTheyAre(t *testing.T) {
	s := startEngine(t, stack.Options{RetentionDays: 0, ConfigTTL: time.Millisecond})
	affinity(t, "", "strategy", "set", "--url", s.URL, file(t, "s.json", `{"eventsScoring":[{"eventName":"V","eventType":"view","score":10},{"eventName":"view_item","eventType":"view","score":10},`+
		`{"eventName":"purchase","eventType":"conversion","score":100}],"facetsScoring":[{"facetName":"brand","score":1}],"personalizationImpact":50}`)).wants(t, cli.ExitOK)
	affinity(t, "", "catalog", "import", "--url", s.URL, file(t, "o.csv", "objectID;brand", "99;Acme", "SKU_1;Zeta")).wants(t, cli.ExitOK, "imported 2 objects")
	const ga4 = `{"event_timestamp":"%d","event_name":"%s","user_pseudo_id":"1234567890.1609459200","items":[%s]}`
	track := `{"type":"track","event":"V","userId":"%s","timestamp":1795175000000,"properties":{"event_type":"view","product_id":99}}`
	for name, c := range map[string]struct {
		file, text string
		args       []string
		says       string
		user       string
		want       map[string]float64
	}{
		"semicolons":             {"excel.csv", "\ufeffeventType;eventName;userToken;objectIDs;timestamp\r\nview;V;semi;99;2026-11-20 10:00:00\r\n", nil, "imported 1 event", "semi", map[string]float64{"Acme": 10}},
		"tabs":                   {"ratings.dat", "user\titem\taction\tat\ntabs\t99\tview_item\t1795175000\n", []string{"--map", "userToken=user,objectIDs=item,eventName=action,timestamp=at", "--event", "view_item=view"}, "imported 1 event", "tabs", map[string]float64{"Acme": 10}},
		"numbers as ids in JSON": {"rows.json", `{"event_type":"view","event_name":"V","user_token":4712,"object_id":99,"timestamp":1795175000000}`, nil, "imported 1 event", "4712", map[string]float64{"Acme": 10}},
		"numbers of pandas":      {"frame.csv", "event_type,event_name,user_token,object_id,timestamp\nview,V,71.0,99.0,1795175000\n", nil, "imported 1 event", "71", map[string]float64{"Acme": 10}},
		"GA4 rows": {"ga4.json", fmt.Sprintf(ga4+"\n"+ga4+"\n"+ga4+"\n", 1795175000000123, "view_item", `{"item_id":"SKU_1","item_brand":"x"},{"item_id":"99"}`, 1795175000000124, "page_view", "", 1795175000000125, "purchase", `{"item_id":"SKU_1"}`),
			[]string{"--map", "userToken=user_pseudo_id,timestamp=event_timestamp,objectIDs=items[].item_id", "--hash-tokens", "--event", "view_item=view,purchase=conversion", "--event", "*=skip"},
			"events: read 3 lines: 2 imported, 1 skipped, 0 refused", event.HashToken("1234567890.1609459200"), map[string]float64{"Zeta": 110, "Acme": 10}},
		"tokens that are none": {"crm.csv", "event_type,event_name,user_token,object_id,timestamp\nview,V,ann@example.com,99,1795175000\nview,V,auth0|5f7c,99,1795175000\nview,V,gid://shopify/Customer/1,99,1795175000\n",
			[]string{"--hash-tokens"}, "imported 3 events", event.HashToken("ann@example.com"), map[string]float64{"Acme": 10}},
		"track calls of such users": {"calls.json", fmt.Sprintf(track, "us-east-1:0b1a"), []string{"--hash-tokens"}, "imported 1 event", event.HashToken("us-east-1:0b1a"), map[string]float64{"Acme": 10}},
		"output of jq":              {"pretty.json", "{\n  \"eventType\": \"view\",\n  \"eventName\": \"V\",\n  \"userToken\": \"jq\",\n  \"objectIDs\": [\n    \"99\"\n  ],\n  \"timestamp\": 1795175000000\n}\n", nil, "read 1 line: 1 imported", "jq", map[string]float64{"Acme": 10}},
	} {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"import", "--url", s.URL, write(t, c.file, c.text)}, c.args...)
			affinity(t, "", args...).wants(t, cli.ExitOK, c.says)
			var profile struct {
				Affinities []struct {
					Value string
					Score float64
				}
			}
			r := affinity(t, "", "profile", c.user, "--url", s.URL, "--json")
			r.wants(t, cli.ExitOK)
			must(t, json.Unmarshal([]byte(r.out), &profile))
			got := map[string]float64{}
			for _, a := range profile.Affinities {
				got[a.Value] = a.Score
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("affinities (-want +got):\n%s", diff)
			}
		})
	}
}

// The refusal of an id that is no token names the flag that takes it, and a kind of events
// without a type is named once with a guess.
func TestImportSaysWhatWouldGoIn(t *testing.T) {
	t.Parallel()
	rows := []string{"event,user,item,timestamp"}
	for i := range 30 {
		rows = append(rows, fmt.Sprintf("view,u%d@example.com,1,1795175000", i), fmt.Sprintf("add_to_cart,u%d,1,1795175000", i), fmt.Sprintf("scroll,u%d,,1795175000", i))
	}
	path := file(t, "events.csv", rows...)
	args := []string{"--map", "eventName=event,userToken=user,objectIDs=item"}
	r := affinity(t, "", append([]string{"import", "--check", path}, args...)...)
	r.wants(t, command.ExitLines, path+":2: UserToken must contain only", "(--hash-tokens makes a token of any id)",
		path+`:3: "add_to_cart" is no type of event (30 lines): say which it is, such as --event add_to_cart=click`,
		path+`:4: "scroll" is no type of event (30 lines without objects and filters): --event scroll=skip leaves them out`, "none of 90 lines would go in")
	if n := strings.Count(r.err, path+":"); n != 32 {
		t.Errorf("%d lines are printed, want 30 and 2: %s", n, r.err)
	}
	args = append(args, "--event", "add_to_cart=click", "--event", "scroll=skip", "--hash-tokens")
	affinity(t, "", append([]string{"import", "--check", path}, args...)...).wants(t, cli.ExitOK, "read 90 lines: 60 can go in, 30 skipped, 0 refused")
	named := file(t, "named.csv", "event,user,item,index", "scroll,u,1,shop", "view,u,1,shop")
	catalog := file(t, "catalog.csv", "Artikel;brand", "1;Acme")
	affinity(t, "", "import", "--check", "--objects", catalog, named, "--map", "eventName=event,userToken=user,objectIDs=item,objectID=Artikel", "--event", "scroll=skip").
		wants(t, cli.ExitOK, `objects go to the index "shop"`, "objects: read 1 line: 1 can go in")
	mostly := file(t, "mostly.csv", "event,user,item", "a b,u,1", "scroll,u,1")
	affinity(t, "", "import", "--check", mostly, "--map", "eventName=event,userToken=user,objectIDs=item", "--event", "scroll=skip").
		wants(t, command.ExitLines, "--event 'a b=click'", "none of 2 lines would go in")
	objects := file(t, "objects.csv", "Artikel;brand", "1;Acme")
	args = []string{"backtest", "--objects", objects, "--strategy", file(t, "s.json", `{"eventsScoring":[{"eventName":"V","eventType":"view","score":10}],"facetsScoring":[{"facetName":"brand","score":1}],"personalizationImpact":50}`), path}
	affinity(t, "", append(args, "--map", "eventName=event,userToken=user,objectIDs=item,objectID=Artikel")...).wants(t, cli.ExitFailed, path+`:3: "add_to_cart" is no type of event (30 lines)`, "90 of 91 lines cannot be read (the first 20 are shown above)")
}

// An import names the objects that the catalog does not hold, and where they are.
func TestImportNamesUnknownObjects(t *testing.T) {
	s := startEngine(t, stack.Options{RetentionDays: 0, ConfigTTL: time.Millisecond})
	lines := func(n, objects int) string {
		var text strings.Builder
		for i := range n {
			fmt.Fprintf(&text, `{"eventType":"view","eventName":"V","userToken":"u","objectIDs":["s%d"],"timestamp":%d}`+"\n", i%objects+1, 1_795_175_000_000+i)
		}
		return text.String()
	}
	run := func(stdin string, code int, want string, args ...string) {
		t.Helper()
		r := affinity(t, stdin, append([]string{"import", "--url", s.URL, "-"}, args...)...)
		r.wants(t, code, want)
		if want == "" && strings.Contains(r.err, "does not hold") {
			t.Errorf("%s", r.err)
		}
	}
	affinity(t, "", "catalog", "import", "--url", s.URL, "--index", "shop", file(t, "o.csv", "objectID,brand", "s2,Acme")).wants(t, cli.ExitOK)
	run(lines(1, 1), cli.ExitOK, "warning: 1 event names 1 object that index products does not hold (such as s1). `affinity catalog import --index products` and then `affinity reenrich` give them filters\n")
	run(lines(50, 2), cli.ExitOK, "50 events name 2 objects that index products does not hold (such as s2; index shop holds it).")
	run(lines(4500, 150), cli.ExitOK, "4500 events name more than 100 objects that index products does not hold (such as s2; index shop holds it).")
	run(lines(50, 2), cli.ExitOK, "25 events name 1 object that index shop does not hold (such as s1).", "--index", "shop")
	affinity(t, "", "catalog", "import", "--url", s.URL, "--index", "shop", file(t, "o.csv", "objectID,brand", "s1,Acme")).wants(t, cli.ExitOK)
	run(lines(50, 2), cli.ExitOK, "", "--index", "shop")
}

// The summary as JSON accounts for every line.
func TestImportSummaryAsJSON(t *testing.T) {
	t.Parallel()
	s := startEngine(t, stack.Options{RetentionDays: 30, ConfigTTL: time.Millisecond})
	affinity(t, "", "index", "set", "products", "--url", s.URL, file(t, "settings.json", `{"attributesForFaceting":["price","note"],"numericBands":{"price":[0,50]}}`)).wants(t, cli.ExitOK)
	now := time.Now().UnixMilli()
	objects := file(t, "o.csv", "objectID;price;note", "a;59,90;x", "b;12,50;"+strings.Repeat("y", 1001), "a;1.299,00;x", ";1,50;x", "c;9,99;", "d;8,99;", "e;7,99;", "f;6,99;", "g;5,99;", "h;auf Anfrage;")
	events := file(t, "e.csv", "event,user,item,timestamp", fmt.Sprintf("view,u,a,%d", now-1000), fmt.Sprintf("view,u,a,%d", now-1000), "view,u,zz,1600000000", "cart,u,a,1600000000", "scroll,u,a,1600000000", "view,u v,a,1600000000", "view,u,a,")
	r := affinity(t, "", "import", "-o", "json", "--url", s.URL, "--objects", objects, "--map", "eventName=event,userToken=user,objectIDs=item", "--event", "scroll=skip", events)
	r.wants(t, command.ExitLines, `column "price": decimal commas are read, such as 59,90`, `column "price": 1 cell is no number and stays a text`, "in no numeric band of price, because they are no numbers: 1 value",
		"without filters of note, because a value has over 1,000 bytes or there are over 1,000 values: 1 object")
	var got map[string]any
	must(t, json.Unmarshal([]byte(r.out), &got))
	if got["seconds"] == 0.0 {
		t.Error("the import took no time")
	}
	delete(got, "seconds")
	if end, _ := got["end"].(map[string]any); end["waiting"] != false || end["recompute"].(map[string]any)["foldedUsers"] != 1.0 || end["crowd"].(map[string]any)["state"] != "done" {
		t.Errorf("the end of the import is %v", got["end"])
	}
	delete(got, "end")
	var want map[string]any
	must(t, json.Unmarshal([]byte(`{"checked":false,
		"objects":{"index":"products","read":10,"imported":8,"equal":1,"skipped":0,"refused":1,"notSent":0,"notNumbers":{"price":1},"dropped":{"note":1},
			"notes":["column \"price\": decimal commas are read, such as 59,90","column \"price\": 1 cell is no number and stays a text, such as \"auf Anfrage\" in line 11"]},
		"events":{"read":7,"imported":3,"equal":1,"skipped":1,"refused":2,"notSent":0,"received":1,"deleted":0,"optedOut":0,"outsideRetention":1,"present":0,
			"unknownObjects":[{"index":"products","events":1,"objectIDs":["zz"]}],"kinds":[{"name":"cart","lines":1,"guess":"click"}]}}`), &want))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("summary (-want +got):\n%s", diff)
	}
	affinity(t, "", "import", "--check", "--json", events, "--map", "eventName=event,userToken=user,objectIDs=item").wants(t, command.ExitLines, `"checked": true`, `"refused": 3`)
	affinity(t, "", "catalog", "import", "--check", "-o", "json", objects).wants(t, command.ExitLines, `"imported": 8`, `"equal": 1`)
}

func TestCatalogImportSaysWhatIsWanted(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"id;Name\n1;x\n":       "x.csv: no column holds objectID: name one with --map objectID=id; the columns are id, Name. A catalog is a table, or objects of JSON, one a line, each with an objectID",
		"nonsense\n":           "the only column is nonsense: --delimiter says what separates columns; JSON begins with { or [. A catalog is a table, or objects of JSON",
		"{\"objectID\":\n[]\n": "x.csv:1: not a JSON object, as each line of a catalog is: ",
	} {
		r := affinity(t, "", "catalog", "import", "--check", write(t, "x.csv", text))
		if r.code == cli.ExitOK || !strings.Contains(r.err, want) {
			t.Errorf("%q: %d %s", text, r.code, r.err)
		}
	}
	path := write(t, "x.csv", "Artikel #,Maß\n1,5\n")
	affinity(t, "", "catalog", "import", "--check", path).wants(t, cli.ExitFailed, "--map 'objectID=Artikel #'")
	affinity(t, "", "catalog", "import", "--check", path, "--map", "objectID=Artikel #").wants(t, cli.ExitOK, "1 can go in")
	affinity(t, "", "catalog", "import", "--check", path, "--delimiter", "ab").wants(t, cli.ExitUsage, "must be one character")
}
