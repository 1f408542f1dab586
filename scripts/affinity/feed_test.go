package main

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/local/stack"
)

// TestFeedCommands keeps definitions of a real engine.
func TestFeedCommands(t *testing.T) {
	t.Parallel()
	s := startEngine(t, stack.Options{ConfigTTL: time.Millisecond})
	feed := func(args ...string) ran { return affinity(t, "", append([]string{"feed", "--url", s.URL}, args...)...) }
	batch := map[string]any{"requests": []any{
		map[string]any{"action": "addObject", "body": map[string]any{"objectID": "1", "at": "2026-11-20"}},
		map[string]any{"action": "addObject", "body": map[string]any{"objectID": "2", "at": "some day"}},
	}}
	if _, err := post(t.Context(), s, "/1/indexes/posts/batch", batch); err != nil {
		t.Fatal(err)
	}
	feed("list").wants(t, cli.ExitOK)
	feed("show", "news").wants(t, cli.ExitFailed, "show feed news", "404 Feed does not exist")
	feed("set", "news", "--index", "posts", "--date", "at", "--max-age-days", "30", "--where", "a:b|a:c", "--where", "d:e", "--seen", "demote",
		"--diversity-facet", "a", "--max-per-value", "2").wants(t, cli.ExitOK, "feed news, version 1: the objects of index posts by at, at most 30 days old, with a:b or a:c and d:e\n")
	for { // the job waits until every function knows the attribute
		unfinished, err := s.Backends.DateRows.Jobs.Unfinished(t.Context(), "demo")
		must(t, err)
		if len(unfinished) == 0 {
			break
		}
		must(t, s.Idle(t.Context()))
		time.Sleep(5 * time.Millisecond)
	}
	feed("show", "news").wants(t, cli.ExitOK, "feed news, version 1", "which lists the objects by date, is done: 2 objects read, 1 without a readable date\n")
	feed("list").wants(t, cli.ExitOK, "FEED  INDEX  DATE  VERSION\nnews  posts  at    1\n")
	r := feed("show", "news", "--json")
	r.wants(t, cli.ExitOK)
	var answer api.Feed
	if err := json.Unmarshal([]byte(r.out), &answer); err != nil || len(answer.Where) != 2 || len(answer.Where[0]) != 2 || answer.Diversity == nil || answer.Seen != "demote" {
		t.Errorf("--json printed %q (%v), want the engine's answer", r.out, err)
	}
	feed("set", "news", "--index", "posts", "--date", "at", "--where", "News").wants(t, cli.ExitFailed, "set feed news", "422 where[0] must have the form facet:value")
	feed("delete", "news").wants(t, cli.ExitOK, "feed news is deleted\n")
	feed("delete", "news").wants(t, cli.ExitFailed, "delete feed news", "404")
	for _, args := range [][]string{
		{"set"}, {"set", "news"}, {"set", "news", "--index", "posts"}, {"set", "news", "--date", "at"}, {"show"}, {"delete"}, {"list", "news"},
		{"set", "news", "--index", "posts", "--date", "at", "--max-age-days", "0"},
	} {
		feed(args...).wants(t, cli.ExitUsage)
	}
}
