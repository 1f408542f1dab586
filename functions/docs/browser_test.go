package docs_test

import (
	"compress/gzip"
	"context"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/affinityengine/affinity/functions/docs"
	"github.com/affinityengine/affinity/shared/local/chromium"
	"github.com/affinityengine/affinity/shared/local/must"
)

// reader is a tab of a headless Chromium.
type reader struct {
	*testing.T
	ctx context.Context
	url string
}

func evaluate[T any](r *reader, expression string) T {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.ctx, time.Minute)
	defer cancel()
	got, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		r.Fatalf("%s: %v", expression, err)
	}
	return got
}

// open opens a page and returns when all of it is there.
func (r *reader) open(path string) {
	r.Helper()
	evaluate[bool](r, `window.left = true`)
	ctx, cancel := context.WithTimeout(r.ctx, time.Minute)
	defer cancel()
	_, err := chromedp.Call(ctx, page.Navigate, page.NavigateParams{URL: r.url + path})
	must.Succeed(r, err)
	r.until(`!window.left && document.readyState === "complete"`)
}

// until waits until JavaScript is true of the page.
func (r *reader) until(expression string) {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.ctx, time.Minute)
	defer cancel()
	for {
		is, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("Boolean("+expression+")"))
		if is {
			return
		}
		select {
		case <-ctx.Done():
			r.Fatalf("%s does not become true: %v", expression, err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// On a phone no page is wider than the window, and axe finds nothing serious in either scheme of colors.
func TestPagesOnAPhone(t *testing.T) {
	r := &reader{t, chromium.Open(t, ""), ""}
	server := httptest.NewServer(functions[docs.ForOperators])
	t.Cleanup(server.Close)
	r.url = server.URL
	_, err := chromedp.Run(r.ctx, chromedp.EmulateViewport(390, 844))
	must.Succeed(t, err)
	paths := map[string]bool{"/docs": true, "/docs/search?q=events": true}
	for _, link := range reference.FindAllStringSubmatch(get(docs.ForOperators, "GET", "/docs").Body.String(), -1) {
		if path, _, _ := strings.Cut(link[1], "#"); strings.HasPrefix(path, "/docs/") {
			paths[path] = true
		}
	}
	r.open("/docs")
	for _, path := range slices.Sorted(maps.Keys(paths)) { // one page takes the place of the other, in the same tab
		wide := evaluate[string](r, `fetch("`+path+`").then(r => r.text()).then(text => {
			const all = new DOMParser().parseFromString(text, "text/html");
			for (const part of ["main", "nav"]) document.querySelector(part).replaceWith(all.querySelector(part));
			const width = document.documentElement.clientWidth;
			if (document.documentElement.scrollWidth <= width) return "";
			return document.documentElement.scrollWidth + " pixels: " + [...document.querySelectorAll("body *")]
				.filter(e => e.getBoundingClientRect().right > width + 1).slice(0, 3).map(e => e.outerHTML.slice(0, 120)).join("\n");
		})`)
		if wide != "" {
			t.Errorf("%s is wider than the window: %s", path, wide)
		}
	}
	axe := packed(t, "../console/testdata/axe.min.js.gz")
	for _, path := range []string{"/docs/search?q=events", "/docs/operate/costs", "/docs/catalog"} {
		for _, scheme := range []string{"light", "dark"} {
			_, err := chromedp.Call(r.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
			must.Succeed(t, err)
			r.open(path)
			evaluate[chromedp.Void](r, axe)
			if found := evaluate[string](r, `axe.run().then(r => r.violations.filter(v => v.impact === "serious" || v.impact === "critical")
				.map(v => v.id + ": " + v.nodes.slice(0, 3).map(n => n.html + " " + n.failureSummary).join("\n")).join("\n"))`); found != "" {
				t.Errorf("%s, %s: axe finds %s", path, scheme, found)
			}
		}
	}
}

// The key that a reader types goes to this engine alone, and is kept nowhere.
func TestTryIt(t *testing.T) {
	r := &reader{t, chromium.Open(t, ""), ""}
	asked := make(chan *http.Request, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if strings.HasPrefix(req.URL.Path, "/docs") {
			functions[docs.ForClients].ServeHTTP(w, req)
			return
		}
		asked <- req
		_, _ = w.Write([]byte(`{"userToken":"user-1"}`))
	}))
	t.Cleanup(server.Close)
	r.url = server.URL
	r.open("/docs/profiles")
	evaluate[bool](r, `(() => {
		const pre = document.querySelector("pre[data-path='/1/profiles/user-1']") ?? document.querySelector("pre[data-method=GET]");
		window.path = pre.dataset.path;
		[...pre.parentElement.querySelectorAll("button")].find(b => b.textContent === "Try it").click();
		const [app, key] = document.querySelectorAll("form.try input");
		app.value = "shop"; key.value = "secret-key";
		document.querySelector("form.try").requestSubmit();
		return true;
	})()`)
	req := <-asked
	if req.Method != "GET" || req.Header.Get("X-Algolia-Application-Id") != "shop" || req.Header.Get("X-Algolia-API-Key") != "secret-key" {
		t.Errorf("the page sent %s %s with %v", req.Method, req.URL, req.Header)
	}
	if want := evaluate[string](r, `window.path`); req.RequestURI != want {
		t.Errorf("the page asked for %s, want %s", req.RequestURI, want)
	}
	r.until(`document.querySelector("form.try pre").textContent === '200\n{"userToken":"user-1"}'`)
	if kept := evaluate[string](r, `JSON.stringify([localStorage, sessionStorage, document.cookie])`); strings.Contains(kept, "secret-key") {
		t.Errorf("the page keeps the key: %s", kept)
	}
}

func packed(t *testing.T, path string) string {
	t.Helper()
	f, err := os.Open(path)
	must.Succeed(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	must.Succeed(t, err)
	text, err := io.ReadAll(z)
	must.Succeed(t, err)
	return string(text)
}
