package console_test

import (
	"flag"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/affinityengine/affinity/scripts/affinity/shop"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/web/auth"
)

// pictures says where TestStory keeps the pictures of the guides: go test -run 'TestStory|TestLook/demo' -pictures pictures
var pictures = flag.String("pictures", "", "folder for the pictures of the guides")

// picture keeps what the window shows.
func (b *browser) picture(name string) {
	b.t.Helper()
	if *pictures == "" {
		return
	}
	png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	b.must(err)
	b.must(os.WriteFile(filepath.Join(*pictures, name+".png"), png, 0o600))
}

// click clicks the first of what a selector finds that has a text. It does so after the answer, which
// the next page would take the place of.
func (b *browser) click(selector, text string) {
	b.t.Helper()
	b.do(chromedp.Evaluate[chromedp.Void](`(e => { setTimeout(() => e.click()) })([...document.querySelectorAll(` + strconv.Quote(selector) +
		`)].find(e => e.textContent.trim() === ` + strconv.Quote(text) + `))`))
}

// press presses a key so many times.
func (b *browser) press(key string, times int) {
	b.t.Helper()
	for range times {
		b.do(chromedp.KeyEvent(key))
	}
}

// tabTo presses Tab until JavaScript says that what has the focus is what is looked for.
func (b *browser) tabTo(what, expression string) {
	b.t.Helper()
	for range 300 {
		if b.press(kb.Tab, 1); eval[bool](b, "(e => Boolean("+expression+"))(document.activeElement)") {
			if !eval[bool](b, `document.activeElement.matches(":focus-visible")`) {
				b.t.Errorf("the focus on %s cannot be seen", what)
			}
			return
		}
	}
	b.t.Fatalf("Tab does not reach %s, at %s", what, b.where())
}

const (
	named     = `e.textContent.trim() === `
	labelled  = `e.type === "range" && document.getElementById(e.getAttribute("aria-labelledby"))?.textContent.trim() === `
	previewed = `document.querySelector("#preview .headline")`
	// pressedTwice presses the button that has the focus twice, and returns how often its form is sent.
	pressedTwice = `(button => { let n = 0; addEventListener("submit", e => { if (!e.defaultPrevented) n++ }); button.click(); button.click(); return n })(document.activeElement)`
)

// newStory returns a site with the data of 120 users, and a browser that has logged in to it.
func newStory(t *testing.T) (*site, *browser) {
	t.Helper()
	s := newSite(t)
	s.fill(120)
	b := newBrowser(t, s)
	b.enter()
	b.look(1280, "light")
	return s, b
}

// A merchandiser tunes the strategy without a mouse: they move a slider, see what it would
// change, and publish. The next version is in force.
func TestStoryByKeyboard(t *testing.T) {
	t.Parallel()
	s, b := newStory(t)
	b.open("/")
	b.press(kb.Tab, 1)
	if text := eval[string](b, `document.activeElement.textContent`); text != "Skip to the content" {
		t.Errorf("Tab reaches %q first", text)
	}
	b.tabTo("the strategy", named+`"Strategy"`)
	b.press(kb.Enter, 1)
	b.until(`location.pathname === "/console/strategy"`)
	b.tabTo("the slider of the color", labelled+`"color"`)
	b.press(kb.End, 1)
	b.until(previewed)
	b.picture("strategy")
	b.accessible("a preview")
	b.tabTo("the review", named+`"Review and publish"`)
	b.press(kb.Enter, 1)
	b.until(`document.querySelector("h1")?.textContent === "Publish the strategy"`)
	b.sees("#review-users")
	b.picture("publish")
	b.accessible("a review")
	b.tabTo("the note", `e.id === "note"`)
	b.do(chromedp.KeyEvent("Colors sell this week"))
	b.tabTo("the button", named+`"Publish"`)
	if n := eval[int](b, pressedTwice); n != 1 {
		t.Errorf("the form is sent %d times", n)
	}
	b.until(`document.querySelector("[role=status]")?.textContent.startsWith("The strategy is published.")`)
	versions, err := s.engine.Strategies().Versions(t.Context())
	s.must(err)
	active, err := s.engine.Strategies().Get(t.Context())
	s.must(err)
	if versions.Versions[0].Version != 2 || active.FacetsScoring[1].FacetName != "color" || active.FacetsScoring[1].Score != 100 {
		t.Errorf("version %d is active, with %+v", versions.Versions[0].Version, active.FacetsScoring)
	}
	b.settled()
}

// A merchandiser sees a draft in the simulator and goes back to it. Their session ends, and the
// draft is there after the next login.
func TestStoryOfADraft(t *testing.T) {
	t.Parallel()
	s, b := newStory(t)
	const moved = `[...document.querySelectorAll("input[type=range]")].some(e => document.getElementById(e.getAttribute("aria-labelledby"))?.textContent.trim() === "color" && e.value === "100")`
	press := func(text string) {
		t.Helper()
		b.click("button", text)
	}
	b.open("/console/strategy")
	b.tabTo("the slider of the color", labelled+`"color"`)
	b.press(kb.End, 1)
	b.until(previewed)
	press("See it in the simulator")
	b.until(`document.querySelectorAll(".sim-column").length === 3 && document.querySelectorAll(".sim-column h2")[2].textContent === "With the draft"`)
	b.accessible("a draft in the simulator")
	b.picture("simulator")
	b.look(390, "dark")
	b.fits("a draft in the simulator")
	b.look(1280, "light")
	said := eval[string](b, `document.querySelector("#sim-said").textContent`)
	b.do(chromedp.Focus("#impact"))
	b.press(kb.Home, 1)
	b.until(`document.querySelector("#sim-said").textContent !== ` + strconv.Quote(said))
	press("Back to the draft")
	b.until(`location.pathname === "/console/strategy" && ` + moved)

	_, err := chromedp.Call(b.ctx, network.ClearBrowserCookies, cdp.Empty{})
	s.must(err)
	press("Review and publish")
	b.sees("form.login #key")
	b.accessible("a login with a draft")
	b.do(chromedp.SendKeys("#app", "shop"), chromedp.SendKeys("#key", key), chromedp.Click("form.login button.primary"))
	b.until(`document.querySelector("h1")?.textContent === "Your draft is here"`)
	press("Go on with the draft")
	b.until(`location.pathname === "/console/strategy" && ` + moved)

	// They log in again in another tab, so the page is one of an earlier session.
	again := eval[int](b, `fetch("/console/login", {method: "POST", body: new URLSearchParams({app: "shop", key: "`+key+`"})}).then(r => r.status)`)
	if again != 200 {
		t.Fatalf("the login of another tab: %d", again)
	}
	b.tabTo("the slider of the brand", labelled+`"brand"`)
	b.press(kb.Home, 1)
	b.until(`document.querySelector("#preview [role=alert]")?.textContent.includes("press Preview")`)
	press("Preview")
	b.until(`document.querySelector("h1")?.textContent === "Your draft is here"`)
	b.accessible("a draft of an earlier session")
	press("Go on with the draft")
	b.until(`location.pathname === "/console/strategy" && ` + moved)
	b.settled("status of 401", "status of 403")
}

// A developer watches the live tail, and stops it to read: it stands still while it is paused, while
// the focus of the keyboard is in it, and while it is scrolled down.
func TestStoryOfTheTail(t *testing.T) {
	t.Parallel()
	s, b := newStory(t)
	_, err := s.engine.Jobs().BuildCrowd(t.Context(), api.CrowdRequest{})
	s.must(err)
	s.idle()
	b.open("/console/data")
	sent := 0
	// arrives sends an event and reports whether the tail shows it, or was asked again in vain.
	arrives := func() bool {
		t.Helper()
		sent++
		user := "late-" + strconv.Itoa(sent)
		s.must(s.engine.Events().Send(t.Context(), api.Event{EventType: "view", EventName: "Product Viewed", Index: shop.Index, UserToken: user, ObjectIDs: []string{"P106"}}))
		b.do(chromedp.Evaluate[chromedp.Void](`refused = 0`))
		shown := `document.querySelector("#tail").textContent.includes(` + strconv.Quote(user) + `)`
		b.until(`refused > 0 || ` + shown)
		return eval[bool](b, shown)
	}
	b.do(chromedp.Evaluate[chromedp.Void](`refused = 0; addEventListener("htmx:beforeRequest", e => { if (e.defaultPrevented) refused++ })`))
	if !arrives() {
		t.Error("the tail does not move")
	}
	for name, stop := range map[string][2]string{
		"paused":        {`document.querySelector("#tail-pause").click()`, `document.querySelector("#tail-pause").click()`},
		"focused":       {`document.querySelector("#tail a").focus()`, `document.activeElement.blur()`},
		"scrolled down": {`(e => { e.style.height = "40px"; e.scrollTop = 20 })(document.querySelector("#tail .scroll"))`, `document.querySelector("#tail .scroll").scrollTop = 0`},
	} {
		b.do(chromedp.Evaluate[chromedp.Void](stop[0]))
		if arrives() {
			t.Errorf("the tail moves while it is %s", name)
		}
		b.do(chromedp.Evaluate[chromedp.Void](stop[1]))
		if !arrives() {
			t.Errorf("the tail stands still after it was %s", name)
		}
	}
	b.accessible("a tail that can be paused")

	// They follow an event to its object, and see what goes with it.
	b.click("#tail a.chip", "P106")
	b.until(`[...document.querySelectorAll(".object-columns .sim-column")].filter(e => e.querySelector(".sim-card .sim-why")).length === 3`)
	b.accessible("an object")
	b.picture("object")
	b.look(390, "dark")
	b.fits("an object")
	b.settled()
}

// Someone looks at a user, asks for the reason of a score, and deletes the user.
func TestStoryOfAUser(t *testing.T) {
	t.Parallel()
	s, b := newStory(t)
	b.open("/console/users/" + known)
	b.do(chromedp.Click(".user-bar:not([open]) summary"))
	b.until(`document.querySelector(".user-bar[open] table")`)
	b.picture("user")
	b.accessible("an explanation")

	s.link(false)
	_, err := s.engine.Profiles().Link(t.Context(), api.LinkRequest{UserToken: "anonymous-1", AuthenticatedUserToken: known, Reason: "asked by mail"})
	s.must(err)
	for _, width := range []int64{390, 1280} {
		b.look(width, "light")
		b.open("/console/users/" + known)
		b.keep("links-" + strconv.FormatInt(width, 10))
		b.fits("a user with links")
	}
	b.accessible("links")
	b.click("#links a.button", "Unlink")
	b.sees("button.danger")
	b.accessible("an unlink")
	b.keep("unlink")
	b.do(chromedp.Click("form button.danger"))
	b.until(`document.querySelector("[role=status]")`)
	if i, err := s.engine.Profiles().Identity(t.Context(), known); err != nil || len(i.Links) != 1 || i.Links[0].State != "unlinked" {
		t.Errorf("after the unlink: %+v, %v", i, err)
	}

	b.click("a, button", "Delete")
	b.sees("button.danger")
	b.accessible("a deletion")
	b.do(chromedp.Click("form button.danger"))
	b.until(`document.querySelector("[role=status]")`)
	if _, err := s.engine.Profiles().Get(t.Context(), known, api.ProfileQuery{}); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("the deleted user: %v", err)
	}
	b.open("/console/jobs")
	b.picture("jobs")
	b.settled()
}

// A marketer asks who likes a brand, moves the limit, leaves users out, saves the segment, and
// downloads the list.
func TestStoryOfASegment(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.fill(150)
	s.pack()
	b := newBrowser(t, s)
	b.enter()
	b.look(1280, "light")
	b.open("/console/segments")
	b.click(".seg-values a", "Stridewell")
	b.sees("#slide0")
	count := func() string {
		return eval[string](b, `document.querySelector(".seg-total .figure")?.textContent ?? ""`)
	}
	before := count()
	b.do(chromedp.Focus("#slide0"))
	b.press(kb.ArrowRight, 40)
	b.until(`document.querySelector(".seg-plot .limit") && document.querySelector(".seg-total .figure").textContent !== "` + before + `"`)
	b.until(`document.activeElement.id === "slide0" && document.getElementById("json").value.includes('"above": ' + document.getElementById("above0").value)`)
	b.do(chromedp.Click(`button[value="without"]`))
	b.sees("#facet1")
	b.do(chromedp.SendKeys("#facet1", "color"))
	b.until(`document.querySelectorAll("#offers1 option").length > 3`)
	b.do(chromedp.SendKeys("#value1", "Green"), chromedp.SendKeys("#above1", "20000"))
	b.until(`document.querySelector(".seg-total").textContent.includes("but not color: Green above 20,000")`)
	b.accessible("a condition")
	b.do(chromedp.Evaluate[chromedp.Void](`scrollTo(0, 0)`))
	b.picture("segment")
	b.do(chromedp.SendKeys("#name", "runners"), chromedp.Click(".seg-save .primary"))
	b.sees(".notice")
	users := count()
	b.do(chromedp.Click(".seg-exports button"))
	b.sees(`a[href$="/file"]`)
	b.accessible("an export")
	if lines := eval[int](b, `fetch(document.querySelector('a[href$="/file"]').href).then(r => r.text()).then(t => t.trim().split("\n").length)`); users == "0" || strconv.Itoa(lines) != users {
		t.Errorf("the file has %d lines, and the page said %s users", lines, users)
	}
	b.open("/console/segments/runners/delete")
	b.accessible("the deletion of a segment")
	b.do(chromedp.Click("form button.danger"))
	b.sees(".notice")
	b.settled("htmx:sendAbort", "htmx:afterRequest") // of a count that the next key supersedes
}

// door is a way to a site that can be closed.
type door struct {
	site *site
	to   string // of the site
	at   string // host and port
	open *http.Server
}

// newDoor makes the site reachable through a door alone.
func newDoor(s *site) *door {
	d := &door{site: s, to: s.stack.URL, at: "127.0.0.1:0"}
	d.unlock()
	s.stack.URL = "http://" + d.at
	s.t.Cleanup(d.lock)
	return d
}

func (d *door) unlock() {
	to, err := url.Parse(d.to)
	d.site.must(err)
	l, err := net.Listen("tcp", d.at)
	d.site.must(err)
	d.at = l.Addr().String()
	d.open = &http.Server{Handler: &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.Out.Host = r.In.Host
	}, ErrorLog: log.New(io.Discard, "", 0)}}
	go func() { _ = d.open.Serve(l) }()
}

// lock refuses connections, and ends those that are open.
func (d *door) lock() { _ = d.open.Close() }

// The engine is gone while a person moves a slider: a banner says so, and goes when the engine is back,
// with the preview that was not answered.
func TestStoryOfAnEngineThatIsAway(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.fill(20)
	d := newDoor(s)
	b := newBrowser(t, s)
	b.enter()
	const banner, hint = `document.querySelector("#away").checkVisibility()`, `document.querySelector("#preview .quiet-state")?.checkVisibility()`
	b.open("/console/strategy")
	b.tabTo("the slider of the color", labelled+`"color"`)
	if eval[bool](b, banner) || !eval[bool](b, "Boolean("+hint+")") {
		t.Error("the page has a banner before anything happened, or no hint")
	}
	d.lock()
	b.press(kb.End, 1)
	b.until(banner)
	if eval[bool](b, "Boolean("+hint+")") {
		t.Error("the page asks to move a slider")
	}
	b.accessible("an engine that is away")
	b.fits("an engine that is away")
	d.unlock()
	b.until("!" + banner)
	b.until(previewed)

	for path, does := range map[string]string{
		"/console/data":      "", // it asks by itself
		"/console/simulator": `document.querySelector("#impact").dispatchEvent(new Event("input", {bubbles: true}))`,
	} {
		b.open(path)
		d.lock()
		if does != "" {
			b.do(chromedp.Evaluate[chromedp.Void](does))
		}
		b.until(banner)
		d.unlock()
		b.until("!" + banner)
	}

	// An engine that hangs: a request that takes longer than the page says has a banner too.
	const slow = `document.querySelector("#slow").checkVisibility()`
	b.open("/console/strategy")
	b.do(chromedp.Evaluate[chromedp.Void](`document.querySelector("#slow").dataset.after = 1;
		document.dispatchEvent(new CustomEvent("htmx:beforeRequest", {detail: {xhr: slow}}))`))
	b.until(slow)
	b.do(chromedp.Evaluate[chromedp.Void](`document.dispatchEvent(new CustomEvent("htmx:afterRequest", {detail: {xhr: slow}}))`))
	b.until("!" + slow)
	b.settled("ERR_CONNECTION_REFUSED", "ERR_EMPTY_RESPONSE", "ERR_CONNECTION_RESET", "htmx:sendError", "htmx:afterRequest")
}

// A session ends with its key: the next click shows the login, and why.
func TestStoryOfASessionThatEnds(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.fill(20)
	b := newBrowser(t, s)
	b.enter()
	s.must(s.stack.Backends.Config.DeleteKey(t.Context(), "shop", auth.Hash(key)))
	b.until(`fetch("/").then(r => r.status === 401)`)
	b.load("/console/users")
	b.sees("form.login")
	if text := eval[string](b, `document.body.innerText`); !strings.Contains(text, "Open the console") {
		t.Errorf("the page says %q", text)
	}
	b.settled("status of 401")
}
