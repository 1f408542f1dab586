package wordpress_test

import (
	"compress/gzip"
	"errors"
	"fmt"
	"net/http"
	"slices"
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
		{"connection cut now and then", func(_ http.ResponseWriter, number int) bool {
			if number%3 > 0 { // the transport repeats the first one by itself
				panic(http.ErrAbortHandler)
			}
			return false
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

func TestRedirectsToHTTPS(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		from, to string
		follows  bool
	}{
		{"http://blog.example.com/", "https://blog.example.com/x", true},
		{"https://blog.example.com/", "http://blog.example.com/", false},
		{"http://blog.example.com/", "https://www.blog.example.com/", false},
		{"http://blog.example.com/", "https://blog.example.com:8443/", false},
		{"http://blog.example.com/", "http://169.254.169.254/", false},
	} {
		if err := wordpress.Redirect(t, test.from, test.to); (err == nil) != test.follows {
			t.Errorf("from %s to %s: %v", test.from, test.to, err)
		}
	}
}

// A plugin that takes the status out of posts empties no index.
func TestPostsWithoutStatus(t *testing.T) {
	t.Parallel()
	s := start(t, 6)
	s.done(6, 0, 0)
	s.rewrite(`"status":"publish",`, "")
	sum := s.done(0, 0, 0)
	if got := sum.LeftOut["not what WordPress sends as a post"]; len(got) != 6 {
		t.Errorf("left out: %v", sum.LeftOut)
	}
	var refused *wordpress.MassDeletionError
	if _, err := s.run(func(o *wordpress.Options) { o.Full = true }); !errors.As(err, &refused) || len(s.engine.records) != 6 {
		t.Errorf("--full: %v, %d records", err, len(s.engine.records))
	}
}

// A plugin that lists private posts to everybody brings none into the index.
func TestListedPrivatePosts(t *testing.T) {
	t.Parallel()
	s := start(t, 3)
	s.rewrite(`"status":"publish"`, `"status":"private"`)
	sum, err := s.run()
	if err != nil || len(s.engine.ever) > 0 || len(sum.LeftOut["not published"]) != 3 {
		t.Errorf("%v, %+v, the engine held %v", err, sum, s.engine.ever)
	}
}

// rewrite makes the site replace a text in all posts.
func (s *synced) rewrite(before, after string) {
	s.site.Reset(func(w http.ResponseWriter, r *http.Request, _ int) bool {
		if !strings.HasSuffix(r.URL.Path, "/posts") || r.URL.Query().Has("_fields") {
			return false
		}
		var posts []string
		for id := range s.site.Posts {
			posts = append(posts, strings.Replace(s.site.Raw(id), before, after, 1))
		}
		w.Header().Set("X-WP-TotalPages", "1")
		fmt.Fprintf(w, "\ufeff[%s]", strings.Join(posts, ",")) // some plugins print a byte order mark
		return true
	})
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

// Names that the site refuses are not names that it has lost.
func TestRefusedTags(t *testing.T) {
	t.Parallel()
	s := start(t, 3)
	s.done(3, 0, 0)
	s.site.Reset(func(w http.ResponseWriter, r *http.Request, _ int) bool {
		refuses := strings.HasSuffix(r.URL.Path, "/tags")
		if refuses {
			wordpresstest.Fail(w, http.StatusForbidden, "rest_forbidden", "Sorry, no.")
		}
		return refuses
	})
	if _, err := s.run(); err == nil || !strings.Contains(err.Error(), "read the names of terms and authors") {
		t.Error(err)
	}
	s.inStep()
}

// A home page that is busy names no API: it is asked again.
func TestBusyHomePage(t *testing.T) {
	t.Parallel()
	s := start(t, 3)
	s.site.Plain = true // there is no API at the address that would be guessed
	s.site.Intercept = func(w http.ResponseWriter, _ *http.Request, number int) bool {
		if number == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		return number == 1
	}
	s.done(3, 0, 0)
}

// PHP of another encoding writes bytes that are not UTF-8.
func TestPostThatIsNotUTF8(t *testing.T) {
	t.Parallel()
	s := start(t, 1)
	s.rewrite("Post 1", "Caf\xe9")
	sum, err := s.run()
	if err != nil || !slices.Equal(sum.WithoutWordPress, []int64{1}) || !strings.Contains(string(s.engine.records["1"]), `"title":"Caf`+"\ufffd"+`"`) {
		t.Errorf("%v, %+v, %s", err, sum, s.engine.records["1"])
	}
}

// A small answer that unpacks to a large one ends at the limit.
func TestAnswerThatUnpacksToMore(t *testing.T) {
	s := start(t, 1)
	wordpress.LimitBody(t, 1<<20)
	s.site.Intercept = func(w http.ResponseWriter, r *http.Request, _ int) bool {
		if r.Method != http.MethodGet {
			return false
		}
		w.Header().Set("Content-Encoding", "gzip")
		packed := gzip.NewWriter(w)
		_, _ = packed.Write([]byte("[" + strings.Repeat(" ", 1<<20) + "]")) // the client hangs up
		_ = packed.Close()
		return true
	}
	if _, err := s.run(); err == nil || !strings.Contains(err.Error(), "the answer has more than 1 MB") {
		t.Error(err)
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
		{"another port's API", "port", ""},
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
				case test.to == "port":
					if r.URL.Path == "/" {
						w.Header().Set("Link", `<https://127.0.0.1:1/wp-json/>; rel="https://api.w.org/"`)
					}
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
