// Package console is the public function that shows an app to people: its users, its
// strategy, what a change would do, what comes in and what runs. Its pages are made on the
// server, work without JavaScript, and load nothing from elsewhere.
//
// A page makes the requests of the API, within the process and with the permissions of the key that
// opened the session, and shows them. It keeps no data but the sessions that were logged out. A session is
// in a cookie that only this function can read.
package console

import (
	"cmp"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/cache"
	"github.com/affinityengine/affinity/shared/web/auth"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// Options are what the console needs.
type Options struct {
	Log *slog.Logger
	// API answers the requests of pages: the other public functions, in this process.
	API http.Handler
	// Auth checks the keys that open sessions.
	Auth *auth.Authenticator
	// Secret encrypts the cookies of sessions.
	Secret Secret
	// Ended keeps the sessions that were logged out.
	Ended Ended
	// Now is the engine's clock, at which pages are made; the wall clock ends sessions.
	Now func() time.Time
	// Links open the console without a key. Nil: there are none.
	Links *Links
	// URL is the address of the API, for commands that pages show. Empty: the address of the
	// console. Hosts are those of customers: no other host answers for their apps.
	URL   string
	Hosts auth.Hosts
}

// console serves the pages.
type console struct {
	Options
	engine   engine
	sessions *sessions
	endings  *endings
	products *products
	trends   *trends
	origin   *http.CrossOriginProtection
}

// Timeout is how long a request may take, as Terraform has it.
const Timeout = 2 * time.Minute

// New returns the function.
func New(o Options) http.Handler {
	c := &console{Options: o, engine: engine{o.API}, sessions: newSessions(o.Secret, time.Now),
		endings:  &endings{store: o.Ended, now: time.Now, known: cache.New[string, ending](endedSessions)},
		products: newProducts(time.Now), trends: newTrends(time.Now), origin: http.NewCrossOriginProtection()}
	rt := httpapi.NewRouter(o.Log)
	rt.OwnOrigin, rt.Life = true, Timeout
	rt.NotFound = "This page does not exist: the console begins at /"
	rt.Refuse = refuse
	handle := func(pattern string, h httpapi.Handler) { rt.Handle(pattern, h) }
	handle("GET /console/login", c.showLogin)
	handle("POST /console/login", c.login)
	handle("POST /console/logout", c.logout)
	handle("GET /console/open", c.open)
	handle("GET /console/static/{file}", serveStatic)
	for _, p := range pages {
		handle(p.pattern, c.page(p))
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		secure(w.Header()) // also of answers that no page makes
		rt.ServeHTTP(w, r)
	})
}

// page is a page of the console, or what a form of it does.
type page struct {
	pattern string // of http.ServeMux
	// section is the entry of the navigation that the page belongs to.
	section string
	// template is the file of the page without its ending.
	template string
	// fragment is the template's block that is shown alone to htmx. Empty: the page is shown whole.
	fragment string
	// poll is whether htmx asks for the fragment again and again. It then shows what it has until
	// the engine answers.
	poll bool
	// upload is whether the form of the page may have a file, and draft whether it may have a draft of
	// a strategy.
	upload, draft bool
	// load returns what the template shows.
	load func(*visit) (any, error)
}

// pages are all pages. Each file of the package adds its own.
var pages = []page{{pattern: "GET /console/{rest...}", template: "problem", load: func(*visit) (any, error) {
	return nil, httpapi.Errorf(http.StatusNotFound, "There is no such page")
}}}

// visit is a request for a page, in a session.
type visit struct {
	*http.Request
	w       http.ResponseWriter
	console *console
	session session
	grant   auth.Grant
	engine  *client.Client
	made    *calls

	// What a page says of itself beside what its template shows.
	title   string
	command string // of the command line that does the same
	notice  string
	status  int // of a page that is no problem and not the usual answer; 0: 200
}

// now is the engine's clock.
func (v *visit) now() time.Time { return v.console.Now() }

// may reports whether the session has one of the permissions.
func (v *visit) may(anyOf ...string) bool { return v.grant.Require(anyOf...) == nil }

// redirect is the error of a handler that sends the browser elsewhere.
type redirect struct{ to string }

func (r redirect) Error() string { return "see " + r.to }

// done returns to a page after a change. what is a key of notices.
func done(path, what string) error {
	separator := "?"
	if strings.Contains(path, "?") {
		separator = "&"
	}
	return redirect{path + separator + "done=" + what}
}

// notices are what pages say after a change. They are constants, so that an address cannot make
// a page say anything else.
var notices = map[string]string{}

// page returns the handler of a page.
func (c *console) page(p page) httpapi.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		if strings.Contains(r.Header.Get("Sec-Purpose"), "prefetch") {
			return httpapi.Errorf(http.StatusForbidden, "Pages are not loaded ahead")
		}
		v, err := c.enter(w, r)
		if err != nil {
			return c.toLogin(w, r, p, err)
		}
		if r.Method == http.MethodHead {
			return nil // what looks whether a page is there must not make its requests
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			err := c.permitChange(v, p)
			if errors.Is(err, errOtherSession) && p.draft {
				return c.keepDraft(v, p)
			}
			if err != nil {
				return c.fail(v, p, err)
			}
		}
		v.notice = notices[r.URL.Query().Get("done")]
		shown, err := p.load(v)
		var to redirect
		if errors.As(err, &to) {
			return see(w, r, to.to)
		}
		if errors.Is(err, errSent) {
			return nil
		}
		if err != nil {
			return c.fail(v, p, err)
		}
		return c.render(v, p, cmp.Or(v.status, http.StatusOK), shown)
	}
}

// maxForm is how many bytes a form may have, maxDraftForm one with the draft of a strategy, and
// maxUpload one with a file. A form has three bytes for each of a text that is not in ASCII, so the
// largest strategy that the engine takes, of api.MaxStrategyBody bytes, fits beside other fields.
const (
	maxForm      = 1 << 20
	maxDraftForm = 4 << 20
	maxUpload    = 8 << 20
)

// enter returns the visit of a request that is part of a session.
func (c *console) enter(w http.ResponseWriter, r *http.Request) (*visit, error) {
	s, err := c.sessions.of(r, c.cookieName(r))
	if err != nil {
		return nil, err
	}
	of := auth.Session{App: s.App, Key: s.Key, Permissions: s.Permissions}
	grant, err := c.Auth.Resume(r.Context(), of)
	if errors.Is(err, auth.ErrCredentials) {
		return nil, errNoSession
	}
	if err != nil {
		return nil, err
	}
	ended, err := c.endings.ended(r.Context(), s)
	if err != nil {
		return nil, err
	}
	if ended {
		return nil, errNoSession
	}
	made := &calls{}
	engine, err := c.engine.client(r, of, made)
	if err != nil {
		return nil, err
	}
	return &visit{Request: r, w: w, console: c, session: s, grant: grant, engine: engine, made: made}, nil
}

// permitChange refuses a change that no page of the session asks for. p is the page that makes it.
func (c *console) permitChange(v *visit, p page) error {
	if err := c.origin.Check(v.Request); err != nil {
		return httpapi.Errorf(http.StatusForbidden, "This change was asked for by a page of another site")
	}
	most, parse := int64(maxForm), v.ParseForm
	if p.draft {
		most = maxDraftForm
	}
	if p.upload && strings.HasPrefix(v.Header.Get("Content-Type"), "multipart/form-data") {
		most, parse = maxUpload, func() error { return v.ParseMultipartForm(maxUpload) }
	}
	v.Body = http.MaxBytesReader(v.w, v.Body, most)
	if err := parse(); err != nil {
		return httpapi.Errorf(http.StatusBadRequest, "The form cannot be read, or is larger than %d MiB", most>>20)
	}
	for name, values := range v.PostForm {
		if name != "lines" && slices.ContainsFunc(values, func(value string) bool { return !utf8.ValidString(value) }) {
			return httpapi.Errorf(http.StatusBadRequest, "The form is not valid UTF-8")
		}
	}
	if !c.sessions.knows(v.session, v.PostForm.Get("csrf")) {
		return errOtherSession
	}
	return nil
}

// errOtherSession says that a form was part of a page of an earlier session: the person has logged in
// again in another tab.
var errOtherSession = httpapi.Errorf(http.StatusForbidden,
	"This form belongs to another session: reload the page and send it again")

// see sends the browser to another page of the console.
func see(w http.ResponseWriter, r *http.Request, to string) error {
	if r.Header.Get("Hx-Request") != "" {
		w.Header().Set("Hx-Redirect", to)
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
	return nil
}

// fail shows why a page cannot be shown.
func (c *console) fail(v *visit, p page, err error) error {
	status, message := httpapi.Status(err)
	var refused *api.Error
	if errors.As(err, &refused) {
		status, message = refused.Status, refused.Message
	}
	if status >= http.StatusInternalServerError && v.Context().Err() == nil {
		c.Log.ErrorContext(v.Context(), "page failed", "page", v.Pattern, "status", status, "error", withoutPath(err))
	}
	changing := v.Method != http.MethodGet && v.Method != http.MethodHead
	shown := problem{Status: status, Message: message, Forbidden: refused != nil && status == http.StatusForbidden,
		Changing: changing}
	if p.poll && shown.Busy() && v.Header.Get("Hx-Request") != "" {
		v.w.WriteHeader(http.StatusNoContent)
		return nil
	}
	return c.render(v, page{section: p.section, template: "problem", fragment: "content"}, status, shown)
}

// withoutPath returns the cause of an error of a page's request. The error itself names the path,
// which may hold a user token.
func withoutPath(err error) error {
	if unreachable, ok := errors.AsType[*client.UnreachableError](err); ok {
		return unreachable.Unwrap()
	}
	return err
}

// problem says why something did not work.
type problem struct {
	Status    int
	Message   string
	Forbidden bool // the key lacks a permission
	Changing  bool // the request was for a change, of which a part may have been made
}

// refuse shows why a request has no page: it is part of no session, or nothing serves it.
func refuse(w http.ResponseWriter, r *http.Request, status int, message string) {
	block := "alone"
	if r.Header.Get("Hx-Request") != "" {
		block = "content"
	}
	shown := problem{Status: status, Message: message, Changing: r.Method != http.MethodGet && r.Method != http.MethodHead}
	_ = write(w, templates()["problem"], block, status, view{Page: shown, Title: "Not shown"})
}

// Busy reports whether the same may work later.
func (p problem) Busy() bool {
	return p.Status == http.StatusTooManyRequests || p.Status >= http.StatusInternalServerError
}

// contentPolicy lets pages load what the console serves, and nothing else. Pictures of records may be part of
// a page.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src " +
	"'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// withPictures lets the page of an answer load pictures from the addresses over TLS that records name.
func withPictures(h http.Header) {
	const own = "img-src 'self' data:"
	h.Set("Content-Security-Policy", strings.Replace(contentPolicy, own, own+" https:", 1))
}

func secure(h http.Header) {
	h.Set("Content-Security-Policy", contentPolicy)
	h.Set("Referrer-Policy", "same-origin") // with no-referrer forms would be sent with the origin null
	h.Set("X-Frame-Options", "DENY")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}
