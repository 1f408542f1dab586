package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/local/stack"
)

func TestIndexCommands(t *testing.T) {
	s := startEngine(t, stack.Options{ConfigTTL: time.Millisecond})
	run := func(args ...string) ran {
		return affinity(t, "", append(append([]string{"index"}, args...), "--url", s.URL)...)
	}
	run("show", "products").wants(t, cli.ExitOK, "{}")
	run("bands", "hats", "price=0,50").wants(t, cli.ExitOK, "numeric bands: price")
	run("bands", "hats", "price=").wants(t, cli.ExitOK)
	run("set", "hats", file(t, "hats.json", `{"attributesForFaceting":["size"]}`)).wants(t, cli.ExitOK)
	run("bands", "hats", "price=0,50").wants(t, cli.ExitFailed, `numericBands names "price", which attributesForFaceting does not list`)
	settings := file(t, "settings.json", `{"attributesForFaceting":["price","size"],"numericBands":{"size":[40.5]},"ranking":["desc(price)"]}`)
	run("set", "products", settings).wants(t, cli.ExitOK, "the settings are set", "numeric bands: size; the events in the log follow")
	run("bands", "products", "price=0,50,1e2").wants(t, cli.ExitOK, "numeric bands: price, size;")
	run("show", "products").wants(t, cli.ExitOK, `"attributesForFaceting": [`, `"price": [`, "100", "40.5")
	run("bands", "products", "price=", "size=").wants(t, cli.ExitOK, "numeric bands: no facet;")
	run("set", "products", file(t, "private.json", `{"privateFacets":["size"]}`)).wants(t, cli.ExitOK, "new events follow within 5 s\n")

	run("bands", "products", "price=50,0").wants(t, cli.ExitFailed, `the numbers of "price" must ascend, but 0 comes after 50`)
	for arg, want := range map[string]string{
		"price": "want each facet once", "=1": "want each facet once", "price=1,,2": `"" is not a number`, "price=cheap": `"cheap" is not a number`,
	} {
		run("bands", "products", arg).wants(t, cli.ExitUsage, want)
	}
	run("bands", "products", "price=1", "price=2").wants(t, cli.ExitUsage, "want each facet once")
	run("set", "products", file(t, "broken.json", `[`)).wants(t, cli.ExitFailed, "are not those of an index")
	run("set", "products").wants(t, cli.ExitUsage, "FILE is missing")
}

// A shop whose prices are in the log as they are gives them bands, and changes these.
func TestBandsOnAnEngine(t *testing.T) {
	s := startEngine(t, stack.Options{ConfigTTL: time.Millisecond})
	strategy := file(t, "strategy.json", `{"eventsScoring":[{"eventName":"Seen","eventType":"view","score":1}],
		"facetsScoring":[{"facetName":"price","score":1}],"personalizationImpact":50}`)
	affinity(t, "", "strategy", "set", strategy, "--url", s.URL).wants(t, cli.ExitOK)
	now := s.Backends.Now().UnixMilli()
	seen := fmt.Sprintf(`{"eventType":"view","eventName":"Seen","index":"i","userToken":"u","timestamp":%d,"objectIDs":["1","2","3","gone"]}`, now-1000)
	objects := file(t, "objects.ndjson", `{"objectID":"1","price":59.9}`, `{"objectID":"2","price":"60"}`, `{"objectID":"3","price":"ask"}`)
	affinity(t, "", "import", "--index", "i", "--objects", objects, file(t, "events.ndjson", seen), "--url", s.URL).wants(t, cli.ExitOK)
	has := func(scores map[string]float64) {
		t.Helper()
		settleBands(t, s)
		compare(t, s, []realProfile{{"u", now - 1000, map[string]map[string]float64{"price": scores}}})
	}
	has(map[string]float64{"59.9": 1, "60": 1, "ask": 1})
	affinity(t, "", "reenrich", "--bands", "--url", s.URL).wants(t, cli.ExitFailed, "No index of the app has numericBands")
	affinity(t, "", "reenrich", "--bands", "--dry-run").wants(t, cli.ExitUsage, "cannot both be given")

	settings := file(t, "settings.json", `{"attributesForFaceting":["price"],"numericBands":{"price":[0,50,100]}}`)
	affinity(t, "", "index", "set", "i", settings, "--url", s.URL).wants(t, cli.ExitOK)
	has(map[string]float64{"50-100": 2})
	affinity(t, "", "index", "bands", "i", "price=60", "--url", s.URL).wants(t, cli.ExitOK)
	has(map[string]float64{"<60": 1, "60+": 1})
	affinity(t, "", "reenrich", "--bands", "--url", s.URL).wants(t, cli.ExitOK, "1 with unknown objects or earlier numeric bands: 0 resolved now, 1 still unknown\n")
	affinity(t, "", "index", "bands", "i", "price=", "--url", s.URL).wants(t, cli.ExitOK)
	has(map[string]float64{"59.9": 1, "60": 1, "ask": 1})
	affinity(t, "", "audit", "--url", s.URL).wants(t, cli.ExitOK)
}

// settleBands waits until the tasks that are due, the re-enrichments and their messages are
// done.
func settleBands(t *testing.T, s *stack.Stack) {
	t.Helper()
	settle(t, s) // the settings' task has started a job
	poll := time.NewTicker(time.Millisecond)
	defer poll.Stop()
	for {
		jobs, err := s.Backends.Reenrich.Jobs.Unfinished(t.Context(), "demo")
		must(t, err)
		if len(jobs) == 0 {
			break
		}
		<-poll.C
	}
	settle(t, s)
}
