package main

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/local/race"
	"github.com/affinityengine/affinity/shared/local/realdata"
	"github.com/affinityengine/affinity/shared/local/stack"
)

// shopFiles are a small shop: brand X and Y, and users who stay with a brand.
type shopFiles struct{ objects, strategy, events string }

func newShopFiles(t *testing.T) shopFiles {
	t.Helper()
	var objects, events []string
	for i := range 20 {
		objects = append(objects, fmt.Sprintf(`{"objectID":"o%02d","brand":%q,"publishedAt":"2026-01-%02dT00:00:00Z"}`, i, []string{"X", "Y"}[i%2], i+1))
	}
	for user := range 12 {
		for n := range 6 {
			events = append(events, fmt.Sprintf(`{"eventType":"view","eventName":"Viewed","userToken":"u%d","timestamp":%d,"objectIDs":["o%02d"]}`,
				user, 1_700_000_000_000+n*60_000+user, (user+2*n)%20))
		}
	}
	packed := filepath.Join(t.TempDir(), "events.ndjson.gz")
	must(t, os.WriteFile(packed, []byte(zipped(t, strings.Join(events, "\n"))), 0o600))
	return shopFiles{
		objects:  file(t, "objects.ndjson", objects...),
		events:   packed,
		strategy: file(t, "s.json", `{"eventsScoring":[{"eventType":"view","eventName":"Viewed","score":10}],"facetsScoring":[{"facetName":"brand","score":10}]}`),
	}
}

func TestBacktestTable(t *testing.T) {
	f := newShopFiles(t)
	affinity(t, "", "backtest", "--objects", f.objects, "--strategy", f.strategy, "--within", "brand", f.events).
		wants(t, 0, "12 cases of 20 candidates", "the cut is 2023-11-14T22:17:20Z", "random", "popularity", "pairs", "plain:"+f.strategy,
			"popularity-recent", "within brand, 12 cases", "in the whole catalog, 12 cases", "gain over p",
			"nDCG@10", "paired", api.LiftLimits[0], api.LiftLimits[1], api.LiftLimits[2])
}

// TestBacktestOfCSV gives the same events as CSV, with names of their own.
func TestBacktestOfCSV(t *testing.T) {
	f := newShopFiles(t)
	lines := []string{"visitor,did,what,at"}
	for user := range 12 {
		for n := range 6 {
			at := time.UnixMilli(int64(1_700_000_000_000 + n*60_000 + user)).UTC().Format(time.RFC3339Nano)
			lines = append(lines, fmt.Sprintf("u%d,Viewed,o%02d,%s", user, (user+2*n)%20, at))
		}
	}
	want := affinity(t, "", "backtest", "--objects", f.objects, "--strategy", f.strategy, f.events)
	want.wants(t, 0, "12 cases")
	judge := []string{"backtest", "--objects", f.objects, "--strategy", f.strategy, "--map", "userToken=visitor,eventName=did,objectIDs=what,timestamp=at"}
	got := affinity(t, "", append(judge, "--event", "Viewed=view", file(t, "events.csv", lines...))...)
	if diff := cmp.Diff(want.out, got.out); diff != "" || got.code != 0 {
		t.Errorf("exit code %d; (-lines +CSV):\n%s%s", got.code, diff, got.err)
	}
	affinity(t, "", append(judge, file(t, "events.csv", lines...))...).wants(t, 1, `events.csv:2: "Viewed" is no type of event`, "72 of 92 lines cannot be read")
	affinity(t, "", append(judge, "--event", "Viewed=seen", f.events)...).wants(t, 2, "--event Viewed=seen")
}

func TestBacktestJSON(t *testing.T) {
	f := newShopFiles(t)
	plot := filepath.Join(t.TempDir(), "lift.svg")
	r := affinity(t, "", "backtest", "--objects", f.objects, "--strategy", f.strategy, "--at", "5", "--plot", plot, "--json", f.events)
	r.wants(t, 0)
	var got api.Backtest
	decoder := json.NewDecoder(strings.NewReader(r.out))
	decoder.DisallowUnknownFields()
	must(t, decoder.Decode(&got))
	var names []string
	for _, n := range got.Results {
		names = append(names, n.Name)
		for _, value := range []float64{n.NDCG, n.HitRate, n.MRR, n.Coverage} {
			if !(value >= 0 && value <= 1) || !(n.NDCGLow <= n.NDCG && n.NDCG <= n.NDCGHigh) {
				t.Errorf("%+v: figures must lie in 0..1, and the nDCG in its interval", n)
			}
		}
	}
	if got, want := strings.Join(names, " "), "random popularity popularity-recent pairs sequence neighbours plain:"+f.strategy+" "+f.strategy; got != want {
		t.Errorf("results %s, want %s", got, want)
	}
	if got.Cases != 12 || got.Candidates != 20 || got.At != 5 {
		t.Errorf("%d cases, %d candidates, at %d; want 12, 20, 5", got.Cases, got.Candidates, got.At)
	}
	svg, err := os.ReadFile(plot)
	must(t, err)
	for decoder := xml.NewDecoder(strings.NewReader(string(svg))); ; {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("the plot is not XML: %v", err)
		}
	}
	if !strings.Contains(string(svg), ">pairs<") || strings.Contains(string(svg), "NaN") {
		t.Errorf("the plot lacks a line or has one without a place:\n%s", svg)
	}
}

// A row with a time that no event can have is named, and moves neither the cut nor a
// figure. The exit code says that a line was left out.
func TestRowWithImpossibleTimeDoesNotDecide(t *testing.T) {
	f := newTasteFiles(t)
	line := func(timestamp string) string {
		return fmt.Sprintf(`{"eventType":"view","eventName":"Viewed","userToken":"odd","timestamp":%s,"objectIDs":["o001"]}`, timestamp)
	}
	const day = 24 * time.Hour
	ahead := time.Now().Add(2 * day).UnixMilli()
	odd := file(t, "odd.ndjson", line("0"), line(`"1970-01-01T00:00:00Z"`), line(`"2100-01-01"`), line(fmt.Sprint(ahead)), line("20261121"))
	csv := file(t, "odd.csv", "eventType,eventName,userToken,objectIDs,timestamp", "view,Viewed,odd,o001,9999-12-31 00:00:00")
	out := filepath.Join(t.TempDir(), "out.json")
	for name, judge := range map[string][]string{
		"backtest": {"backtest", "--objects", f.objects, "--strategy", f.strategy, "--json"},
		"tune":     {"tune", "--objects", f.objects, "--strategy", f.strategy, "--json", "--trials", "3", "--out", out},
		"try":      {"try", "--objects", f.objects, "--json", "--trials", "3", "--out", out},
	} {
		want := affinity(t, "", append(judge, f.events)...)
		if want.code != 0 {
			t.Fatalf("%s: %s", name, want.err)
		}
		got := affinity(t, "", append(judge, f.events, odd)...)
		got.wants(t, command.ExitLines, odd+":1: The timestamp is a number that is no time from 1980", odd+":2: The timestamp lies before 1980 or after 2199",
			odd+":3: The timestamp lies more than 5 minutes in the future", odd+":4: The timestamp lies more", odd+":5: The timestamp is a number that",
			"5 lines left out, because no event can have such a time; all others count")
		if diff := cmp.Diff(want.out, got.out); diff != "" {
			t.Errorf("%s: the odd rows change the figures (-without +with):\n%s", name, diff)
		}
		if name == "backtest" {
			got = affinity(t, "", append(judge, csv)...)
			got.wants(t, 1, "odd.csv:2: The timestamp lies before 1980 or after 2199", "the log holds no events")
		}
	}
}

// Events may be in several files and in any order.
func TestBacktestOrderOfFiles(t *testing.T) {
	f := newShopFiles(t)
	line := `{"eventType":"view","eventName":"Viewed","userToken":"late","timestamp":%d,"objectIDs":["%s"]}`
	one, two := file(t, "1", fmt.Sprintf(line, 1_700_000_000_000, "o01")), file(t, "2", fmt.Sprintf(line, 1_700_000_300_000, "o02"))
	args := []string{"backtest", "--objects", f.objects, "--strategy", f.strategy, "--json"}
	a := affinity(t, "", append(args, f.events, one, two)...)
	b := affinity(t, "", append(args, two, one, f.events, one)...) // an event twice counts once
	a.wants(t, 0, `"cases": 13`)
	if a.out != b.out {
		t.Errorf("the order of the files changes the result:\n%s\n%s", a.out, b.out)
	}
}

func TestBacktestBadInput(t *testing.T) {
	f := newShopFiles(t)
	event := func(user string, ms int64, object string) string {
		return fmt.Sprintf(`{"eventType":"view","eventName":"Viewed","userToken":%q,"timestamp":%d,"objectIDs":[%q]}`, user, 1_700_000_000_000+ms, object)
	}
	strategyOf := func(name, events, facets, more string) string {
		return file(t, name, fmt.Sprintf(`{"eventsScoring":[%s],"facetsScoring":[%s]%s}`, events, facets, more))
	}
	view, brand := `{"eventType":"view","eventName":"Viewed","score":10}`, `{"facetName":"brand","score":10}`
	zero := strings.ReplaceAll(view, "10", "0")
	off := `,"personalizationImpact":0,"ranking":{"session":{"weight":0},"popularity":{"weight":0},"pairs":{"weight":0},"freshness":{"weight":0}}`
	broken := file(t, "broken.ndjson", event("u", 1, "o01"), `{"eventType":`, event("v", 2, "o02"), `{"eventType":"view","eventName":"V","userToken":"u","objectIDs":["o01"]}`)
	for name, test := range map[string]struct {
		objects, strategy, events string
		more                      []string
		code                      int
		want                      string
	}{
		"no objects":       {objects: file(t, "none", ""), code: 1, want: "holds no objects"},
		"unknown objects":  {events: file(t, "e", event("u", 1, "zz"), event("v", 5, "zz")), code: 1, want: "names an object of index"},
		"no events":        {events: file(t, "e", ""), code: 1, want: "the log holds no events"},
		"one event":        {events: file(t, "e", event("u", 1, "o01")), code: 1, want: "only one event"},
		"one user":         {events: file(t, "e", event("u", 1, "o01"), event("u", 9, "o02")), code: 1, want: "are of one user"},
		"no case":          {events: file(t, "e", event("u", 1, "o01"), event("v", 9, "o02")), code: 1, want: "no case"},
		"scores nothing":   {strategy: strategyOf("s", zero, brand, ""), code: 1, want: "the strategy scores nothing"},
		"scores no facet":  {strategy: strategyOf("s", view, "", ""), code: 1, want: "no entry of facetsScoring"},
		"other kinds":      {strategy: strategyOf("s", strings.Replace(view, "Viewed", "Seen", 1), brand, ""), code: 1, want: "the log has view Viewed"},
		"ranks nothing":    {strategy: strategyOf("s", view, brand, off), code: 1, want: "all weights of its ranking are 0"},
		"no strategy":      {strategy: file(t, "s", `{"eventsScoring":`), code: 1, want: "is not a JSON object"},
		"bad strategy":     {strategy: strategyOf("s", view, brand, `,"colour":1`), code: 1, want: "colour"},
		"no attribute":     {more: []string{"--within", "size"}, code: 1, want: `has the attribute "size": they have brand, publishedAt`},
		"bad lines":        {events: broken, code: 1, want: broken + ":2: "},
		"bad lines, count": {events: broken, code: 1, want: "2 of 24 lines cannot be read"},
		"no timestamp":     {events: broken, code: 1, want: broken + ":4: timestamp is missing"},
		"bad object":       {objects: file(t, "o", `{"name":"x"}`), code: 1, want: ":1: objectID is missing"},
		"no file":          {events: "/nowhere", code: 1, want: "/nowhere"},
		"damaged file":     {events: file(t, "e.gz", "\x1f\x8bnonsense"), code: 1, want: "damaged"},
		"protocol":         {more: []string{"--protocol", "first"}, code: 2, want: "last or rolling"},
		"at":               {more: []string{"--at", "0"}, code: 2, want: "--at 0"},
		"sample":           {more: []string{"--sample", "0"}, code: 2, want: "--sample 0"},
		"twice":            {more: []string{"--strategy", f.strategy}, code: 2, want: "given twice"},
		"two streams":      {objects: "-", events: "-", code: 2, want: "standard input"},
	} {
		t.Run(name, func(t *testing.T) {
			or := func(given, usual string) string {
				if given != "" {
					return given
				}
				return usual
			}
			args := append([]string{"backtest", "--objects", or(test.objects, f.objects), "--strategy", or(test.strategy, f.strategy)}, test.more...)
			r := affinity(t, "", append(args, or(test.events, f.events))...)
			r.wants(t, test.code, test.want)
			if strings.Contains(r.out, "NaN") || r.out != "" {
				t.Errorf("a failed backtest printed %q", r.out)
			}
		})
	}
	affinity(t, "", "backtest", "--strategy", f.strategy, f.events).wants(t, 2, "--objects is required")
	affinity(t, "", "backtest", "--objects", f.objects, f.events).wants(t, 2, "--strategy is required")
	affinity(t, "", "backtest", "--objects", f.objects, "--strategy", f.strategy).wants(t, 2, "EVENTS is missing")
}

// The figures of README, on real data: the order with the default ranking is
// far better than popularity.
func TestBacktestRealData(t *testing.T) {
	t.Parallel()
	if race.On {
		t.Skip("under the race detector the real data take most of a minute: shared/judge/backtest judges a part of them")
	}
	for name, want := range map[string]float64{"clickstream": 2.5, "onlineretail": 1.3} {
		t.Run(name, func(t *testing.T) {
			r := affinity(t, "", "backtest", "--objects", realdata.Path(t, name, realdata.ObjectsFile), "--strategy", realdata.Path(t, name, realdata.StrategyFile),
				"--json", realdata.Path(t, name, realdata.EventsFile))
			r.wants(t, 0)
			var got api.Backtest
			must(t, json.Unmarshal([]byte(r.out), &got))
			popularity, ranked := got.Results[1].NDCG, got.Results[5].NDCG
			if ratio := ranked / popularity; math.IsNaN(ratio) || ratio < want {
				t.Errorf("nDCG %g, %.2f times that of popularity; want %g times", ranked, ratio, want)
			}
		})
	}
}

// A backtest of an engine's log is that of the same files, under the names of
// the strategies' files.
func TestBacktestOfAnEngine(t *testing.T) {
	s := startEngine(t, stack.Options{ConfigTTL: time.Millisecond})
	f := newShopFiles(t)
	affinity(t, "", "import", "--url", s.URL, "--index", "products", "--objects", f.objects, f.events).wants(t, 0)
	files := affinity(t, "", "backtest", "--index", "products", "--objects", f.objects, "--strategy", f.strategy, "--within", "brand", "--json", f.events)
	live := affinity(t, "", "backtest", "--url", s.URL, "--index", "products", "--strategy", f.strategy, "--within", "brand", "--json")
	files.wants(t, 0)
	live.wants(t, 0, "reads the log of app demo", "at most 4 million events")
	if files.out != live.out {
		t.Errorf("the backtest of the log is\n%s\nwant that of the files\n%s", live.out, files.out)
	}
	affinity(t, "", "backtest", "--url", s.URL, "--index", "products", "--strategy", f.strategy).wants(t, 0, "12 cases of 20 candidates")
	affinity(t, "", "backtest", "--url", s.URL, "--index", "hats", "--strategy", f.strategy).wants(t, 1, "ended as failed", "has no objects")
	list := affinity(t, "", "backtest", "list", "--url", s.URL)
	list.wants(t, 0, "failed", "has no objects", "done")
	ended, _, _ := strings.Cut(list.out, " ")
	affinity(t, "", "backtest", "cancel", ended, "--url", s.URL).wants(t, 1, "is failed: it cannot be cancelled any more")
	affinity(t, "", "backtest", "cancel", "backtest-1", "--url", s.URL).wants(t, 1, "No backtest", "lists the latest")
	affinity(t, "", "crowd", "cancel", "manual-1", "--url", s.URL).wants(t, 1, "No build", "lists the latest")
	affinity(t, "", "backtest", "--url", s.URL, "--objects", f.objects, "--strategy", f.strategy, f.events).wants(t, 2, "leave out --objects, --baseline and EVENTS")
	affinity(t, "", "backtest", "--all", "--objects", f.objects, "--strategy", f.strategy, f.events).wants(t, 2, "--all needs --url")
}
