package console_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/affinityengine/affinity/shared/local/chromium"
)

// browser is a tab of a headless Chromium, in which a person uses the console.
type browser struct {
	*site
	ctx context.Context

	mu       sync.Mutex
	foreign  []string // addresses outside of the site that the pages asked for
	messages []string // errors of the pages
}

// newBrowser starts a browser, see package chromium.
func newBrowser(t *testing.T, s *site) *browser {
	t.Helper()
	ctx := chromium.Open(t, "")
	b := &browser{site: s, ctx: ctx}
	b.must(chromedp.Listen(ctx, func(event any) {
		sent, ok := event.(*network.EventRequestWillBeSent)
		if !ok || strings.HasPrefix(sent.Request.URL, s.stack.URL) || strings.HasPrefix(sent.Request.URL, "data:") {
			return
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		b.foreign = append(b.foreign, sent.Request.URL)
	}))
	_, err := chromedp.Call(ctx, network.Enable, network.EnableParams{})
	b.must(err)
	said := chromedp.Console(ctx)
	go func() {
		for m, err := range said {
			if err != nil {
				return
			}
			if m.IsException() || m.Type == "error" || strings.Contains(m.Text, "Content Security Policy") {
				b.mu.Lock()
				b.messages = append(b.messages, m.String())
				b.mu.Unlock()
			}
		}
	}()
	return b
}

// within bounds a step: a page that lacks what a test waits for fails the test.
const within = time.Minute

func (b *browser) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, within)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.t.Fatalf("%v, at %s", err, b.where())
	}
}

// where returns the address and the text of the page, for failures.
func (b *browser) where() string {
	ctx, cancel := context.WithTimeout(b.ctx, 5*time.Second)
	defer cancel()
	text, _ := chromedp.Run(ctx, chromedp.Evaluate[string](`location.href + " (" + document.readyState + "): " + document.body.innerText.slice(0, 2000)`))
	return text
}

// eval evaluates JavaScript.
func eval[T any](b *browser, expression string) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, within)
	defer cancel()
	got, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%s: %v, at %s", expression, err, b.where())
	}
	return got
}

// load opens a page and returns when all of it is there. It asks the page itself, since
// chromedp.Navigate waits for events, and on a busy machine waited for one that had passed.
func (b *browser) load(path string) {
	b.t.Helper()
	eval[bool](b, `window.left = true`)
	ctx, cancel := context.WithTimeout(b.ctx, within)
	defer cancel()
	answer, err := chromedp.Call(ctx, page.Navigate, page.NavigateParams{URL: b.stack.URL + path})
	b.must(err)
	if answer.ErrorText != "" {
		b.t.Fatalf("%s: %s", path, answer.ErrorText)
	}
	b.until(`!window.left && document.readyState === "complete"`)
}

// until waits until JavaScript is true of the page. Another page may take its place while it waits.
func (b *browser) until(expression string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, within)
	defer cancel()
	for {
		// An error is that of a page that is being replaced, or ends with the time.
		is, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("(async () => Boolean(await ("+expression+")))()", chromedp.EvalAwaitPromise))
		if is {
			return
		}
		select {
		case <-ctx.Done():
			b.t.Fatalf("%s does not become true (%v), at %s", expression, err, b.where())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// sees waits until the page shows what a selector finds.
func (b *browser) sees(selector string) {
	b.t.Helper()
	b.until("document.querySelector(" + strconv.Quote(selector) + ")?.checkVisibility()")
}

// open opens a page that has a title.
func (b *browser) open(path string) {
	b.t.Helper()
	b.load(path)
	b.sees("h1")
}

// enter logs in.
func (b *browser) enter() {
	b.t.Helper()
	b.open("/console/login")
	b.do(chromedp.SendKeys("#app", "shop"), chromedp.SendKeys("#key", key), chromedp.Click("form.login button.primary"))
	b.sees(".side nav")
}

// look sets the size of the window and the colors.
func (b *browser) look(width int64, scheme string) {
	b.t.Helper()
	b.do(chromedp.EmulateViewport(width, 844))
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
	b.must(err)
}

// keep keeps a picture of the page among the artefacts of the test (go test -artifacts).
func (b *browser) keep(name string) {
	b.t.Helper()
	if flag.Lookup("test.artifacts").Value.String() != "true" {
		return
	}
	ctx, cancel := context.WithTimeout(b.ctx, within)
	defer cancel()
	png, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	b.must(err)
	b.must(os.WriteFile(filepath.Join(b.t.(*testing.T).ArtifactDir(), name+".png"), png, 0o600))
}

// axe is the checker of accessibility, see testdata/README.md.
var axe = sync.OnceValue(func() string {
	packed, err := os.Open("testdata/axe.min.js.gz")
	if err != nil {
		panic(err)
	}
	defer packed.Close()
	r, err := gzip.NewReader(packed)
	if err != nil {
		panic(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		panic(err)
	}
	return string(text)
})

// accessible fails if axe-core finds something serious on the page.
func (b *browser) accessible(name string) {
	b.t.Helper()
	if !eval[bool](b, `typeof axe === "object"`) {
		b.do(chromedp.Evaluate[chromedp.Void](axe()))
	}
	found := eval[[]byte](b, `axe.run().then(r => r.violations.filter(v => v.impact === "serious" || v.impact === "critical")
		.map(v => ({id: v.id, help: v.help, nodes: v.nodes.slice(0, 3).map(n => n.html + " " + n.failureSummary)})))`)
	if !bytes.Equal(found, []byte("[]")) {
		var shown bytes.Buffer
		_ = json.Indent(&shown, found, "", " ")
		b.t.Errorf("%s: axe-core finds %s", name, &shown)
	}
}

// fits fails if the page is wider than the window.
func (b *browser) fits(name string) {
	b.t.Helper()
	if over := eval[int](b, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); over > 0 {
		wide := eval[string](b, `[...document.querySelectorAll("main *")].filter(e => e.getBoundingClientRect().right > document.documentElement.clientWidth + 1 && !e.closest(".scroll, pre, nav")).slice(0, 5).map(e => e.outerHTML.slice(0, 120)).join("\n")`)
		b.t.Errorf("%s is %d pixels wider than the window: %s", name, over, wide)
	}
}

// settled fails if a page asked for something elsewhere, or complained of something else than
// what the test is about.
func (b *browser) settled(but ...string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.messages = slices.DeleteFunc(b.messages, func(m string) bool {
		return slices.ContainsFunc(but, func(known string) bool { return strings.Contains(m, known) })
	})
	if len(b.foreign) > 0 {
		b.t.Errorf("pages asked for %q", b.foreign)
	}
	if len(b.messages) > 0 {
		b.t.Errorf("pages complained: %q", b.messages)
	}
}

// Every page looks right in a window and on a phone, in light and dark, and asks for nothing
// elsewhere.
func TestLook(t *testing.T) {
	for _, filling := range []struct {
		name string
		fill func(*site)
	}{
		{"empty", func(*site) {}},
		{"full", func(s *site) { s.fill(150); s.fillKeys(30); s.pack(); s.save(); s.signIns() }},
		{"hostile", func(s *site) { s.fillHostile(); s.pack() }},
	} {
		t.Run(filling.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			filling.fill(s)
			b := newBrowser(t, s)
			b.enter()
			paths := sections
			if filling.name == "full" {
				paths = append([]string{"/console/refusedlinks", s.login(key).previewed(), "/console/users/" + known, "/console/segments/stridewell-not-red", "/console/segments/query?where=" + url.QueryEscape(nestedSegment)}, paths...)
			} else if filling.name == "hostile" {
				paths = append([]string{"/console/users/attacked", "/console/segments/query?facet=brand&value=" + url.QueryEscape(hostile[1])}, paths...)
			}
			for _, path := range paths {
				for _, width := range []int64{1280, 390} {
					b.look(width, "light")
					b.open(path)
					for _, scheme := range []string{"light", "dark"} {
						b.look(width, scheme)
						page, query, _ := strings.Cut(path, "?")
						name := fmt.Sprintf("%s%s-%d-%s", filling.name, strings.ReplaceAll(strings.TrimSuffix(page, "/"), "/", "-"), width, scheme)
						if query != "" {
							name += "-asked"
						}
						b.keep(name)
						if scheme == "light" {
							b.fits(name)
						}
						if (scheme == "light") == (width == 390) { // contrast does not depend on the width, nor the structure on the colors
							b.accessible(name)
						}
					}
				}
			}
			b.narrow(filling.name, s.login(key).crawl())
			b.settled()
		})
	}
	t.Run("demo", func(t *testing.T) {
		t.Parallel()
		s := &site{t: t}
		b := newBrowser(t, s)
		s.demo(t)
		b.enter()
		pages := s.login(key).crawl()
		if len(pages) < 20 {
			t.Errorf("the demo's console has %d pages: %q", len(pages), pages)
		}
		b.narrow("demo", pages)
		b.look(1280, "light")
		b.open("/")
		b.sees(".risers li")
		b.accessible("the overview of the demo")
		b.picture("overview")
		for _, path := range pages {
			b.open(path)
			b.keep("demo" + strings.ReplaceAll(strings.TrimSuffix(strings.Split(path, "?")[0], "/"), "/", "-") + "-1280")
			if bad := eval[string](b, unwell); bad != "" {
				t.Errorf("%s says %s", path, bad)
			}
		}
		b.settled()
	})
}

// unwell returns what a page says of something that does not work, or "".
const unwell = `[...[...document.querySelectorAll(".tag")].map(e => e.textContent.trim()).filter(t => ["Check", "Problem"].includes(t)),
	...(document.querySelector("main").innerText.match(/.*(\b(is|are) off\b|\bfailed\b).*/gi) ?? []),
	...[...document.querySelectorAll(".problem, .banner")].filter(e => e.checkVisibility()).map(e => e.innerText)].join("; ")`

// narrow fails if one of the pages is wider than a phone.
func (b *browser) narrow(name string, pages []string) {
	b.t.Helper()
	b.look(390, "light")
	for _, path := range pages {
		b.open(path)
		b.keep(name + strings.ReplaceAll(strings.TrimSuffix(strings.Split(path, "?")[0], "/"), "/", "-") + "-390")
		b.fits(name + " " + path)
	}
}
