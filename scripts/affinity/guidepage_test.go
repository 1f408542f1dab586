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
	g := runGuide(t, "../guides/web-page.md", "")
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
