package wordpress_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/scripts/affinity/wordpress"
	"github.com/affinityengine/affinity/scripts/affinity/wordpress/wordpresstest"
	"github.com/affinityengine/affinity/shared/api"
)

func TestFirstSyncAndSame(t *testing.T) {
	t.Parallel()
	for _, plain := range []bool{false, true} {
		s := start(t, 25)
		s.site.Plain = plain
		s.site.Login = "reader:abcd efgh"
		sum := s.done(25, 0, 0)
		if sum.Listed != 25 {
			t.Errorf("%d posts listed", sum.Listed)
		}
		var got wordpress.Record
		must(t, json.Unmarshal(s.engine.records["7"], &got))
		want := wordpress.Record{
			ObjectID: "7", Title: "Post 7", URL: s.site.URL + "/2026/post-7/", PublishedAt: "2026-01-01T00:07:00Z", ModifiedAt: "2026-01-01T00:07:00Z",
			Categories: []string{"News & Views"}, Tags: []string{"sneakers", "tag 7"}, Author: "Ann O’Neil", WordPress: s.site.Raw(7),
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"categories", "tags", "author"}, s.engine.settings.AttributesForFaceting); diff != "" {
			t.Error(diff)
		}
		s.engine.writes = 0
		s.site.Reset(nil)
		sum = s.done(0, 0, 0)
		if sum.Unchanged != 25 || s.engine.writes != 0 {
			t.Errorf("the same posts again: %d writes, %+v", s.engine.writes, sum)
		}
		for _, asked := range s.site.Asked {
			if strings.Contains(asked, "orderby=modified") && !strings.Contains(asked, "modified_after=2026-01-01T00%3A20%3A00Z") {
				t.Errorf("the second run reads more than the latest posts: %s", asked)
			}
		}
	}
}

func TestChanges(t *testing.T) {
	t.Parallel()
	s := start(t, 30)
	s.site.Posts[28].Password = "secret" // protected from the start
	s.site.Posts[29].Status = "private"
	sum := s.done(28, 0, 0)
	if diff := cmp.Diff(map[string][]int64{"password-protected": {28}}, sum.LeftOut); diff != "" {
		t.Error(diff)
	}
	if s.engine.ever["28"] || s.engine.ever["29"] {
		t.Error("the engine held a protected or a private post for a moment")
	}
	later := wordpresstest.Start.Add(48 * time.Hour)
	steps := []struct {
		name                    string
		do                      func()
		added, changed, removed int
	}{
		{"new post", func() { s.site.Add(31) }, 1, 0, 0},
		{"edited", func() { s.site.Posts[3].Title, s.site.Posts[3].Modified = "New", later }, 0, 1, 0},
		{"deleted", func() { delete(s.site.Posts, 4) }, 0, 0, 1},
		{"trashed", func() { s.site.Posts[5].Status, s.site.Posts[5].Modified = "trash", later }, 0, 0, 1},
		{"made private", func() { s.site.Posts[6].Status = "private" }, 0, 0, 1},
		{"draft again", func() { s.site.Posts[7].Status = "draft" }, 0, 0, 1},
		{"got a password", func() { s.site.Posts[8].Password, s.site.Posts[8].Modified = "x", later }, 0, 0, 1},
		{"got a password unseen", func() { s.site.Posts[9].Password = "x" }, 0, 0, 1},
		{"lost its password", func() { s.site.Posts[9].Password = "" }, 1, 0, 0},
		{"restored", func() { s.site.Posts[5].Status = "publish" }, 1, 0, 0},
		// WordPress does not change modified when it publishes a scheduled post.
		{"scheduled long ago", func() { s.site.Add(32).Modified = wordpresstest.Start.Add(-time.Hour) }, 1, 0, 0},
		// Nor when a term gets another name: posts 1 to 3 have these names.
		{"renamed tag", func() { s.site.Names["tags"][2] = "renamed" }, 0, 1, 0},
		{"deleted tag", func() { delete(s.site.Names["tags"], 3) }, 0, 1, 0},
		{"edited at the first second", func() { s.site.Posts[1].Modified = wordpresstest.Start.Add(time.Second); s.site.Posts[1].Title = "1" }, 0, 1, 0},
		{"author married", func() { s.site.Names["users"][1] = "Ann Smith" }, 0, 26, 0},
		{"nothing", func() {}, 0, 0, 0},
	}
	for _, step := range steps {
		step.do()
		t.Log(step.name)
		s.done(step.added, step.changed, step.removed)
	}
	// A site that hides its authors keeps those that are known.
	s.site.Reset(func(w http.ResponseWriter, r *http.Request, _ int) bool {
		hidden := strings.Contains(r.URL.Path, "/users")
		if hidden {
			wordpresstest.Fail(w, http.StatusForbidden, "rest_user_cannot_view", "Sorry, you are not allowed to list users.")
		}
		return hidden
	})
	s.site.Add(40)
	s.done(1, 0, 0)
	if !strings.Contains(string(s.engine.records["1"]), "Ann Smith") || strings.Contains(string(s.engine.records["40"]), "Ann") {
		t.Error("hidden authors: records 1 and 40 are", string(s.engine.records["1"]), string(s.engine.records["40"]))
	}
	if !strings.Contains(strings.Join(s.warned, "\n"), "the site does not name its authors (") {
		t.Errorf("hidden authors: %q", s.warned)
	}
}

// TestShiftingPages changes the site between two pages.
func TestShiftingPages(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		do   func(s *wordpresstest.Site, number int)
	}{
		{"posts are edited while they are read", func(s *wordpresstest.Site, number int) {
			p := s.Posts[int64(number)]
			p.Modified = wordpresstest.Start.Add(time.Hour * time.Duration(24+number))
			p.Title = "Edited"
		}},
		{"posts are deleted while they are read", func(s *wordpresstest.Site, number int) { delete(s.Posts, int64(number)) }},
		{"posts are published while they are read", func(s *wordpresstest.Site, number int) {
			s.Add(int64(100 + number)).Modified = wordpresstest.Start.Add(-time.Hour)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := start(t, 45)
			s.site.Reset(func(_ http.ResponseWriter, r *http.Request, number int) bool {
				if strings.HasSuffix(r.URL.Path, "/posts") && number <= 9 { // the first listing and the beginning of the second
					s.site.Lock()
					test.do(s.site, number)
					s.site.Unlock()
				}
				return false
			})
			if _, err := s.run(); err != nil {
				t.Fatal(err)
			}
			s.inStep()
		})
	}
}

func TestMassDeletion(t *testing.T) {
	t.Parallel()
	s := start(t, 20)
	s.done(20, 0, 0)
	for id := int64(1); id <= 11; id++ {
		delete(s.site.Posts, id)
	}
	s.site.Add(21)
	sum, err := s.run()
	var refused *wordpress.MassDeletionError
	if !errors.As(err, &refused) || sum.Added != 1 || sum.Removed != 0 || len(s.engine.records) != 21 {
		t.Errorf("%v, %+v, %d records", err, sum, len(s.engine.records))
	}
	full := func(o *wordpress.Options) { o.Full = true }
	if _, err := s.run(full); !errors.As(err, &refused) || len(s.engine.records) != 21 {
		t.Errorf("--full: %v, %d records", err, len(s.engine.records))
	}
	s.done(0, 0, 11, func(o *wordpress.Options) { o.AllowMassDeletion = true })
	clear(s.site.Posts)
	if _, err := s.run(full); !errors.As(err, &refused) || len(s.engine.records) != 10 {
		t.Errorf("--full of an empty site: %v, %d records", err, len(s.engine.records))
	}
}

func TestLostState(t *testing.T) {
	t.Parallel()
	s := start(t, 12)
	s.done(12, 0, 0)
	delete(s.site.Posts, 12)
	must(t, os.Remove(s.state))
	if _, err := s.run(); err == nil || !strings.Contains(err.Error(), "--full") {
		t.Errorf("without its state: %v", err)
	}
	full := func(o *wordpress.Options) { o.Full = true }
	// The engine goes away before the index is cleared: the next run still does it.
	s.engine.down = errors.New("away")
	if _, err := s.run(full); err == nil || len(s.engine.records) != 12 {
		t.Errorf("%v, %d records", err, len(s.engine.records))
	}
	s.engine.down = nil
	s.done(11, 0, 0)
	// The engine lost its data, or the index was cleared.
	clear(s.engine.records)
	s.done(11, 0, 0)
	if got := strings.Join(s.warned, "\n"); !strings.Contains(got, "does not hold post 11, which the state file names") {
		t.Errorf("warnings: %s", got)
	}
	// Another sync's state.
	if _, err := s.run(func(o *wordpress.Options) { o.Target.Index = "other" }); err == nil || !strings.Contains(err.Error(), "name another file with --state") {
		t.Errorf("another's state: %v", err)
	}
	for text, want := range map[string]string{"{": "is not a state file", `{"version":2}`: "is of another version of this tool: 2, not 1"} {
		must(t, os.WriteFile(s.state, []byte(text), 0o600))
		if _, err := s.run(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a state file with %s: %v, want %q", text, err, want)
		}
	}
}

// The site goes away before --full has read it: the next run still clears the
// index of what no state knows.
func TestLostStateOfFailedFull(t *testing.T) {
	t.Parallel()
	s := start(t, 5)
	s.done(5, 0, 0)
	delete(s.site.Posts, 5)
	must(t, os.Remove(s.state))
	s.site.Reset(func(w http.ResponseWriter, r *http.Request, _ int) bool {
		refuses := r.Method == http.MethodGet
		if refuses {
			wordpresstest.Fail(w, http.StatusForbidden, "", "")
		}
		return refuses
	})
	if _, err := s.run(func(o *wordpress.Options) { o.Full = true }); err == nil {
		t.Error("a site that refuses: no error")
	}
	s.site.Reset(nil)
	s.done(4, 0, 0)
	must(t, os.Remove(s.state))
	clear(s.site.Posts)
	var refused *wordpress.MassDeletionError
	if _, err := s.run(func(o *wordpress.Options) { o.Full = true }); !errors.As(err, &refused) || len(s.engine.records) != 4 {
		t.Errorf("--full of an empty site without a state: %v, %d records", err, len(s.engine.records))
	}
}

// A post that the list skips leaves only if the site does not give it either, or
// gives it as protected.
func TestListThatSkipsPosts(t *testing.T) {
	t.Parallel()
	s := start(t, 12)
	s.done(12, 0, 0)
	delete(s.site.Posts, 2)
	s.site.Posts[3].Password = "x"
	s.site.Reset(func(w http.ResponseWriter, r *http.Request, _ int) bool {
		lists := r.URL.Query().Get("orderby") == "id"
		if lists {
			w.Header().Set("X-WP-TotalPages", "1")
			fmt.Fprint(w, `[{"id":1,"modified_gmt":"2026-01-01T00:01:00"},{"id":5,"modified_gmt":"2026-01-01T00:05:00"}]`)
		}
		return lists
	})
	s.done(0, 0, 2)
}

// A post that only the list of all posts shows stands alone on its last page. A
// post before it leaves while the list is read, and with it the last page.
func TestLastPageLeaves(t *testing.T) {
	t.Parallel()
	s := start(t, 20)
	s.done(20, 0, 0)
	s.site.Add(21).Modified = wordpresstest.Start.Add(-time.Hour)
	s.site.Reset(func(_ http.ResponseWriter, r *http.Request, _ int) bool {
		if q := r.URL.Query(); q.Get("orderby") == "id" && q.Get("page") == "3" {
			s.site.Lock()
			delete(s.site.Posts, 1)
			s.site.Unlock()
		}
		return false
	})
	s.done(1, 0, 1)
}

// TestDeathAtEveryBatch ends runs at each batch, before or after the engine has
// applied it. The posts of that batch are deleted before the next run.
func TestDeathAtEveryBatch(t *testing.T) {
	t.Parallel()
	for at := 1; ; at++ {
		finished := false
		for _, run := range []struct{ applies, full bool }{{false, false}, {true, false}, {true, true}} {
			s := start(t, 9)
			s.done(9, 0, 0)
			for id := int64(1); id <= 5; id++ {
				s.site.Posts[id].Title, s.site.Posts[id].Modified = "New", wordpresstest.Start.Add(48*time.Hour)
				s.site.Add(100 + id)
			}
			delete(s.site.Posts, 9)
			s.engine.batches, s.engine.dies, s.engine.applies = 0, at, run.applies
			_, err := s.run(func(o *wordpress.Options) { o.Full = run.full })
			finished = finished || err == nil
			for id := int64(4); id <= 5; id++ {
				delete(s.site.Posts, id)
				delete(s.site.Posts, 100+id)
			}
			s.engine.dies = 0
			if _, err := s.run(); err != nil {
				t.Fatalf("batch %d, %+v: %v", at, run, err)
			}
			s.inStep()
			if entries, err := os.ReadDir(filepath.Dir(s.state)); err != nil || len(entries) != 2 {
				t.Errorf("files are left: %v, %v", entries, err)
			}
		}
		if finished {
			if at < 3 {
				t.Errorf("a run has %d batches only", at-1)
			}
			return
		}
	}
}

func TestHugeAndHostilePosts(t *testing.T) {
	t.Parallel()
	s := start(t, 6)
	s.site.Posts[2].Content = strings.Repeat("é", 20_000) // 7 bytes each as PHP writes them in a string
	s.site.Posts[3].Title = "<em>O&#8217;Neil</em> &amp; \u202e&lt;script&gt;\" 5 < 6\n\x1b[2J 👟"
	s.site.Names["tags"][3] = "R&amp;D: \"x\""
	s.site.Posts[4].Title = strings.Repeat("t", api.MaxRecord)
	s.site.Posts[5].Tags = []int64{1, 1, 999, 5}
	s.site.Posts[5].Link = "javascript://example.com/%0aalert(1)"
	s.engine.refuses = "6"
	sum, err := s.run()
	must(t, err)
	want := wordpress.Summary{
		Site: s.site.URL, Index: "posts", Listed: 6, Added: 4, Refused: true, WithoutWordPress: []int64{2},
		LeftOut: map[string][]int64{"too large even without its WordPress form": {4}, "refused by the engine": {6}},
	}
	if diff := cmp.Diff(want, sum); diff != "" {
		t.Error(diff)
	}
	record := func(id string) (r wordpress.Record) {
		if err := json.Unmarshal(s.engine.records[id], &r); err != nil {
			t.Error(err)
		}
		return r
	}
	if r := record("2"); r.WordPress != "" || r.Title != "Post 2" {
		t.Errorf("a huge post: %.200q", r)
	}
	if r := record("3"); r.Title != "O’Neil & \u202e<script>\" 5 < 6 [2J 👟" || r.WordPress != s.site.Raw(3) || !slices.Contains(r.Tags, `R&D: "x"`) {
		t.Errorf("a hostile title: %q", r)
	}
	if r := record("5"); !slices.Equal(r.Tags, []string{"sneakers", "tag 5"}) || r.URL != "" {
		t.Errorf("tags %q, link %q", r.Tags, r.URL)
	}
}
