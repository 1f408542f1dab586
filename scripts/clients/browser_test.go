package clients

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	diff "github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/api/track"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/chromium"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/web/auth"
)

// recorder passes requests on to an engine and keeps how each was sent.
type recorder struct {
	engine http.Handler

	mu    sync.Mutex
	sent  map[string]bool
	texts map[string]string // of preflights and of requests with an event, by method and path
}

func newRecorder(engine string) *recorder {
	target, _ := url.Parse(engine)
	return &recorder{engine: &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}, sent: map[string]bool{}, texts: map[string]string{}}
}

func (rec *recorder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the page is gone
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	line := []string{r.Method, r.URL.Path}
	if names := r.Header.Get("Access-Control-Request-Headers"); names != "" {
		line = append(line, "for "+names)
	} else if r.Method == http.MethodPost {
		_, basic := r.Header["Authorization"]
		kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
		line = append(line, kind)
		for where, has := range map[string]bool{"header": basic, "query": r.URL.Query().Has("writeKey"), "body": bytes.Contains(body, []byte(`"writeKey"`))} {
			if has {
				line = append(line, "key in the "+where)
			}
		}
		slices.Sort(line[3:])
	}
	text, _ := httputil.DumpRequest(r, true)
	rec.engine.ServeHTTP(w, r)
	rec.mu.Lock()
	defer rec.mu.Unlock()
	rec.sent[strings.Join(line, ", ")] = true
	if r.Method == http.MethodOptions || bytes.Contains(body, []byte("Viewed")) {
		rec.texts[r.Method+" "+r.URL.Path] = strings.ReplaceAll(string(text), "\r\n", "\n")
	}
}

// keep writes the request with an event, after its preflight, where the tests of function ingest replay it.
func (rec *recorder) keep(t *testing.T, name string) {
	t.Helper()
	rec.mu.Lock()
	defer rec.mu.Unlock()
	for about, text := range rec.texts {
		if path, is := strings.CutPrefix(about, "POST "); is {
			must.Succeed(t, os.WriteFile("../../functions/ingest/testdata/pages/"+name+".http", []byte(rec.texts["OPTIONS "+path]+text), 0o600))
		}
	}
}

// lines are how requests were sent, sorted.
func (rec *recorder) lines() string {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	return strings.Join(slices.Sorted(maps.Keys(rec.sent)), "\n  ")
}

// pages serves the page of a shop, with the clients of a folder as modules.
func pages(dir string) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", http.FileServer(http.Dir(dir)))
	mux.HandleFunc("/page", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `<!doctype html><title>shop</title><script src="/node_modules/%s/dist/umd/index.js"></script>
<script type="importmap">{"imports":{"@segment/analytics-next":"/segment.mjs",
"search-insights":"/node_modules/search-insights/dist/search-insights-browser.mjs",
"@rudderstack/analytics-js/bundled":"/node_modules/@rudderstack/analytics-js/dist/npm/modern/bundled/esm/index.mjs"}}</script>`, r.FormValue("segment"))
		if engine := r.FormValue("engine"); engine != "" {
			fmt.Fprintf(w, `<script src="%s/client.js"></script>`, engine)
		}
	})
	mux.HandleFunc("/segment.mjs", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/javascript")
		fmt.Fprintln(w, "export const { AnalyticsBrowser } = window.AnalyticsNext;")
	})
	return mux
}

// testPages sends events from pages of another machine in Chromium, in each way that SDKs and pages by hand have.
func testPages(t *testing.T, dir string) {
	const host = "shop.test"
	browser := chromium.Open(t, host)
	shop := httptest.NewServer(pages(dir))
	t.Cleanup(shop.Close)
	origin := strings.Replace(shop.URL, "127.0.0.1", host, 1)
	s := start(t, origin)
	must.Succeed(t, s.Backends.CachedConfig.PutKey(t.Context(), "demo", config.Key{Hash: auth.Hash("pagekey"), ACL: []string{auth.Search}, Indexes: []string{"products"}}))
	c, err := client.New(client.Config{URL: s.URL, App: "demo", Key: "demokey", Retry: client.NoRetry})
	must.Succeed(t, err)

	const before = "segment-analytics-1.82"
	want := map[string]int64{}
	var got strings.Builder
	for _, way := range []struct {
		name, segment string
		leave         bool // it sends as the page is left
	}{
		{"segment-fetch", "", false}, {"segment-credentials", "", false}, {"segment-batch", "", true}, {"segment-batch-credentials", "", true},
		{"segment-fetch", before, false}, {"segment-batch", before, true},
		{"rudder-xhr", "", false}, {"rudder-batch", "", false}, {"rudder-beacon", "", true},
		{"beacon-text", "", false}, {"beacon-json", "", false}, {"fetch-credentials", "", false},
	} {
		rec := newRecorder(s.URL)
		engine := httptest.NewTLSServer(rec)
		user := way.name
		if way.segment != "" {
			user += "-before"
		}
		ctx, cancel := context.WithTimeout(browser, time.Minute)
		run := fmt.Sprintf("import('/pagetest.mjs').then((m) => m.ways[%q](%q, %q)).then(() => true)", way.name, user, engine.URL)
		must.Succeed(t, chromedp.Do(ctx, chromedp.Navigate(origin+"/page?segment="+cmp.Or(way.segment, "@segment/analytics-next"))))
		if _, err := chromedp.Run(ctx, chromedp.Evaluate[bool](run, chromedp.EvalAwaitPromise)); err != nil {
			t.Fatalf("%s: %v", user, err)
		}
		if way.leave {
			must.Succeed(t, chromedp.Do(ctx, chromedp.Navigate("about:blank")))
		}
		events := 1
		if sdk, _, _ := strings.Cut(way.name, "-"); sdk == "segment" || sdk == "rudder" {
			events = 2
			for _, call := range []string{"identify", "page", "group", "alias"} {
				want["Ignored: "+call+" call"]++
			}
			if sdk == "segment" {
				want["Ignored: screen call"]++
			}
			want[track.ErrType.Error()]++
		}
		arrived := func() (string, error) {
			if err := s.Idle(ctx); err != nil {
				return "", err
			}
			explained, err := c.Profiles().Explain(ctx, user, api.ExplainQuery{})
			if _, unknown := errors.AsType[*api.Error](err); err != nil && !unknown {
				return "", err
			}
			refused, err := c.Events().Refused(ctx)
			if explained.Events.Accepted != events {
				return fmt.Sprintf("%d events, want %d", explained.Events.Accepted, events), err
			}
			return diff.Diff(want, refused.Counts), err
		}
		missing, err := arrived()
		for missing != "" && err == nil {
			select {
			case <-ctx.Done():
				err = ctx.Err()
			case <-time.After(20 * time.Millisecond):
				missing, err = arrived()
			}
		}
		if err != nil {
			t.Fatalf("%s: %s, %v; sent:\n  %s", user, missing, err, rec.lines())
		}
		cancel()
		engine.Close()
		if *rewrite {
			rec.keep(t, user)
		}
		fmt.Fprintf(&got, "%s\n  %s\n", user, rec.lines())
	}
	same(t, "testdata/pages.txt", got.String())
}
