package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// newTasteFiles are a shop whose users each stay with a size. The strategy scores
// the color, which means nothing to them.
func newTasteFiles(t *testing.T) shopFiles {
	t.Helper()
	const objects, sizes, colors, users = 120, 6, 5, 300
	var catalog, events []string
	for o := range objects {
		catalog = append(catalog, fmt.Sprintf(`{"objectID":"o%03d","name":"Thing %d","size":"s%d","color":"c%d"}`, o, o, o%sizes, o/sizes%colors))
	}
	for user := range users {
		for n, own := range rand.New(rand.NewPCG(7, uint64(user))).Perm(objects / sizes)[:6] {
			object := user%sizes + sizes*own
			events = append(events, fmt.Sprintf(`{"eventType":"view","eventName":"Viewed","index":"things","userToken":"u%d","timestamp":%d,"objectIDs":["o%03d"]}`,
				user, 1_700_000_000_000+n*86_400_000+user*1000, object))
		}
	}
	return shopFiles{
		objects: file(t, "objects.ndjson", catalog...), events: file(t, "events.ndjson", events...),
		strategy: file(t, "s.json", `{"eventsScoring":[{"eventType":"view","eventName":"Viewed","score":10}],"facetsScoring":[{"facetName":"color","score":50}],`+
			`"ranking":{"contrast":"none","session":{"weight":0},"popularity":{"weight":0},"pairs":{"weight":0}}}`),
	}
}

// readStrategyFile reads a strategy that a command has written.
func readStrategyFile(t *testing.T, path string) strategy.Strategy {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	s, err := strategy.Decode(text)
	if err != nil {
		t.Fatalf("%s is not a strategy that an engine takes: %v\n%s", path, err, text)
	}
	return s
}

func TestTune(t *testing.T) {
	f := newTasteFiles(t)
	out, plot := filepath.Join(t.TempDir(), "tuned.json"), filepath.Join(t.TempDir(), "lift.svg")
	affinity(t, "", "tune", "--objects", f.objects, "--strategy", f.strategy, "--out", out, "--plot", plot, f.events).
		wants(t, 0, "trials on", "the untouched slice has", "of 120 candidates", "popularity", "plain", "given", "tuned",
			"what changed:\n", "facet size absent -> ", "recommended: the tuned strategy ranks better", out)
	s := readStrategyFile(t, out)
	// Users stay with a size, and so do those who chose the same objects.
	if s.FacetScore("size") <= s.FacetScore("color") && s.RankingOrDefault().Neighbours.Weight == 0 || s.PersonalizationImpact != 50 {
		t.Errorf("tuned strategy %+v", s)
	}
	if svg, err := os.ReadFile(plot); err != nil || !strings.Contains(string(svg), ">tuned<") || strings.Contains(string(svg), "NaN") {
		t.Errorf("plot: %v\n%s", err, svg)
	}
}

// The document has exactly the keys that programs may rely on.
func TestTuneJSON(t *testing.T) {
	f := newTasteFiles(t)
	args := []string{"tune", "--objects", f.objects, "--strategy", f.strategy, "--trials", "20", "--json", f.events}
	r := affinity(t, "", args...)
	r.wants(t, 0)
	var got api.Tuning
	decoder := json.NewDecoder(strings.NewReader(r.out))
	decoder.DisallowUnknownFields()
	must(t, decoder.Decode(&got))
	if got.Plain.Name != "plain" || got.Given.Name != "given" || got.Tuned.Name != "tuned" || !got.Recommended || got.GainLow <= 0 ||
		got.GainHigh < got.GainLow || got.Tuned.NDCG <= got.Given.NDCG {
		t.Errorf("tuning = %+v", got)
	}
	if err := got.Strategy.Validate(); err != nil {
		t.Error(err)
	}
	if again := affinity(t, "", args...); again.out != r.out {
		t.Errorf("two searches differ:\n%s\n%s", r.out, again.out)
	}
}

// A search on an engine's log gives what one on the same files gives.
func TestTuneOfAnEngine(t *testing.T) {
	t.Parallel()
	s := startEngine(t, stack.Options{ConfigTTL: time.Millisecond})
	f := newTasteFiles(t)
	dir := t.TempDir()
	fromFiles, fromLog := filepath.Join(dir, "files.json"), filepath.Join(dir, "log.json")
	live := []string{"tune", "--url", s.URL, "--index", "things", "--trials", "20"}
	affinity(t, "", append(live, "--strategy", "active")...).wants(t, 1, "no strategy to begin with")
	affinity(t, "", "strategy", "set", "--url", s.URL, f.strategy).wants(t, 0)
	affinity(t, "", "import", "--url", s.URL, "--index", "things", "--objects", f.objects, f.events).wants(t, 0)

	files := []string{"tune", "--index", "things", "--trials", "20", "--objects", f.objects, "--strategy", f.strategy}
	want := affinity(t, "", append(files, "--json", f.events)...)
	want.wants(t, 0)
	got := affinity(t, "", append(live, "--strategy", f.strategy, "--json")...)
	got.wants(t, 0, "reads the log of app demo", "at most 4 million events", "from "+f.strategy+" with at most 20 trials")
	if got.out != want.out {
		t.Errorf("the search on the log found\n%s\nwant that on the files\n%s", got.out, want.out)
	}

	want = affinity(t, "", append(files, "--out", fromFiles, f.events)...)
	want.wants(t, 0, "neighbours weight 0 -> ")
	got = affinity(t, "", append(live, "--out", fromLog)...) // the active strategy is the same
	got.wants(t, 0, "from the active strategy")
	if table := strings.ReplaceAll(want.out, fromFiles, fromLog); got.out != table {
		t.Errorf("the table is\n%s\nwant\n%s", got.out, table)
	}
	if diff := cmp.Diff(readStrategyFile(t, fromFiles), readStrategyFile(t, fromLog)); diff != "" {
		t.Errorf("tuned strategy (-files +log):\n%s", diff)
	}
	affinity(t, "", append(live, "--sample", "30")...).wants(t, 1, "ended as failed", "too few cases to tune on")
	plots := [2]string{filepath.Join(dir, "files.svg"), filepath.Join(dir, "log.svg")}
	affinity(t, "", append(files, "--plot", plots[0], f.events)...).wants(t, 0)
	affinity(t, "", append(live, "--plot", plots[1])...).wants(t, 0)
	if fromFiles, fromLog := read(t, plots[0]), read(t, plots[1]); fromFiles != fromLog {
		t.Errorf("the plot of the log is\n%s\nwant that of the files\n%s", fromLog, fromFiles)
	}
	affinity(t, "", append(live, f.events)...).wants(t, 2, "leave out --objects, --baseline and EVENTS")
	affinity(t, "", append(files, "--all", f.events)...).wants(t, 2, "--all needs --url")
}

func TestTuneThatChangesNothing(t *testing.T) {
	f := newTasteFiles(t)
	out := filepath.Join(t.TempDir(), "tuned.json")
	affinity(t, "", "tune", "--objects", f.objects, "--strategy", f.strategy, "--trials", "1", "--out", out, f.events).
		wants(t, 0, "not recommended")
	if s := readStrategyFile(t, out); s.FacetScore("color") != 50 || s.FacetScore("size") != 0 {
		t.Errorf("strategy after one trial = %+v, want the given one", s)
	}
}

func TestTuneBadInput(t *testing.T) {
	f, small := newTasteFiles(t), newShopFiles(t)
	affinity(t, "", "tune", "--objects", f.objects, f.events).wants(t, 2, "--strategy is required", "affinity try")
	affinity(t, "", "tune", "--strategy", f.strategy, f.events).wants(t, 2, "--objects is required")
	affinity(t, "", "tune", "--objects", f.objects, "--strategy", f.strategy).wants(t, 2, "EVENTS is missing")
	affinity(t, "", "tune", "--objects", f.objects, "--strategy", f.strategy, "--trials", "301", f.events).wants(t, 2, "--trials 301")
	affinity(t, "", "tune", "--objects", f.objects, "--strategy", f.strategy, "--protocol", "x", f.events).wants(t, 2, "--protocol x")
	affinity(t, "", "tune", "--objects", small.objects, "--strategy", small.strategy, small.events).wants(t, 1, "too few cases to tune on: 12")
	affinity(t, "", "tune", "--objects", f.objects, "--strategy", f.strategy, "--out", "/nowhere/s.json", f.events).wants(t, 1, "/nowhere/s.json")
	one := file(t, "one", `{"eventType":"view","eventName":"Viewed","userToken":"u","timestamp":1700000000000,"objectIDs":["o001"]}`)
	affinity(t, "", "tune", "--objects", f.objects, "--strategy", f.strategy, one).wants(t, 1, "only one event")
}

func TestTry(t *testing.T) {
	f := newTasteFiles(t)
	out := filepath.Join(t.TempDir(), "s.json")
	r := affinity(t, "", "try", "--objects", f.objects, "--out", out, f.events)
	r.wants(t, 0, "1,800 events of 300 users on 120 objects", "On your data: +", " % (+", "over showing everybody the best sellers",
		"what a page of yours shows", "nDCG is not sales", "guessed from the data", "best sellers", "for this user", "turned to", "Thing ", out)
	const shownUsers = 2
	if n := strings.Count(r.out, "and then (*) to"); n != shownUsers {
		t.Errorf("results of %d users, want %d:\n%s", n, shownUsers, r.out)
	}
	if s := readStrategyFile(t, out); s.FacetScore("size") == 0 || s.FacetScore("name") != 0 {
		t.Errorf("strategy %+v: size matters, and no two objects share a name", s)
	}
	affinity(t, "", "try", "--objects", f.objects, "--strategy", f.strategy, "--out", out, f.events).
		wants(t, 0, "recommended: the tuned strategy ranks better", "The tuned strategy is in "+out)
}

// A log of chance: nothing can be recommended, and the words say so.
func TestTryWithoutLift(t *testing.T) {
	f := newTasteFiles(t)
	var events []string
	rng := rand.New(rand.NewPCG(8, 8))
	for user := range 300 {
		for n := range 6 {
			events = append(events, fmt.Sprintf(`{"eventType":"view","eventName":"Viewed","index":"things","userToken":"u%d","timestamp":%d,"objectIDs":["o%03d"]}`,
				user, 1_700_000_000_000+n*86_400_000+user*1000, rng.IntN(120)))
		}
	}
	events = append(events, `{"eventType":"conversion","eventName":"Order Cancelled","index":"things","userToken":"u1","timestamp":1700000000001,"objectIDs":["o001"]}`)
	out := filepath.Join(t.TempDir(), "s.json")
	affinity(t, "", "try", "--objects", f.objects, "--out", out, file(t, "e", events...)).
		wants(t, 0, "1 event: by the name, users turn away", "On your data: no lift can be shown in the whole catalog over showing everybody the best sellers", "not recommended", "The given strategy is in "+out)
}

func TestTryBadInput(t *testing.T) {
	f := newTasteFiles(t)
	affinity(t, "", "try", f.events).wants(t, 2, "--objects is required")
	affinity(t, "", "try", "--objects", f.objects, "--index", "elsewhere", f.events).wants(t, 1, "no strategy can be suggested", "objectIDs")
	lonely := file(t, "o", `{"objectID":"o001","name":"A"}`, `{"objectID":"o002","name":"B"}`)
	affinity(t, "", "try", "--objects", lonely, f.events).wants(t, 1, "no strategy can be suggested", "attribute")
	affinity(t, "", "try", "--objects", f.objects, file(t, "none", "")).wants(t, 1, "no strategy can be suggested")
}
