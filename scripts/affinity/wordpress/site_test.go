package wordpress_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/scripts/affinity/wordpress"
	"github.com/affinityengine/affinity/scripts/affinity/wordpress/wordpresstest"
)

// TestFaultySite tries answers that are not a page of posts: nothing may leave.
func TestFaultySite(t *testing.T) {
	t.Parallel()
	busy := func(status int, after string) func(http.ResponseWriter, int) bool {
		return func(w http.ResponseWriter, number int) bool {
			if number%2 == 0 {
				return false
			}
			w.Header().Set("Retry-After", after)
			wordpresstest.Fail(w, status, "", "")
			return true
		}
	}
	writes := func(contentType, body string) func(http.ResponseWriter, int) bool {
		return func(w http.ResponseWriter, _ int) bool {
			w.Header().Set("Content-Type", contentType)
			fmt.Fprint(w, body)
			return true
		}
	}
	for _, test := range []struct {
		name   string
		answer func(w http.ResponseWriter, number int) bool
		want   string // of the error; "" succeeds
	}{
		{"429 now and then", busy(http.StatusTooManyRequests, "0"), ""},
		{"503 now and then", busy(http.StatusServiceUnavailable, time.Now().Add(-time.Minute).UTC().Format(http.TimeFormat)), ""},
		{"429 for an hour", func(w http.ResponseWriter, _ int) bool {
			w.Header().Set("Retry-After", "3600")
			wordpresstest.Fail(w, http.StatusTooManyRequests, "", "")
			return true
		}, "gave up after trying again for 1m0s: 429 Too Many Requests"},
		{"body cut off", func(w http.ResponseWriter, number int) bool {
			if number%2 == 1 {
				w.Header().Set("Content-Length", "5000")
				fmt.Fprint(w, `[{"id":1`)
			}
			return number%2 == 1
		}, ""},
		{"body cut off unsaid", func(w http.ResponseWriter, number int) bool {
			if number%2 == 1 {
				fmt.Fprint(w, `[{"id":1`)
			}
			return number%2 == 1
		}, ""},
		{"HTML", writes("text/html; charset=UTF-8", "<html>Briefly unavailable for scheduled maintenance."), "a page of HTML and not JSON"},
		{"an object", writes("application/json", `{"posts":[]}`), "not what WordPress sends"},
		{"an empty list", writes("application/json", `[]`), "lists 0 posts, and 12 of the 12 posts in the index are not among them"},
		{"other things", func(w http.ResponseWriter, _ int) bool {
			w.Header().Set("X-WP-TotalPages", "1")
			fmt.Fprint(w, `[{"id":0},7]`)
			return true
		}, "holds something else"},
		{"the same page for ever", writes("application/json", `[{"id":99,"status":"draft"}]`), "a cache before it ignores the query"},
		{"refused", func(w http.ResponseWriter, _ int) bool {
			wordpresstest.Fail(w, http.StatusForbidden, "rest_forbidden", "Sorry, no.")
			return true
		}, "403 Sorry, no. (rest_forbidden)"},
		{"refused at length", func(w http.ResponseWriter, _ int) bool {
			wordpresstest.Fail(w, http.StatusForbidden, "c", strings.Repeat("m", 5000)+"end")
			return true
		}, ": 403 " + strings.Repeat("m", 300) + " (c)"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := start(t, 12)
			s.done(12, 0, 0)
			s.site.Add(13)
			s.site.Reset(func(w http.ResponseWriter, r *http.Request, number int) bool {
				return r.Method == http.MethodGet && test.answer(w, number)
			})
			_, err := s.run()
			if test.want == "" {
				if err != nil {
					t.Error(err)
				}
				s.inStep()
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
			if len(s.engine.records) < 12 {
				t.Errorf("%d posts are left of 12", len(s.engine.records))
			}
		})
	}
}

// A plugin that takes the status out of posts empties no index.
func TestPostsWithoutStatus(t *testing.T) {
	t.Parallel()
	s := start(t, 6)
	s.done(6, 0, 0)
	s.site.Reset(func(w http.ResponseWriter, r *http.Request, _ int) bool {
		if !r.URL.Query().Has("orderby") || r.URL.Query().Has("_fields") {
			return false
		}
		var posts []string
		for id := range s.site.Posts {
			posts = append(posts, strings.Replace(s.site.Raw(id), `"status":"publish",`, "", 1))
		}
		w.Header().Set("X-WP-TotalPages", "1")
		fmt.Fprintf(w, "[%s]", strings.Join(posts, ","))
		return true
	})
	sum := s.done(0, 0, 0)
	if got := sum.LeftOut["not what WordPress sends as a post"]; len(got) != 6 {
		t.Errorf("left out: %v", sum.LeftOut)
	}
	var refused *wordpress.MassDeletionError
	if _, err := s.run(func(o *wordpress.Options) { o.Full = true }); !errors.As(err, &refused) || len(s.engine.records) != 6 {
		t.Errorf("--full: %v, %d records", err, len(s.engine.records))
	}
}

// A cache that ignores include would make posts and names seem to be missing.
func TestAnswerToAnotherRequest(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ kind, answer string }{{"posts", `[{"id":5}]`}, {"tags", `[{"id":77,"name":"x"}]`}} {
		s := start(t, 6)
		s.done(6, 0, 0)
		delete(s.site.Posts, 3)
		s.site.Reset(func(w http.ResponseWriter, r *http.Request, _ int) bool {
			other := strings.HasSuffix(r.URL.Path, "/"+test.kind) && r.URL.Query().Has("include")
			if other {
				fmt.Fprint(w, test.answer)
			}
			return other
		})
		if _, err := s.run(); err == nil || !strings.Contains(err.Error(), test.kind+" that were not asked for") || len(s.engine.records) != 6 {
			t.Errorf("%s: %v, %d records", test.kind, err, len(s.engine.records))
		}
	}
}

func TestEndlessSite(t *testing.T) {
	s := start(t, 1)
	wordpress.LimitPosts(t, 95)
	s.site.Intercept = func(w http.ResponseWriter, r *http.Request, number int) bool {
		if strings.HasSuffix(r.URL.Path, "/posts") {
			fmt.Fprintf(w, `[{"id":%d,"status":"draft"}]`, number)
		}
		return strings.HasSuffix(r.URL.Path, "/posts")
	}
	if _, err := s.run(); err == nil || !strings.Contains(err.Error(), "page after page, for more than 95 posts") {
		t.Error(err)
	}
}

func TestRedirects(t *testing.T) {
	t.Parallel()
	other := wordpresstest.New(t, 3)
	for _, test := range []struct{ name, to, want string }{
		{"another host", other.URL, "a redirect is not followed"},
		{"another host's API", "", "is at another host"},
		{"the host itself", "same", ""},
		{"for ever", "loop", "more than 5 in a row"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := start(t, 3)
			s.site.Intercept = func(w http.ResponseWriter, r *http.Request, number int) bool {
				switch {
				case test.to == "":
					w.Header().Set("Link", `<https://other.example/wp-json/>; rel="https://api.w.org/"`)
					return r.URL.Path == "/"
				case test.to == "same" && number > 1 && r.URL.Query().Has("moved"):
					return false
				}
				to := r.URL
				if test.to == other.URL {
					http.Redirect(w, r, other.URL+to.RequestURI(), http.StatusMovedPermanently)
					return true
				}
				query := to.Query()
				query.Set("moved", "1")
				to.RawQuery = query.Encode()
				http.Redirect(w, r, to.RequestURI(), http.StatusFound)
				return true
			}
			_, err := s.run()
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
			if len(other.Asked) > 0 {
				t.Errorf("the other host was asked %q", other.Asked)
			}
		})
	}
}
