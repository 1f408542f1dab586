//go:build unix

package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/affinityengine/affinity/shared/local/chromium"
)

// TestGuidesWebPage runs the commands of the guide for web pages, opens the pages that they write
// in Chromium, and clicks.
func TestGuidesWebPage(t *testing.T) {
	g := runGuide(t, "../../functions/docs/guides/web-page.md", "")
	t.Run("browser", func(t *testing.T) {
		browser := chromium.Open(t, "")
		pages := httptest.NewServer(http.FileServer(http.Dir(g.shell.Dir)))
		defer pages.Close()
		for path, click := range map[string]string{
			"/page.html":   `list.lastElementChild.click()`,
			"/strict.html": `document.querySelector("[data-affinity-id=sneaker-2]").click(), setTimeout(() => location.reload(), 500)`,
		} {
			ctx, cancel := context.WithTimeout(browser, time.Minute)
			if err := chromedp.Do(ctx, chromedp.Navigate(pages.URL+path)); err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			first := `(document.querySelector("li") ?? {}).textContent ?? ""`
			for got, want := "", map[string]string{"/page.html": "sneaker-1", "/strict.html": "White Slip-On"}[path]; got != want; {
				_ = chromedp.Do(ctx, chromedp.Evaluate[chromedp.Void](click+`, undefined`)) // an error is that of a page before it has items
				select {
				case <-ctx.Done():
					t.Fatalf("%s: %s is first after clicks on the last sneaker, want %s", path, got, want)
				case <-time.After(1500 * time.Millisecond): // for a person's click; the page asks for the order a second after it
				}
				got, _ = chromedp.Run(ctx, chromedp.Evaluate[string](first))
			}
			cancel()
		}
	})
}

// TestGuidesConsent opens the preference page of its guide in Chromium, and switches a purpose off and on.
func TestGuidesConsent(t *testing.T) {
	g := runGuide(t, "../../functions/docs/guides/consent.md", "")
	t.Run("browser", func(t *testing.T) {
		pages := httptest.NewServer(http.FileServer(http.Dir(g.shell.Dir)))
		defer pages.Close()
		ctx, cancel := context.WithTimeout(chromium.Open(t, ""), time.Minute)
		defer cancel()
		if err := chromedp.Do(ctx, chromedp.Navigate(pages.URL+"/preferences.html")); err != nil {
			t.Fatal(err)
		}
		// The first of the list, and which purposes are on.
		const state = `[(document.querySelector("li") ?? {}).textContent, ...document.querySelectorAll("input:checked")].map((e) => e && (e.id ?? e)).join()`
		shows := func(want string) {
			t.Helper()
			for got := ""; got != want; {
				select {
				case <-ctx.Done():
					t.Fatalf("the page shows %q, want %q", got, want)
				case <-time.After(20 * time.Millisecond):
				}
				got, _ = chromedp.Run(ctx, chromedp.Evaluate[string](state))
			}
		}
		click := func(purpose string) {
			t.Helper()
			if err := chromedp.Do(ctx, chromedp.Evaluate[chromedp.Void](`document.getElementById("`+purpose+`").click()`)); err != nil {
				t.Fatal(err)
			}
		}
		shows("sneaker-1,personal")
		click("personal")
		shows("runner-1")
		click("ads")
		shows("runner-1,ads")
		click("personal") // which begins empty
		shows("runner-1,personal,ads")
	})
}
