package measure

import (
	"bytes"
	"encoding/csv"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/score/affinity"
)

func smallPeers(t *testing.T) Peers {
	return Peers{Users: 3, Events: []int{4}, Repeat: 2, DuckDB: filepath.Join(t.TempDir(), "duckdb"), Postgres: "/nowhere", Common: Common{InProcess: true}}
}

// Without a database the report has the engine, and says what is not installed.
func TestPeersAbsent(t *testing.T) {
	report, err := smallPeers(t).Run(t.Context(), InProcess)
	if err != nil {
		t.Fatal(err)
	}
	if set := report.Sets[0]; len(set.Peers) != 1 || set.Peers[0].Peer != "Affinity" || set.Peers[0].Seconds <= 0 || set.Peers[0].ServerCPUSeconds <= 0 {
		t.Errorf("measured %+v", set)
	}
	var text bytes.Buffer
	if err := report.Print(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"4 events a user", "engine x wall", "DuckDB was not measured", "--duckdb", "PostgreSQL was not measured", "--postgres"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("output lacks %q:\n%s", want, text.String())
		}
	}
	var flag FlagError
	if err := (Peers{Events: []int{0}, Repeat: 1}).Check(); !errors.As(err, &flag) {
		t.Errorf("%v, want a FlagError", err)
	}
}

// A tool that fails, or that computes something else, fails the command.
func TestWrongPeersFail(t *testing.T) {
	for script, want := range map[string]string{
		"echo Parser Error >&2; exit 1": "Parser Error",
		"cat >/dev/null":                "timed 0 statements",
		`for i in 1 2; do echo "Run Time (s): real 0.5 user 0.75 sys 0.25"; done; file=$(sed -n "s/^copy (.*) to '\(.*\)' (header false);$/\1/p"); echo user-0000000,brand,Acme,1 >$file`: "is not the engine's",
	} {
		o := smallPeers(t)
		if err := os.WriteFile(o.DuckDB, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		if _, err := o.Run(t.Context(), InProcess); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", script, err, want)
		}
	}
}

// The tool's timer prints what it took after each statement.
func TestDuckTimes(t *testing.T) {
	got, err := duckTimes("100% done\nRun Time (s): real 0.202 user 1.884446 sys 0.114630\nRun Time (s): real 1.5 user 2 sys 1e-3\n")
	if err != nil || len(got) != 2 || got[0].seconds != 0.202 || got[0].cpu != 1.884446+0.114630 || got[1].cpu != 2.001 {
		t.Errorf("%+v, %v", got, err)
	}
}

// PostgreSQL computes the profiles of the formula.
func TestPostgresComputesProfiles(t *testing.T) {
	must.Start(t, must.Postgres)
	dir, err := findPostgres("")
	must.Succeed(t, err)
	data := peerData{newDataset(shape{users: 3, events: 4, facets: 3, selected: 2, values: 2}), t.TempDir()}
	if err := data.write(); err != nil {
		t.Fatal(err)
	}
	if got, err := (postgres{dir}).measure(t.Context(), data, "text", 1); err != nil || got.seconds <= 0 {
		t.Fatalf("%+v, %v", got, err)
	}
	want := map[scored]float64{}
	for i := range data.users {
		var events []affinity.Event
		for _, e := range data.events(i, nil) {
			events = append(events, e.Event)
		}
		for _, a := range affinity.Reference(events, data.strategy, data.window).Affinities {
			want[scored{data.user(i), a.Facet, a.Value}] = a.Scores[0]
		}
	}
	path := filepath.Join(data.dir, "text.csv")
	if err := data.verify(path, "text", want); err != nil {
		t.Error(err)
	}
	checkVerify(t, data, path, want)
}

// checkVerify checks that verify finds a score that is missing, one too many and one
// that differs.
func checkVerify(t *testing.T, data peerData, path string, want map[scored]float64) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	score, err := strconv.ParseFloat(rows[0][3], 64)
	if err != nil {
		t.Fatal(err)
	}
	first, other := scored{rows[0][0], rows[0][1], rows[0][2]}, scored{"x", "y", "z"}
	for _, c := range []struct {
		what   string
		change func()
	}{
		{"differs", func() { want[first] = score * (1 + 1e-8) }},
		{"is missing", func() { want[first], want[other] = score, 1 }},
		{"is one too many", func() { delete(want, other); delete(want, first) }},
	} {
		if c.change(); data.verify(path, "text", want) == nil {
			t.Errorf("a score that %s was not found", c.what)
		}
	}
}
