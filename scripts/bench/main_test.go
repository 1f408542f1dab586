package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/cli/clitest"
	"github.com/affinityengine/affinity/scripts/bench/measure"
)

// TestMain lets the test binary be the server process that the commands start.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "serve" {
		main()
	}
	os.Exit(m.Run())
}

// bench runs a command line in process.
func bench(t *testing.T, args ...string) clitest.Result {
	t.Helper()
	return clitest.Run(t.Context(), run, "", args...)
}

// A folder of data is enough, and each method has its row.
func TestRankers(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	var objects, events strings.Builder
	for o := range 10 {
		fmt.Fprintf(&objects, `{"objectID":"o%d","brand":"b%d"}`+"\n", o, o%3)
	}
	for user := range 40 {
		for step := range 4 { // each user turns to objects that follow each other
			fmt.Fprintf(&events, `{"eventType":"click","eventName":"Seen","index":"i","userToken":"u%d","timestamp":%d,"objectIDs":["o%d"]}`+"\n",
				user, 1_700_000_000_000+step*60_000+user, (user+step)%10)
		}
	}
	for name, content := range map[string]string{"objects.ndjson": objects.String(), "events.ndjson": events.String(),
		"strategy.json": `{"eventsScoring":[{"eventName":"Seen","eventType":"click","score":10}],"facetsScoring":[{"facetName":"brand","score":10}]}`} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := bench(t, "rankers", folder, "--json")
	r.Wants(t, cli.ExitOK)
	var document struct {
		Cases, Candidates int
		Rankings          []struct {
			Name, Missing         string
			NDCG, Untouched, Gain *float64
		}
	}
	if err := json.Unmarshal([]byte(r.Out), &document); err != nil {
		t.Fatal(err)
	}
	if document.Cases != 40 || document.Candidates != 10 || len(document.Rankings) != 6 {
		t.Fatalf("%s", r.Out)
	}
	for i, row := range document.Rankings {
		if row.NDCG == nil || row.Untouched == nil || (row.Gain == nil) != (i == 0) {
			t.Errorf("row %d: %+v", i, row)
		}
	}
	if rules := document.Rankings[1]; rules.Name != "sequential rules" || *rules.NDCG < 0.99 {
		t.Errorf("rules do not find what always follows: %+v", rules)
	}
	table := bench(t, "rankers", folder)
	table.Wants(t, cli.ExitOK, "40 cases, 10 objects", "gain there over the first", "EASE")
	for _, args := range [][]string{{"rankers", t.TempDir()}, {"rankers"}, {"rankers", folder, "--at", "0"}} {
		bench(t, args...).Wants(t, cli.ExitUsage)
	}
	bench(t, "rankers", filepath.Join(folder, "nowhere")).Wants(t, cli.ExitUsage, "is no folder of data")
}

// The whole command with all readers, the server in a process of its own.
func TestRecompute(t *testing.T) {
	t.Parallel()
	const line = "recompute --users 20 --events 10 --facets 3 --values 2 --selected 2 --tail 2 --repeat 2 --readers narrow,narrow-fast,wide,wide-client,history --data= --floor --json"
	r := bench(t, strings.Fields(line)...)
	r.Wants(t, cli.ExitOK)
	if r.Err != "" {
		t.Errorf("printed progress to stderr, which is not a terminal: %s", r.Err)
	}
	var document struct {
		Machine map[string]any
		Config  map[string]any
		Sets    []struct {
			Users, Events, EventsPerUser int
			Results                      []map[string]any
		}
	}
	decoder := json.NewDecoder(strings.NewReader(r.Out))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&document); err != nil || len(document.Sets) != 1 || document.Sets[0].EventsPerUser != 10 {
		t.Fatalf("%v in %s", err, r.Out)
	}
	if _, err := decoder.Token(); err != io.EOF {
		t.Errorf("more than one document: %v", err)
	}
	hasKeys(t, document.Machine, "cpus", "goVersion", "date")
	hasKeys(t, document.Config, "facets", "values", "selected", "tail", "repeat", "workers", "inProcess")
	var names []string
	results := document.Sets[0].Results
	for i, result := range results {
		hasKeys(t, result, "reader", "writes", "eventsPerSecond", "seconds", "walls", "clientCPUSeconds", "bytesReceived", "allocations",
			"peakHeapBytes", "server", "rowsReadPerUser", "floorSeconds", "floorCPUSeconds", "floorBytesReceived", "cpuToFloor", "speedupToNarrow", "cpuSpeedupToNarrow")
		if result["writes"] != (i%2 == 1) {
			t.Errorf("result %d: writes %v", i, result["writes"])
		}
		names = append(names, result["reader"].(string))
	}
	slices.Sort(names)
	if names = slices.Compact(names); len(results) != 10 || !slices.Equal(names, slices.Sorted(slices.Values(measure.Readers))) {
		t.Errorf("%d results of %v", len(results), names)
	}
}

func hasKeys(t *testing.T, object map[string]any, keys ...string) {
	t.Helper()
	for _, key := range keys {
		if value, ok := object[key]; !ok || value == nil || value == 0.0 {
			t.Errorf("%s is %v in %v", key, value, object)
		}
	}
}

// The whole comparison of schemas, the server in a process of its own.
func TestSchemas(t *testing.T) {
	if testing.Short() {
		t.Skip("-short measures nothing")
	}
	t.Parallel()
	out := filepath.Join(t.TempDir(), "bench")
	const line = "schemas --scenarios few,shape --counts 500,1000 --facets 3 --selected 1 --repeat 1 --json --out "
	r := bench(t, strings.Fields(line+out)...)
	r.Wants(t, cli.ExitOK)
	var document struct {
		Machine, Config map[string]any
		Results         []map[string]any
		Files           []string
	}
	decoder := json.NewDecoder(strings.NewReader(r.Out))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&document); err != nil {
		t.Fatalf("%v in %s", err, r.Out)
	}
	hasKeys(t, document.Config, "scale", "facets", "values", "selected", "repeat", "workers", "inProcess")
	for _, result := range document.Results {
		hasKeys(t, result, "scenario", "users", "events", "schema", "seconds", "walls", "eventsPerSecond", "clientCPUSeconds", "bytesReceived",
			"bytesPerEvent", "peakHeapBytes", "storedBytes", "storedPerEvent", "loadSeconds")
	}
	if len(document.Results) != 2*2*len(measure.CompareSchemas) {
		t.Errorf("%d results", len(document.Results))
	}
	for i, name := range []string{"results.csv", "few.svg", "shape.svg"} {
		if info, err := os.Stat(filepath.Join(out, name)); err != nil || info.Size() == 0 || document.Files[i] != filepath.Join(out, name) {
			t.Errorf("%s: %v; the report names %v", name, err, document.Files)
		}
	}
}

// Without --out the command prints a table and writes no file.
func TestSchemasTable(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	bench(t, strings.Fields("schemas --scenarios few --schemas wide-json,history --counts 20 --repeat 1 --in-process")...).
		Wants(t, cli.ExitOK, "bytes/event", "wide-json ", "history ", "the server shares the process")
	if files, err := os.ReadDir(dir); err != nil || len(files) != 0 {
		t.Errorf("%v, %v", files, err)
	}
}

func TestTables(t *testing.T) {
	if testing.Short() {
		t.Skip("-short measures nothing")
	}
	t.Parallel()
	bench(t, strings.Fields("recompute --users 10 --events 5,6 --repeat 1 --data /nowhere --in-process")...).
		Wants(t, cli.ExitOK, "5 events a user (synthetic: 10 users, 50 events)", "narrow ", "history ", "x narrow CPU", "rows written", "no real data in /nowhere", "the server shares the process")
	bench(t, strings.Fields("peers --users 3 --events 2 --repeat 1 --duckdb /nowhere --postgres /nowhere --in-process")...).
		Wants(t, cli.ExitOK, "Affinity  histories", "DuckDB was not measured", "PostgreSQL was not measured")
	bench(t, strings.Fields("backfill --users 10 --events 5 --repeat 1")...).Wants(t, cli.ExitOK, "narrow rows copied as they are", "bar: 200000")
	bench(t, strings.Fields("heap --users 30 --events 3 --in-process")...).Wants(t, cli.ExitOK, "peak heap MB", "the server shares")
	bench(t, strings.Fields("event --events 5,9 --repeat 2 --in-process")...).Wants(t, cli.ExitOK, "computed", "memory", "bytes read", "the server shares")
	bench(t, strings.Fields("read --events 20 --reads 10 --in-process")...).Wants(t, cli.ExitOK, "on top of its row reads", "the server shares")
	bench(t, strings.Fields("rank --candidates 20 --affinities 10 --requests 3 --cold 2 --in-process")...).
		Wants(t, cli.ExitOK, "20 candidates of 100 objects against 10 affinities", "warm, items with a relevancy", "cold, nothing in memory")
	for _, line := range []string{"backfill --users 10 --events 5 --repeat 1 --in-process --json", "heap --users 30 --events 3 --json", "read --events 20 --reads 10 --json",
		"rank --candidates 20 --affinities 10 --requests 3 --cold 2 --json"} {
		var document map[string]any
		if r := bench(t, strings.Fields(line)...); r.Code != cli.ExitOK || json.Unmarshal([]byte(r.Out), &document) != nil {
			t.Errorf("%s: %+v", line, r)
		}
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"":                                       "needs a command",
		"all":                                    "unknown command",
		"recompute now":                          "unknown command",
		"recompute --users -1":                   "--users -1",
		"recompute --users many":                 "invalid argument",
		"recompute --events -1":                  "--events -1",
		"recompute --facets 0":                   "--facets 0",
		"recompute --values 0":                   "--values 0",
		"recompute --selected 9":                 "--selected 9",
		"recompute --tail 8":                     "--tail 8",
		"recompute --events 7,7":                 "7 is named twice",
		"recompute --repeat 0":                   "--repeat 0",
		"recompute --readers narrow,quick":       `--readers "quick"`,
		"recompute --readers=":                   "--readers",
		"recompute --readers narrow,wide,narrow": "named twice",
		"peers --events 0":                       "--events 0",
		"schemas now":                            "unknown command",
		"schemas --scenarios tiny":               `--scenarios "tiny"`,
		"schemas --schemas narrow":               `--schemas "narrow"`,
		"schemas --counts 5,x":                   "invalid argument",
		"schemas --counts 1":                     "--counts 1",
		"schemas --counts 5000,2500":             "--counts 2500",
		"schemas --scale 0":                      "--scale 0",
		"schemas --selected 9":                   "--selected 9",
		"schemas --repeat 0":                     "--repeat 0",
		"backfill --users 0":                     "--users 0",
		"backfill --events 0":                    "--events 0",
		"backfill --repeat 0":                    "--repeat 0",
		"event --events 0":                       "--events 0",
		"event --repeat 0":                       "--repeat 0",
		"hot --users 0":                          "--users",
		"hot --for 0s":                           "--for",
		"backup --events 999":                    "--events must be at least 1000",
		"backup --for 0s":                        "--for",
		"heap --users 0":                         "--users 0",
		"heap --events 0":                        "--events 0",
		"read --events 0":                        "--events 0",
		"read --reads 0":                         "--reads 0",
		"rank --candidates 0":                    "--candidates 0",
		"rank --candidates 5001":                 "--candidates 5001",
		"rank --affinities 4":                    "--affinities 4",
		"rank --requests 0":                      "--requests 0",
		"rank --cold 0":                          "--cold 0",
	} {
		r := bench(t, strings.Fields(line)...)
		r.Wants(t, cli.ExitUsage, want)
		if r.Out != "" {
			t.Errorf("%s wrote to stdout: %q", line, r.Out)
		}
	}
}

// Every sent event counts, also those of a warm-up, and every timed one is seen.
func TestHot(t *testing.T) {
	t.Parallel()
	r := bench(t, strings.Fields("hot --users 2 --rate 20 --warm 250ms --for 500ms --sample 5 --json")...)
	r.Wants(t, cli.ExitOK)
	var report measure.HotReport
	decoder := json.NewDecoder(strings.NewReader(r.Out))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&report); err != nil {
		t.Fatalf("%v in %s", err, r.Out)
	}
	if report.Users != 2 || report.Events != 20 || report.Visible.Samples != 4 || report.Visible.NeverSeen != 0 {
		t.Errorf("%+v, want 20 events of 2 users, 4 of them timed and seen", report)
	}
	// Messages of a user may share a refresh. The last ones of the 10 of the warm-up may
	// end while the others are measured.
	if n := report.Added + report.TailHits + report.TailMisses; n < 1 || n > 30 || report.ReadBytes <= 0 || report.Requests <= 0 {
		t.Errorf("%+v, want at most a refresh for each event, and what it asked of Bigtable", report)
	}
}

// Backups are written while events are answered, at least one a run.
func TestBackup(t *testing.T) {
	t.Parallel()
	r := bench(t, strings.Fields("backup --events 2000 --rate 50 --for 100ms --repeat 2 --json")...)
	r.Wants(t, cli.ExitOK)
	var report measure.BackupReport
	if err := json.Unmarshal([]byte(r.Out), &report); err != nil {
		t.Fatalf("%v in %s", err, r.Out)
	}
	if report.Events != 2000 || report.Backups < 2 || report.Bytes <= 0 || report.Seconds <= 0 || report.Alone.P99 <= 0 || report.Beside.P99 <= 0 {
		t.Errorf("%+v, want a backup and times of each run", report)
	}
	var text strings.Builder
	if err := report.Print(&text); err != nil || !strings.Contains(text.String(), "beside a backup") {
		t.Errorf("it prints %q (%v)", text.String(), err)
	}
}

// The server ends when its standard input ends. Help does not list it.
func TestServe(t *testing.T) {
	t.Parallel()
	bench(t, "serve").Wants(t, cli.ExitOK, "127.0.0.1:")
	if r := bench(t, "--help"); strings.Contains(r.Out, "serve") || !strings.Contains(r.Out, "recompute") {
		t.Errorf("help of bench: %s", r.Out)
	}
}
