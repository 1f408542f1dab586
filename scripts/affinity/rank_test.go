package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/local/stack"
)

// TestRankCommand ranks on a real engine.
func TestRankCommand(t *testing.T) {
	t.Parallel()
	s := startEngine(t, stack.Options{RetentionDays: 90})
	const strategy = `{"eventsScoring":[{"eventName":"Seen","eventType":"view","score":10}],"facetsScoring":[{"facetName":"color","score":3}],
		"personalizationImpact":50,"ranking":{"contrast":"none","session":{"weight":0},"popularity":{"weight":0},"pairs":{"weight":0}}}`
	affinity(t, strategy, "strategy", "set", "-", "--url", s.URL).wants(t, cli.ExitOK)
	objects := []any{map[string]any{"action": "addObject", "body": map[string]any{"objectID": "red", "color": "Red"}},
		map[string]any{"action": "addObject", "body": map[string]any{"objectID": "red2", "color": "Red"}},
		map[string]any{"action": "addObject", "body": map[string]any{"objectID": "blue", "color": "Blue"}}}
	if _, err := post(t.Context(), s, "/1/indexes/i/batch", map[string]any{"requests": objects}); err != nil {
		t.Fatal(err)
	}
	event := map[string]any{"eventType": "view", "eventName": "Seen", "index": "i", "userToken": "ann", "objectIDs": []string{"red"},
		"timestamp": time.Now().Add(-time.Hour).UnixMilli()}
	if _, err := post(t.Context(), s, "/1/events", map[string]any{"events": []any{event}}); err != nil {
		t.Fatal(err)
	}
	must(t, s.Idle(t.Context()))
	rank := func(more ...string) []string {
		return append([]string{"rank", "--url", s.URL, "--user", "ann", "--index", "i"}, more...)
	}
	affinity(t, "", rank("blue", "red", "none")...).wants(t, cli.ExitOK, "ann  strategy version 1  no statistics of the index",
		"  1  1.000  red   likes color:Red\n  2  0.000  blue  nothing speaks for it\n  3  0.000  none  nothing speaks for it\n")
	mistyped := affinity(t, "", "rank", "--url", s.URL, "--user", "ann", "--index", "nosuch", "red")
	if mistyped.wants(t, cli.ExitOK, "nothing speaks for it"); !strings.Contains(mistyped.err, "index nosuch holds no object: is that its name?") {
		t.Errorf("an index without objects: %s", mistyped.err)
	}
	affinity(t, "blue\n\n red \n", rank("--limit", "1", "--explain", "-")...).wants(t, cli.ExitOK,
		"  1  1.000  red  affinity 1.000 (color:Red 1.000)\n")
	affinity(t, "", rank("--seen", "exclude", "red", "blue")...).wants(t, cli.ExitOK, "  1  0.000  blue  nothing speaks for it\n")
	affinity(t, "", rank("--exclude", "red,red2", "red", "blue")...).wants(t, cli.ExitOK, "  1  0.000  blue  nothing speaks for it\n")
	affinity(t, "", rank("--seen", "demote", "red")...).wants(t, cli.ExitOK, "  1  0.750  red  likes color:Red; seen before\n")
	affinity(t, "", rank("--diverse-by", "color", "--max-per-value", "1", "--explain", "red", "red2", "blue")...).wants(t, cli.ExitOK,
		"  1  1.000  red   affinity 1.000 (color:Red 1.000)\n  2  0.000  blue  \n  3  0.000  red2  affinity 1.000 (color:Red 1.000) + "+
			"diversity -1.000 (color:Red -1.000)\n")
	affinity(t, "", rank("--lambda", "0.8", "red", "red2")...).wants(t, cli.ExitOK, "  2  0.750  red2  likes color:Red; too like red\n")
	affinity(t, "", "rank", "--url", s.URL, "--user", "bob", "--index", "i", "red").wants(t, cli.ExitOK,
		"no event of this user counts: the order is the same for all such users", "  1  0.000  red  nothing speaks for it\n")
	affinity(t, "", rank("--strategy", "9", "red")...).wants(t, cli.ExitFailed, "rank for ann", "422 strategy 9 does not exist")
	draft := file(t, "draft.json", `{"eventsScoring":[{"eventName":"Seen","eventType":"view","score":10}],"facetsScoring":[],"personalizationImpact":50}`)
	affinity(t, "", rank("--draft", draft, "red")...).wants(t, cli.ExitOK, "ann  no published strategy  ", "  1  0.000  red  nothing speaks for it\n")
	affinity(t, "{}", rank("--draft", "-", "red")...).wants(t, cli.ExitFailed, "422 draft: eventsScoring is required")
	affinity(t, "", rank("--draft", draft, "--strategy", "1", "red")...).wants(t, cli.ExitUsage, "--draft excludes --strategy")
	affinity(t, "", rank("--half-life", "30", "red")...).wants(t, cli.ExitFailed, "422 halfLife must be one of the strategy's halfLives")

	recommend := func(more ...string) ran {
		return affinity(t, "", append([]string{"recommend", "--url", s.URL, "--index", "i"}, more...)...)
	}
	recommend("for-you", "--user", "ann", "--where", "color:Red").wants(t, cli.ExitOK, "for-you for ann  no statistics of the index  ",
		"  1  1.000  red   catalog  likes color:Red\n  2  1.000  red2  catalog  likes color:Red\n")
	recommend("related", "--object", "red", "--explain", "--limit", "1").wants(t, cli.ExitOK, "related for a guest", "  1  0.000  blue  catalog  \n")
	recommend("next", "--object", "red", "--exclude", "red2,blue").wants(t, cli.ExitOK, "next for a guest", "  nothing: the index holds no object that meets the request")
	recommend("for-you", "--where", "color:").wants(t, cli.ExitFailed, "recommend for-you", "422 where ends at byte 7: want a value after the colon")
	for _, args := range [][]string{{}, {"similar"}, {"related"}, {"for-you", "--object", "red"}, {"for-you", "--limit", "0"}, {"for-you", "--seen", "hide"}, {"for-you", "next"}} {
		recommend(args...).wants(t, cli.ExitUsage)
	}
	r := affinity(t, "", rank("--json", "--impact", "100", "red")...)
	r.wants(t, cli.ExitOK)
	var answer api.RankAnswer
	if err := json.Unmarshal([]byte(r.out), &answer); err != nil || len(answer.Items) != 1 || answer.Items[0].Features != nil {
		t.Errorf("--json printed %q (%v), want the engine's answer", r.out, err)
	}
}

func TestRankUsage(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{}, {"red"}, {"--user", "u", "red"}, {"--index", "i", "red"}, {"--user", "u", "--index", "i"},
		{"--user", "u", "--index", "i", "--limit", "0", "red"}, {"--user", "u", "--index", "i", "--impact", "101", "red"},
		{"--user", "u", "--index", "i", "--impact", "-1", "red"}, {"--user", "u", "--index", "i", "--half-life", "x", "red"},
		{"--user", "u", "--index", "i", "--seen", "hide", "red"}, {"--user", "u", "--index", "i", "--strategy", "0", "red"},
		{"--user", "u", "--index", "i", "--lambda", "0", "red"}, {"--user", "u", "--index", "i", "--lambda", "1.5", "red"},
		{"--user", "u", "--index", "i", "--max-per-value", "2", "red"}, {"--user", "u", "--index", "i", "--diverse-by", "", "red"},
		{"--user", "u", "--index", "i", "--diverse-by", "b", "--max-per-value", "0", "red"},
	} {
		affinity(t, "", append([]string{"rank"}, args...)...).wants(t, cli.ExitUsage)
	}
}

// The reason names every feature in words, the largest first.
func TestRankReasons(t *testing.T) {
	t.Parallel()
	engine := fixedAnswer(t, 200, `{"id":"1","took":2,"strategyVersion":3,"crowdAsOf":"2026-11-20T12:00:00.000Z","fallback":null,"items":[
		{"objectID":"a\u001bb","score":1.5,"features":[{"name":"relevancy","value":0.1},{"name":"affinity","value":0.4,"parts":[
		{"name":"brand:Apple","value":0.2},{"name":"color:Red","value":0.1},{"name":"size:L","value":0.06},{"name":"tags:x","value":0.04}]},
		{"name":"session","value":0.5,"parts":[{"name":"color:Red","value":0.5}]},{"name":"popularity","value":0.3},
		{"name":"pairs","value":0.6,"parts":[{"name":"case-1","value":0.6}]},{"name":"freshness","value":0.05},{"name":"seen","value":-0.25}]}]}`)
	affinity(t, "", "rank", "--user", "u", "--index", "i", "a", "--url", engine).wants(t, cli.ExitOK, "statistics as of 2026-11-20T12:00:00Z  2 ms\n",
		"  1  1.500  a\uFFFDb  others went from case-1 to it; lately color:Red; likes brand:Apple, color:Red, size:L, 1 more; popular; "+
			"matches the search; new; seen before\n")
	affinity(t, "", "rank", "--user", "u", "--index", "i", "a", "--url", engine, "--explain").wants(t, cli.ExitOK,
		"relevancy 0.100 + affinity 0.400 (brand:Apple 0.200, color:Red 0.100, size:L 0.060, tags:x 0.040) + session 0.500 (color:Red 0.500) + ")
}
