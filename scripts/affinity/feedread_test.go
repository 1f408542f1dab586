package main

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/load"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/stack"
)

// readFeed reads a feed of a real engine, and again while the engine says that it is too busy: a
// page waits half a second for its records, which a busy machine may take longer to read.
func readFeed(t *testing.T, args ...string) ran {
	t.Helper()
	for {
		r := affinity(t, "", append([]string{"feed", "read"}, args...)...)
		if !strings.Contains(r.err, ": 503 ") {
			return r
		}
	}
}

// TestFeedRead walks through a feed of a real engine.
func TestFeedRead(t *testing.T) {
	t.Parallel()
	s := startEngine(t, stack.Options{RetentionDays: 90, ConfigTTL: time.Millisecond})
	f := config.Feed{Name: "news", Index: "posts", Date: "at", Definition: `{"index":"posts","date":"at"}`}
	if _, _, err := s.Backends.CachedConfig.SetFeed(t.Context(), "demo", f, time.Now()); err != nil {
		t.Fatal(err)
	}
	put := func(id, at string) map[string]any {
		return map[string]any{"action": "addObject", "body": map[string]any{"objectID": id, "at": at}}
	}
	posts := []any{put("old", "2020-01-01"), put("new", "2021-01-01")}
	if _, err := post(t.Context(), s, "/1/indexes/posts/batch", map[string]any{"requests": posts}); err != nil {
		t.Fatal(err)
	}
	r := readFeed(t, "news", "--url", s.URL, "--order", "latest", "--limit", "1")
	r.wants(t, cli.ExitOK, `{"at":"2021-01-01","objectID":"new"}`)
	next := regexp.MustCompile(`--cursor (\S+)`).FindStringSubmatch(r.out)
	if next == nil {
		t.Fatalf("printed %q, want the next page", r.out)
	}
	readFeed(t, "news", "--url", s.URL, "--order", "latest", "--cursor", next[1], "--json").
		wants(t, cli.ExitOK, `"objectID":"old"`, `"cursor":null`)
	readFeed(t, "news", "--url", s.URL, "--order", "latest", "--exclude", "new,none", "--limit", "1", "--json").
		wants(t, cli.ExitOK, `"items":[{"at":"2020-01-01","objectID":"old"}],"cursor":null`)
	readFeed(t, "news", "--url", s.URL, "--user", "ann").wants(t, cli.ExitOK, "by catalog: no event")
	readFeed(t, "sport", "--url", s.URL).wants(t, cli.ExitFailed, "404 Feed sport does not exist")
	readFeed(t, "news", "--url", s.URL, "--cursor", "AAAA").wants(t, cli.ExitFailed, "422 cursor is damaged")
	affinity(t, "", "feed", "read").wants(t, cli.ExitUsage, "NAME")
	readFeed(t, "news", "--order", "oldest").wants(t, cli.ExitUsage, "must be suggested or latest")
	readFeed(t, "news", "--limit", "101").wants(t, cli.ExitUsage, "must be 1 to 100")
}

// TestLoadFeeds reads pages of a feed that the run sets itself.
func TestLoadFeeds(t *testing.T) {
	t.Parallel()
	s := startEngine(t, stack.Options{RetentionDays: 90, ConfigTTL: time.Millisecond})
	r := affinity(t, "", "load", "--url", s.URL, "--feeds", "40", "--for", "250ms", "--rate", "20", "--candidates", "30", "--users", "20", "--json")
	r.wants(t, cli.ExitOK)
	var report load.Report
	if err := json.Unmarshal([]byte(r.out), &report); err != nil {
		t.Fatalf("--json printed %q: %v", r.out, err)
	}
	if f := report.Feeds; f.Answered != 10 || f.Errors+f.NotSent != 0 || f.Fallback > 10 {
		t.Errorf("feeds %+v, want 10 answered: %s", f, report.FirstError)
	}
	affinity(t, "", "load", "--feeds", "-1", "--rate", "1", "--for", "1s").wants(t, cli.ExitUsage, "--feeds -1: must be 0 to")
	affinity(t, "", "load", "--feeds", "1", "--candidates", "5001").wants(t, cli.ExitUsage, "--candidates 5001")
}
