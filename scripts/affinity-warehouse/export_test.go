package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/scripts/affinity/command/transfer"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/stack"
)

// start starts an engine with an app and returns its client.
func start(t *testing.T, o stack.Options) (*stack.Stack, *client.Client) {
	t.Helper()
	o.Apps, o.RetentionDays = []stack.App{{ID: "demo", Key: "demokey"}}, 90
	s, err := stack.Start(t.Context(), o)
	must.Succeed(t, err)
	t.Cleanup(func() { must.Succeed(t, s.Close()) })
	c, err := client.New(client.Config{URL: s.URL, App: "demo", Key: "demokey"})
	must.Succeed(t, err)
	return s, c
}

// fill gives the app events of seven users by requests and imports, of whom one is deleted and two have opted out.
func fill(t *testing.T, s *stack.Stack, c *client.Client) {
	t.Helper()
	ctx := t.Context()
	do := func(_ any, err error) { t.Helper(); must.Succeed(t, err) }
	do(nil, c.Strategies().SetJSON(ctx, []byte(`{"eventsScoring":[{"eventName":"Seen","eventType":"view","score":50}],`+
		`"facetsScoring":[{"facetName":"color","score":70}],"personalizationImpact":50,"halfLives":[7]}`), client.SetOptions{}))
	do(c.Catalog().SetSettings(ctx, "shoes", api.Settings{AttributesForFaceting: []string{"color"}}))
	do(c.Segments().Save(ctx, "reds", api.SegmentCondition{Filter: "color:Red", Above: 5}, false))
	do(c.Catalog().Batch(ctx, "shoes", api.BatchAction{Action: api.ActionAddObject, Body: []byte(`{"objectID":"s1","color":"Red"}`)}))
	var imported bytes.Buffer
	sent := make([]map[string]any, 0, 70)
	for i := range 700 {
		e := map[string]any{"eventType": []string{"view", "conversion"}[i%2], "eventName": "Seen", "userToken": fmt.Sprintf("u%d", i%7),
			"index": "shoes", "objectIDs": []string{fmt.Sprint("s", i%3)}, "timestamp": time.Now().Add(-time.Duration(i) * time.Hour).UnixMilli(),
			"queryID": strings.Repeat("0f", 16)}
		if i < 70 {
			sent = append(sent, e)
			continue
		}
		text, err := json.Marshal(e)
		must.Succeed(t, err)
		imported.Write(append(text, '\n'))
	}
	do(c.Events().Import(ctx, "", imported.Bytes()))
	body, err := json.Marshal(map[string]any{"events": sent})
	must.Succeed(t, err)
	do(c.Do(ctx, "POST", "/1/events", body))
	must.Succeed(t, s.Idle(ctx))
	do(c.Profiles().Delete(ctx, "u1"))
	do(c.Profiles().OptOut(ctx, "u2", api.OptOutRequest{EventTypes: []event.Type{event.Conversion}}))
	do(c.Profiles().OptOut(ctx, "u3", api.OptOutRequest{}))
	do(c.Events().Import(ctx, "", []byte(`{"eventType":"view","eventName":"Seen","userToken":"u2","index":"shoes","filters":["color:Blue"]}`+"\n"+
		`{"eventType":"conversion","eventName":"Seen","userToken":"u2","index":"shoes","filters":["color:Blue"]}`+"\n"+
		`{"eventType":"view","eventName":"Seen","userToken":"u3","index":"shoes","filters":["color:Blue"]}`)))
	// An object that was unknown: its events are written again.
	do(c.Catalog().Batch(ctx, "shoes", api.BatchAction{Action: api.ActionAddObject, Body: []byte(`{"objectID":"s2","color":"Green"}`)}))
	job, err := c.Jobs().StartReenrichment(ctx, api.ReenrichRequest{})
	for ; err == nil && job.State != "done"; time.Sleep(20 * time.Millisecond) {
		job, err = c.Jobs().Reenrichment(ctx, job.ID)
	}
	must.Succeed(t, err)
	must.Succeed(t, s.Idle(ctx))
}

// dumped returns how many events of each user a dump has.
func dumped(t *testing.T, c *client.Client) (events map[string]int, total int) {
	t.Helper()
	events = map[string]int{}
	for cursor := ""; ; {
		var page bytes.Buffer
		last, err := c.DumpPage(t.Context(), cursor, &page)
		must.Succeed(t, err)
		for line := range bytes.Lines(page.Bytes()) {
			var l api.ExportLine
			must.Succeed(t, json.Unmarshal(line, &l))
			if l.Event != nil {
				var sent struct{ UserToken string }
				must.Succeed(t, json.Unmarshal(l.Event.Event, &sent))
				events[sent.UserToken]++
				total++
			}
		}
		if last.Next == nil {
			return events, total
		}
		cursor = last.Next.Cursor
	}
}

// tool runs affinity warehouse, which builds the program in this checkout.
func tool(t *testing.T, s *stack.Stack, args ...string) (code int, out string) {
	t.Helper()
	var text bytes.Buffer
	tl := &command.Tool{Out: &text, Err: &text, URL: s.URL, App: "demo", Key: "demokey", Output: command.TableOutput,
		Retry: client.Retry{First: time.Millisecond, Max: 4 * time.Millisecond, Total: 10 * time.Second}}
	code = tl.Execute(t.Context(), transfer.Warehouse(tl), args)
	return code, text.String()
}

// DuckDB counts in the Parquet files what a dump counts, of each user, and finds no row of a deleted person.
func TestExportAgreesWithDump(t *testing.T) {
	d := startDuckDB(t)
	t.Parallel()
	s, c := start(t, stack.Options{})
	fill(t, s, c)
	folder := filepath.Join(t.TempDir(), "it's [an] export")
	if code, out := tool(t, s, "export", "--to", folder); code != 0 || !strings.Contains(out, "events, 5 profiles and 1 segments of demo") {
		t.Fatalf("export: %d\n%s", code, out)
	}
	want, total := dumped(t, c)
	files := strings.NewReplacer("'", "''", "[", "[[]").Replace(folder) + "/%s-*.parquet"
	events, profiles, segments := fmt.Sprintf(files, "events"), fmt.Sprintf(files, "profiles"), fmt.Sprintf(files, "segments")
	if n := d.number(t, "SELECT count(*) FROM '%s'", events); n != total || total < 400 {
		t.Errorf("DuckDB counts %d events, the dump %d", n, total)
	}
	for _, row := range d.query(t, "SELECT user_token, count(*)::INT AS n FROM '%s' GROUP BY user_token", events) {
		user, n := row["user_token"].(string), int(row["n"].(float64))
		if want[user] != n || user == "u1" || user == "u3" {
			t.Errorf("DuckDB counts %d events of %s, the dump %d", n, user, want[user])
		}
		delete(want, user)
	}
	if len(want) > 0 {
		t.Errorf("no events of %v", want)
	}
	// The columns are those of BigQuery, but that Parquet has its own place for NULL.
	var columns []string
	for _, c := range readSchema(t, "event_rows.json") {
		columns = append(columns, c.Name+" "+c.duck())
	}
	var got []string
	for _, row := range d.query(t, "DESCRIBE SELECT * FROM '%s'", events) {
		text := fmt.Sprint(row["column_name"], " ", row["column_type"])
		got = append(got, strings.ReplaceAll(text, `"`, "")) // around words of SQL
	}
	if strings.Join(got, "\n") != strings.Join(columns, "\n") {
		t.Errorf("columns of the Parquet files:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(columns, "\n"))
	}
	if n := d.number(t, "SELECT count(*) FROM '%s' WHERE user_token = 'u0' AND list_contains(list_transform(filters, f -> f.facet || ':' || f.value), 'color:Green')", events); n < 20 {
		t.Errorf("%d events have the filters of the object that came later", n)
	}
	if n := d.number(t, "SELECT count(*) FROM '%s' WHERE query_id IS NULL AND (event::JSON ->> 'eventType') = 'view'", events); n != 1 {
		t.Errorf("%d events of u2 are after the opt-out, want 1", n)
	}
	// A profile has what the API answers.
	p, err := c.Profiles().Get(t.Context(), "u0", api.ProfileQuery{})
	must.Succeed(t, err)
	row := d.query(t, "SELECT affinities[1].facet AS facet, affinities[1].value AS value, affinities[1].score AS score, len(affinities)::INT AS n FROM '%s' WHERE user_token = 'u0'", profiles)[0]
	if row["facet"] != p.Affinities[0].Facet || row["value"] != p.Affinities[0].Value || int(row["n"].(float64)) != len(p.Affinities) ||
		row["score"].(float64) < p.Affinities[0].Score || row["score"].(float64) > 1.01*p.Affinities[0].Score {
		t.Errorf("the profile of u0 is %v, want %+v", row, p.Affinities)
	}
	if text := d.query(t, "SELECT * FROM '%s'", segments)[0]["condition"]; text != `{"filter":"color:Red","above":5}` {
		t.Errorf("the condition of the segment is %s", text)
	}
	// The query of the guide is one that DuckDB takes.
	guide, err := os.ReadFile("../../functions/docs/guides/warehouse.md")
	must.Succeed(t, err)
	_, query, _ := strings.Cut(string(guide), "```sql\n")
	query, _, _ = strings.Cut(query, "```")
	d.query(t, "%s", strings.ReplaceAll(query, "'shop/events-*.parquet'", "'"+events+"'"))
	verifies(t, s, c, folder)
}

// verifies checks that verify accepts a right export and refuses one that is no longer right.
func verifies(t *testing.T, s *stack.Stack, c *client.Client, folder string) {
	t.Helper()
	if code, out := tool(t, s, "export", "--to", folder); code != 1 || !strings.Contains(out, "is not empty") {
		t.Errorf("export to the same folder: %d\n%s", code, out)
	}
	// Events since the export do not count.
	_, err := c.Events().Import(t.Context(), "", []byte(`{"eventType":"view","eventName":"Seen","userToken":"u9","index":"shoes","filters":["color:Blue"]}`))
	must.Succeed(t, err)
	if code, out := tool(t, s, "verify", folder); code != 0 || !strings.Contains(out, "0 missing") || !strings.Contains(out, "1 later ones do not count") {
		t.Fatalf("verify: %d\n%s", code, out)
	}
	_, err = c.Profiles().Delete(t.Context(), "u4")
	must.Succeed(t, err)
	if code, out := tool(t, s, "verify", folder); code != 1 || !strings.Contains(out, "rows of deleted users: 101") {
		t.Errorf("verify after a deletion: %d\n%s", code, out)
	}
	parts, err := filepath.Glob(filepath.Join(filepath.Dir(folder), "*"))
	if must.Succeed(t, err); len(parts) != 1 {
		t.Errorf("beside the export there is %q", parts)
	}
	must.Succeed(t, os.Remove(filepath.Join(folder, "profiles-00000.parquet")))
	if code, out := tool(t, s, "verify", folder); code != 1 || !strings.Contains(out, "the files of profiles have 0 rows, but export.json says 5") {
		t.Errorf("verify without a file: %d\n%s", code, out)
	}
}
