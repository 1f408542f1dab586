package console

import (
	"cmp"
	"errors"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/web/auth"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// loginForm is what the page of the form shows.
type loginForm struct {
	App, Message string
	Ended        bool
	Links        bool   // the terminal prints links
	To           string // the page that was asked for; empty: the first one
	Draft        string // of a strategy that was sent after the session's end; empty: none
}

// maxTo is how long the address of a page may be that a login goes on to.
const maxTo = 2000

// toLogin asks for a key if a request is part of no session.
func (c *console) toLogin(w http.ResponseWriter, r *http.Request, p page, err error) error {
	if !errors.Is(err, errNoSession) {
		return err
	}
	form := loginForm{}
	if _, had := r.Cookie(c.cookieName(r)); had == nil {
		form.Ended = true
		c.setCookie(w, r, "", -1)
	}
	if r.Header.Get("Hx-Request") != "" {
		return write(w, templates()["login"], "ended", http.StatusUnauthorized, view{Page: p.section == "strategy"})
	}
	if !keepsSession(r) {
		return refuseInsecure(w, r)
	}
	to := r.URL.RequestURI()
	switch {
	case r.Method == http.MethodPost:
		form.Draft = c.draftOf(w, r)
	case !form.Ended && r.Header.Get("Sec-Fetch-Site") == "cross-site":
		// Another site or program led here, so the browser sent no strict cookie. It does once a
		// page of the console asks.
		return write(w, templates()["login"], "opened", http.StatusOK, view{Title: "Welcome", Page: opened{To: local(to)}})
	default:
		form.To = local(to)
	}
	return c.renderLogin(w, http.StatusUnauthorized, form)
}

// draftOf returns the draft of a strategy that a page of the console sends, so that it outlives the
// session. What another site sends is dropped.
func (c *console) draftOf(w http.ResponseWriter, r *http.Request) string {
	r.Body = http.MaxBytesReader(w, r.Body, maxDraftForm)
	if c.origin.Check(r) != nil || r.ParseForm() != nil || r.PostForm.Get("json") == "" {
		return ""
	}
	_, text, _ := readForm(r.PostForm).draft()
	return text
}

// keepDraft shows the draft of an earlier session in a form of this one. It changes nothing.
func (c *console) keepDraft(v *visit, p page) error {
	live := v.Header.Get("Hx-Request") != ""
	if live && p.section == "strategy" {
		return write(v.w, templates()["login"], "again", http.StatusForbidden, view{})
	}
	text := c.draftOf(v.w, v.Request)
	if live || text == "" {
		return c.fail(v, p, errOtherSession)
	}
	return write(v.w, templates()["login"], "opened", http.StatusForbidden, view{
		Title: "Your draft", App: v.session.App, CSRF: c.sessions.token(v.session), Page: opened{To: "/", Draft: text},
	})
}

// local returns the address of a page of the console, or "/".
func local(to string) string {
	u, err := url.Parse(to)
	if err != nil || len(to) > maxTo || u.Scheme != "" || u.Host != "" || u.User != nil ||
		!strings.HasPrefix(to, "/console/") || strings.ContainsAny(to, "\\\r\n\t") {
		return "/"
	}
	return to
}

func (c *console) showLogin(w http.ResponseWriter, r *http.Request) error {
	if !keepsSession(r) {
		return refuseInsecure(w, r)
	}
	return c.renderLogin(w, http.StatusOK, loginForm{})
}

// login begins a session with a key.
func (c *console) login(w http.ResponseWriter, r *http.Request) error {
	if !keepsSession(r) {
		return refuseInsecure(w, r)
	}
	form := loginForm{}
	if err := c.origin.Check(r); err != nil {
		form.Message = "The form was sent by a page of another site"
		return c.renderLogin(w, http.StatusForbidden, form)
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxDraftForm)
	if err := r.ParseForm(); err != nil {
		form.Message = "The form cannot be read"
		return c.renderLogin(w, http.StatusBadRequest, form)
	}
	form.App, form.To, form.Draft = strings.TrimSpace(r.PostForm.Get("app")), local(r.PostForm.Get("to")),
		r.PostForm.Get("json")
	request := r.Clone(r.Context())
	request.URL.RawQuery = ""
	request.Header.Set("X-Algolia-Application-Id", form.App)
	request.Header.Set("X-Algolia-Api-Key", strings.TrimSpace(r.PostForm.Get("key")))
	request.Header.Set(auth.CustomerHeader, form.App) // the console's host serves every app
	begun, err := c.Auth.Begin(request)
	if err == nil && !slices.ContainsFunc(begun.Permissions,
		func(permission string) bool { return permission != auth.Search }) {
		err = httpapi.Errorf(http.StatusForbidden,
			"This key only sends events: the console needs one with the permission recommendation or admin")
	}
	if err != nil {
		status, message := httpapi.Status(err)
		if errors.Is(err, auth.ErrCredentials) || errors.Is(err, auth.ErrMissing) {
			message = "The app and the key do not belong together, or the key has ended"
		}
		form.Message = message
		return c.renderLogin(w, status, form)
	}
	return c.begin(w, r, begun, form)
}

// opened is the page after the login.
type opened struct {
	To    string // the page to go on to
	Draft string // of a strategy, to go on with; empty: none
}

// begin sets the cookie of a session, and shows a page that goes on to the one that was asked for. A
// redirect would not do: a browser that has followed a link of another program sends a strict
// cookie only once a page of the console asks for the next.
func (c *console) begin(w http.ResponseWriter, r *http.Request, of auth.Session, form loginForm) error {
	begun, value, err := c.sessions.begin(of)
	if err != nil {
		return err
	}
	c.setCookie(w, r, value, int(sessionLife/time.Second))
	return write(w, templates()["login"], "opened", http.StatusOK, view{
		Title: "Welcome", App: of.App, CSRF: c.sessions.token(begun), Page: opened{To: local(form.To), Draft: form.Draft},
	})
}

// open begins a session with a link that the terminal has printed.
func (c *console) open(w http.ResponseWriter, r *http.Request) error {
	if r.Method == http.MethodHead {
		return nil // what looks whether the link is there must not use it up
	}
	if !keepsSession(r) {
		return refuseInsecure(w, r)
	}
	app, key, ok := c.Links.use(r.URL.Query().Get("code"))
	if !ok {
		return c.renderLogin(w, http.StatusForbidden,
			loginForm{Message: "This link has been used, or is older than ten minutes"})
	}
	begun := auth.Session{App: app, Key: key, Permissions: auth.All}
	grant, err := c.Auth.Resume(r.Context(), begun)
	if err != nil {
		status, _ := httpapi.Status(err)
		return c.renderLogin(w, status, loginForm{App: app, Message: "The key of this link is no longer valid"})
	}
	begun.Permissions = grant.Permissions()
	return c.begin(w, r, begun, loginForm{})
}

func (c *console) logout(w http.ResponseWriter, r *http.Request) error {
	if err := c.origin.Check(r); err != nil {
		return httpapi.Errorf(http.StatusForbidden, "This change was asked for by a page of another site")
	}
	v, err := c.enter(w, r)
	if err != nil {
		return c.toLogin(w, r, page{}, err)
	}
	if err := c.permitChange(v, page{}); err != nil {
		return c.fail(v, page{}, err)
	}
	c.setCookie(w, r, "", -1)
	if err := c.endings.end(r.Context(), v.session); err != nil {
		return c.fail(v, page{}, err)
	}
	return see(w, r, "/console/login")
}

// overTLS reports whether a browser asked by https, perhaps a proxy.
func overTLS(r *http.Request) bool {
	return r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https"
}

// keepsSession reports whether a browser keeps the cookie of a session from the address of a request.
// It sends Sec-Fetch-Site only where it does, so a proxy with TLS need not say that it is one.
func keepsSession(r *http.Request) bool {
	return overTLS(r) || httpapi.Loopback(r.Host) || r.Header.Get("Sec-Fetch-Site") != ""
}

// insecure is the page in place of a login at an address from which no browser keeps a session.
type insecure struct {
	Host   string
	Here   string // the same page on the machine of the engine, or through Tunnel
	Tunnel string // the command that makes the tunnel
	Link   bool   // the page is a link that has not been used
}

// plainHost matches the names of hosts that a command may have.
var plainHost = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.-]*$`)

// refuseInsecure says where to log in instead.
func refuseInsecure(w http.ResponseWriter, r *http.Request) error {
	at := url.URL{Host: r.Host}
	host, port := at.Hostname(), cmp.Or(at.Port(), "80")
	to, ip := host, net.ParseIP(host)
	if ip.IsUnspecified() || ip == nil && !plainHost.MatchString(host) {
		host, to = "HOST", "localhost"
	}
	local := cmp.Or(at.Port(), "8080") // a person may not listen on 80
	page := insecure{Host: r.Host, Here: "http://localhost:" + local + "/",
		Tunnel: "ssh -L " + shellArg(local+":"+net.JoinHostPort(to, port)) + " " + shellArg(host)}
	if r.URL.Path == "/console/open" {
		page.Here, page.Link = "http://localhost:"+local+r.URL.RequestURI(), true
	}
	return write(w, templates()["login"], "insecure", http.StatusForbidden, view{Title: "Log in elsewhere", Page: page})
}
