package main

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/scripts/affinity/wordpress"
	"github.com/affinityengine/affinity/scripts/affinity/wordpress/wordpresstest"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/local/stack"
)

// TestWordPressSync kills a sync in the middle, and lets another one finish it.
func TestWordPressSync(t *testing.T) {
	t.Parallel()
	engine, site := startEngine(t, stack.Options{}), wordpresstest.New(t, 25)
	state := filepath.Join(t.TempDir(), "state.json")
	args := []string{"wordpress", "sync", "--url", engine.URL, "--site", site.URL, "--state", state, "--per-page", "10"}

	reached, release := make(chan struct{}), make(chan struct{})
	defer close(release)
	site.Reset(func(_ http.ResponseWriter, r *http.Request, _ int) bool {
		if r.URL.Query().Get("page") != "2" {
			return false
		}
		select {
		case reached <- struct{}{}:
			<-release
			return true
		case <-release:
			return false
		}
	})
	killed := exec.CommandContext(t.Context(), os.Args[0], args...)
	killed.Env, killed.Stderr = append(os.Environ(), asTool+"=1"), os.Stderr
	must(t, killed.Start())
	<-reached
	affinity(t, "", args...).wants(t, 1, "another sync with the state "+state+" is under way")
	must(t, killed.Process.Kill())
	_ = killed.Wait() // the error is that it was killed
	site.Reset(nil)

	var sum wordpress.Summary
	r := affinity(t, "", append(args, "--json")...)
	r.wants(t, 0)
	must(t, json.Unmarshal([]byte(r.out), &sum))
	if sum.Listed != 25 || sum.Added != 15 || sum.Unchanged != 10 {
		t.Errorf("after the kill: %+v", sum)
	}
	c, err := client.New(client.Config{URL: engine.URL, App: "demo", Key: "demokey"})
	must(t, err)
	for id := range site.Posts {
		var got wordpress.Record
		record, err := c.Catalog().Get(t.Context(), "posts", strconv.FormatInt(id, 10))
		if err == nil {
			err = json.Unmarshal(record, &got)
		}
		if err != nil || got.WordPress != site.Raw(id) {
			t.Errorf("post %d: %v, %s", id, err, record)
		}
	}

	for _, of := range []string{"first", "again"} { // a feed that is there stays as it is
		affinity(t, "", append(args, "--feed", "blog")...).wants(t, 0)
		feed, err := c.Feeds().Get(t.Context(), "blog")
		want := api.FeedRequest{Index: "posts", Date: "publishedAt", Seen: "keep", Format: "wordpress"}
		if diff := cmp.Diff(want, feed.FeedRequest); err != nil || feed.Version != 1 || diff != "" {
			t.Errorf("%s: the feed is %+v, %v", of, feed, err)
		}
	}
	err = cli.Poll(t.Context(), time.Minute, func() (bool, error) { // the posts were there before the feed
		feed, err := c.Feeds().Get(t.Context(), "blog")
		return feed.Backfill == nil || feed.Backfill.State == api.JobDone, err
	})
	must(t, err)
	latest, err := c.Do(t.Context(), http.MethodGet, "/1/feeds/blog/latest?per_page=3", nil)
	want := "[" + site.Raw(25) + "," + site.Raw(24) + "," + site.Raw(23) + "]"
	if got := string(latest); err != nil || got != want { // not even a newline more
		t.Errorf("the feed's latest posts are %s, %v, want %s", got, err, want)
	}
	affinity(t, "", append(args, "--feed", "blog", "--index", "other")...).wants(t, 1, "the feed blog shows the index posts, not other")

	delete(site.Posts, 3)
	site.Posts[4].Password = "secret"
	affinity(t, "", args...).wants(t, 0, "24 posts listed, 0 added, 0 changed, 2 removed, 23 unchanged", "left out, password-protected: 1 post (4)")
	for _, id := range []string{"3", "4"} {
		if _, err := c.Catalog().Get(t.Context(), "posts", id); command.StatusOf(err) != http.StatusNotFound {
			t.Errorf("post %s is still there: %v", id, err)
		}
	}
	affinity(t, "", append(args, "--full")...).wants(t, 0, "23 added")
	clear(site.Posts)
	affinity(t, "", args...).wants(t, 1, "lists 0 posts", "--allow-mass-deletion")
	affinity(t, "", append(args, "--allow-mass-deletion")...).wants(t, 0, "23 removed")
}

func TestWordPressUsage(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	for _, test := range []struct {
		args, want string
		code       int
	}{
		{"", "--site is required", 2},
		{"--site blog.example.com", "the address of a site is http:// or https://", 2},
		{"--site https://a:b@blog.example.com", "the address of a site is", 2},
		{"--site https://blog.example.com --per-page 101", "must be from 1 to 100", 2},
		{"--site https://blog.example.com --index=", "--index must not be empty", 2},
		{"--site https://blog.example.com --retry-for 0s", "must be more than 0", 2},
		{"--site https://blog.example.com --user ann", "belong together", 2},
		{"--site http://blog.example.com --user ann --password x", "unencrypted", 2},
		{"--site http://127.0.0.1:1", "find the REST API of http://127.0.0.1:1/: the site does not answer", 1},
		{"--site http://127.0.0.1:1 --state /dev/null/x", "", 1},
		{"more", "unknown command", 2},
	} {
		args := append([]string{"wordpress", "sync"}, strings.Fields(test.args)...)
		affinity(t, "", args...).wants(t, test.code, test.want)
	}
	affinity(t, "", "wordpress").wants(t, 2, "needs a command")
	ctx, stop := context.WithCancel(t.Context())
	stop()
	affinityWith(t, ctx, "", func(*program) {}, "wordpress", "sync", "--site", wordpresstest.New(t, 1).URL).wants(t, 1, "interrupted")
}
