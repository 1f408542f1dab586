package main

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/scripts/affinity/bench"
)

// TestMain lets the tests' program be started as the server that `bench` starts.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "bench" && os.Args[2] == "serve" {
		main()
	}
	os.Exit(m.Run())
}

// The whole command as people run it: all readers, the server in a process of its own.
func TestBenchRecompute(t *testing.T) {
	t.Parallel()
	const line = "bench recompute --users 20 --events 10 --facets 3 --values 2 --selected 2 --tail 2 --repeat 2 --json"
	r := affinity(t, "", strings.Fields(line)...)
	r.wants(t, exitFine)
	if r.err != "" {
		t.Errorf("told on stderr, which is no terminal: %s", r.err)
	}
	var document struct {
		Machine map[string]any
		Config  map[string]any
		Results []map[string]any
	}
	decoder := json.NewDecoder(strings.NewReader(r.out))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&document); err != nil {
		t.Fatalf("%v in %s", err, r.out)
	}
	if _, err := decoder.Token(); err != io.EOF {
		t.Errorf("more than one document: %v", err)
	}
	hasKeys(t, document.Machine, "cpus", "goVersion", "date")
	hasKeys(t, document.Config, "users", "events", "facets", "values", "selected", "tail", "repeat", "workers", "inProcess")
	var names []string
	for i, result := range document.Results {
		hasKeys(t, result, "reader", "writes", "eventsPerSecond", "seconds", "walls", "clientCPUSeconds", "bytesReceived", "allocations",
			"peakHeapBytes", "floorSeconds", "floorCPUSeconds", "floorBytesReceived", "cpuToFloor", "speedupToNarrow", "cpuSpeedupToNarrow")
		if result["writes"] != (i%2 == 1) {
			t.Errorf("result %d: writes %v", i, result["writes"])
		}
		names = append(names, result["reader"].(string))
	}
	slices.Sort(names)
	if names = slices.Compact(names); len(document.Results) != 10 || !slices.Equal(names, slices.Sorted(slices.Values(bench.Readers))) {
		t.Errorf("%d results of %v", len(document.Results), names)
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

// The comparison of schemas as people run it, the server in a process of its own.
func TestBenchSchemas(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "bench")
	const line = "bench schemas --scenarios few,shape --counts 500,1000 --facets 3 --selected 1 --repeat 1 --json --out "
	r := affinity(t, "", strings.Fields(line+out)...)
	r.wants(t, exitFine)
	var document struct {
		Machine, Config map[string]any
		Results         []map[string]any
		Files           []string
	}
	decoder := json.NewDecoder(strings.NewReader(r.out))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&document); err != nil {
		t.Fatalf("%v in %s", err, r.out)
	}
	hasKeys(t, document.Config, "scale", "facets", "values", "selected", "repeat", "workers", "inProcess")
	for _, result := range document.Results {
		hasKeys(t, result, "scenario", "users", "events", "schema", "seconds", "walls", "eventsPerSecond", "clientCPUSeconds", "bytesReceived",
			"bytesPerEvent", "peakHeapBytes", "storedBytes", "storedPerEvent", "loadSeconds")
	}
	if len(document.Results) != 2*2*len(bench.CompareSchemas) {
		t.Errorf("%d results", len(document.Results))
	}
	for i, name := range []string{"results.csv", "few.svg", "shape.svg"} {
		if info, err := os.Stat(filepath.Join(out, name)); err != nil || info.Size() == 0 || document.Files[i] != filepath.Join(out, name) {
			t.Errorf("%s: %v, and %v were told", name, err, document.Files)
		}
	}
}

// Without --out there is a table and no file.
func TestBenchSchemasTable(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	affinity(t, "", strings.Fields("bench schemas --scenarios few --schemas wide-json,history --counts 20 --repeat 1 --in-process")...).
		wants(t, exitFine, "bytes/event", "wide-json ", "history ", "the server shares the process")
	if files, err := os.ReadDir(dir); err != nil || len(files) != 0 {
		t.Errorf("%v, %v", files, err)
	}
}

func TestBenchTables(t *testing.T) {
	t.Parallel()
	affinity(t, "", strings.Fields("bench recompute --users 10 --events 5 --readers history,narrow --repeat 1 --in-process")...).
		wants(t, exitFine, "10 users x 5 events", "narrow ", "history ", "CPU/floor", "the server shares the process")
	affinity(t, "", strings.Fields("bench backfill --users 10 --events 5 --repeat 1")...).wants(t, exitFine, "narrow rows copied as they are", "bar: 200000")
	affinity(t, "", strings.Fields("bench heap --users 30 --events 3 --in-process")...).wants(t, exitFine, "peak heap MB", "the server shares")
	affinity(t, "", strings.Fields("bench read --events 20 --reads 10 --in-process")...).wants(t, exitFine, "on top of its row reads", "the server shares")
	for _, line := range []string{"bench backfill --users 10 --events 5 --repeat 1 --in-process --json", "bench heap --users 30 --events 3 --json", "bench read --events 20 --reads 10 --json"} {
		var document map[string]any
		if r := affinity(t, "", strings.Fields(line)...); r.code != exitFine || json.Unmarshal([]byte(r.out), &document) != nil {
			t.Errorf("%s: %+v", line, r)
		}
	}
}

func TestBenchUsage(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"bench":                                        "needs a command",
		"bench all":                                    "unknown command",
		"bench recompute now":                          "unknown command",
		"bench recompute --users 0":                    "--users 0",
		"bench recompute --users many":                 "invalid argument",
		"bench recompute --events -1":                  "--events -1",
		"bench recompute --facets 0":                   "--facets 0",
		"bench recompute --values 0":                   "--values 0",
		"bench recompute --selected 9":                 "--selected 9",
		"bench recompute --tail 301":                   "--tail 301",
		"bench recompute --repeat 0":                   "--repeat 0",
		"bench recompute --readers narrow,quick":       `--readers "quick"`,
		"bench recompute --readers=":                   "--readers",
		"bench recompute --readers narrow,wide,narrow": "named twice",
		"bench schemas now":                            "unknown command",
		"bench schemas --scenarios tiny":               `--scenarios "tiny"`,
		"bench schemas --schemas narrow":               `--schemas "narrow"`,
		"bench schemas --counts 5,x":                   "invalid argument",
		"bench schemas --counts 1":                     "--counts 1",
		"bench schemas --counts 5000,2500":             "--counts 2500",
		"bench schemas --scale 0":                      "--scale 0",
		"bench schemas --selected 9":                   "--selected 9",
		"bench schemas --repeat 0":                     "--repeat 0",
		"bench backfill --users 0":                     "--users 0",
		"bench backfill --events 0":                    "--events 0",
		"bench backfill --repeat 0":                    "--repeat 0",
		"bench heap --users 0":                         "--users 0",
		"bench heap --events 0":                        "--events 0",
		"bench read --events 0":                        "--events 0",
		"bench read --reads 0":                         "--reads 0",
	} {
		r := affinity(t, "", strings.Fields(line)...)
		r.wants(t, exitUsage, want)
		if r.out != "" {
			t.Errorf("%s wrote to stdout: %q", line, r.out)
		}
	}
}

// The server ends with its input, and is not listed.
func TestBenchServe(t *testing.T) {
	t.Parallel()
	affinity(t, "", "bench", "serve").wants(t, exitFine, "127.0.0.1:")
	if r := affinity(t, "", "bench", "--help"); strings.Contains(r.out, "serve") || !strings.Contains(r.out, "recompute") {
		t.Errorf("help of bench: %s", r.out)
	}
}
