// Package chromium starts a headless Chromium, for tests of what people and web pages see.
package chromium

import (
	"context"
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
)

// running is held by the test that has a browser: on a small machine several at once miss
// the ends of their pages' loading.
var running sync.Mutex

// Open starts a browser with an empty page, when no other test of the process has one, and ends it
// with the test. The test is skipped where there is no Chromium, unless AFFINITY_REQUIRE_BROWSER is
// set. With a host the browser finds it at 127.0.0.1, and accepts every certificate.
func Open(t testing.TB, host string) context.Context {
	t.Helper()
	if testing.Short() {
		t.Skip("-short starts no browser")
	}
	path, err := exec.LookPath("chromium")
	if err != nil {
		if os.Getenv("AFFINITY_REQUIRE_BROWSER") != "" {
			t.Fatal(err)
		}
		t.Skip("no chromium on this machine: pages are not tried in a browser (apt-get install chromium)")
	}
	running.Lock()
	t.Cleanup(running.Unlock)
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox,
		chromedp.DisableGPU, chromedp.UserDataDir(t.TempDir()), chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true))
	if host != "" {
		options = append(options, chromedp.Flag("host-resolver-rules", "MAP "+host+" 127.0.0.1"),
			chromedp.Flag("ignore-certificate-errors", true))
	}
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil { // which starts the browser
		t.Fatal(err)
	}
	return ctx
}
