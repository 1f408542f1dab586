// Package chromium starts a headless Chromium, for tests of what people and web pages see.
package chromium

import (
	"context"
	"os/exec"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/affinityengine/affinity/shared/local/must"
)

// running is held by the test that has a browser: on a small machine several at once miss
// the ends of their pages' loading.
var running sync.Mutex

// shared is the browser of Share. The start of one takes as long as a test.
var shared struct {
	on      bool
	browser context.Context // nil: none runs yet
	end     func()
}

// Share runs the tests of a package, which use one browser, each as a person of their own: with
// their own cookies and storage. It ends the browser, and returns the exit status.
func Share(run func() int) int {
	shared.on = true
	status := run()
	if shared.browser != nil {
		shared.end()
	}
	return status
}

// Open opens an empty page in a browser, when no other test of the process has one, and closes it
// with the test. The test is skipped unless AFFINITY_REQUIRE_BROWSER is 1. With a host the browser is
// the test's own; it finds the host at 127.0.0.1, and accepts every certificate.
func Open(t testing.TB, host string) context.Context {
	t.Helper()
	must.Start(t, must.Browser)
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatalf("no Chromium on this machine (apt-get install chromium): %v", err)
	}
	running.Lock()
	t.Cleanup(running.Unlock)
	if !shared.on || host != "" {
		ctx, end, err := start(path, host, chromedp.UserDataDir(t.TempDir()))
		t.Cleanup(end)
		must.Succeed(t, err)
		return ctx
	}
	if shared.browser == nil {
		if shared.browser, shared.end, err = start(path, ""); err != nil {
			shared.end()
			shared.browser = nil
			t.Fatal(err)
		}
	}
	ctx, cancel := chromedp.NewContext(shared.browser)
	t.Cleanup(cancel)
	must.Succeed(t, chromedp.Do(ctx, chromedp.Navigate("about:blank")))
	_, err = chromedp.Call(ctx, network.ClearBrowserCookies, cdp.Empty{})
	must.Succeed(t, err)
	return ctx
}

// unseen are the features that Chromium runs without: its own pages beside those of a test, such as
// the suggestions of the address bar, take as much of a core as the pages of the test.
const unseen = "Translate,BlinkGenPropertyTrees,WebUIOmniboxPopup,WebUIOmniboxAimPopup,WebUIOmniboxFullPopup"

// start starts a browser with an empty page.
func start(path, host string, more ...chromedp.ExecAllocatorOption) (ctx context.Context, end func(), err error) {
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox,
		chromedp.DisableGPU, chromedp.Flag("disable-quic", true), chromedp.Flag("disable-features", unseen),
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true))
	if host != "" {
		options = append(options, chromedp.Flag("host-resolver-rules", "MAP "+host+" 127.0.0.1"),
			chromedp.Flag("ignore-certificate-errors", true))
	}
	ctx, endProcess := chromedp.NewExecAllocator(context.Background(), append(options, more...)...)
	ctx, endPage := chromedp.NewContext(ctx)
	return ctx, func() { endPage(); endProcess() }, chromedp.Do(ctx, chromedp.Navigate("about:blank"))
}
