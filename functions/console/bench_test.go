package console_test

import (
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/api"
)

// firstPaint is how many bytes a page and what it loads may have.
const firstPaint = 100 << 10

var loaded = regexp.MustCompile(`(?:href|src)="(/console/static/[^"#]+)`)

// A page and all that it loads come in few bytes.
func TestFirstPaint(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.fill(60)
	p := s.login(key)
	for _, path := range sections {
		page := p.page(path)
		files := []string{}
		for _, found := range loaded.FindAllStringSubmatch(page, -1) {
			files = append(files, found[1])
		}
		slices.Sort(files)
		total := len(page)
		for _, file := range slices.Compact(files) {
			r, err := http.NewRequest("GET", s.stack.URL+file, nil)
			s.must(err)
			r.Header.Set("Accept-Encoding", "gzip")
			answer, err := http.DefaultTransport.RoundTrip(r)
			s.must(err)
			body, err := io.ReadAll(answer.Body)
			s.must(err)
			_ = answer.Body.Close()
			if answer.StatusCode != http.StatusOK || answer.Header.Get("Cache-Control") != "public, max-age=31536000, immutable" {
				t.Errorf("%s: status %d, Cache-Control %q", file, answer.StatusCode, answer.Header.Get("Cache-Control"))
			}
			total += len(body)
		}
		if t.Logf("%s: %d bytes, of which the page %d", path, total, len(page)); total > firstPaint {
			t.Errorf("%s takes %d bytes, want at most %d", path, total, firstPaint)
		}
	}
}

// BenchmarkPages measures how long the server takes for each page, over a connection.
func BenchmarkPages(b *testing.B) {
	s := newSite(b)
	s.fill(700)
	p := s.login(key)
	for _, path := range append(sections, "/console/users/"+known) {
		b.Run(path, func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				begun := time.Now()
				if answer, body := p.send("GET", path, nil); answer.StatusCode != http.StatusOK {
					b.Fatal(answer.Status, body)
				}
				took = append(took, time.Since(begun))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
		})
	}
}

// BenchmarkPreview measures a preview of 200 users: right after an import, and once the recompute
// that follows an import has folded the histories.
func BenchmarkPreview(b *testing.B) {
	s := newSite(b)
	s.fill(700)
	sample, draft := 200, strings.Replace(shopStrategy, `"score":90`, `"score":10`, 1)
	run := func(b *testing.B) {
		events := 0
		for b.Loop() {
			got, err := s.engine.Strategies().Preview(b.Context(), api.PreviewRequest{Strategy: json.RawMessage(draft), Sample: &sample})
			s.must(err)
			events += got.Cost.Events
		}
		b.ReportMetric(float64(events)/float64(b.N), "events/op")
	}
	b.Run("imported", run)
	_, err := s.engine.Jobs().StartRecompute(b.Context(), api.RecomputeRequest{Fold: true})
	s.must(err)
	s.idle()
	b.Run("folded", run)
}

// BenchmarkUserPages measures pages about users on the data of the demo, with a request over
// HTTP each. The 99th percentile is what a person waits.
func BenchmarkUserPages(b *testing.B) {
	u := newUsersSite(b)
	u.fill(150)
	users, err := u.engine.Profiles().Users(b.Context(), api.UsersQuery{Limit: 500})
	u.must(err)
	for _, page := range []struct{ name, before, after string }{
		{"user", "/console/users/", ""}, {"why", "/console/users/", "/why?facet=color&value=Green"}, {"events", "/console/users/", "/events"},
	} {
		b.Run(page.name, func(b *testing.B) {
			var took []time.Duration
			for i := 0; b.Loop(); i++ {
				begin := time.Now()
				u.get(200, page.before+users.Users[i%len(users.Users)].UserToken+page.after)
				took = append(took, time.Since(begin))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
		})
	}
}
