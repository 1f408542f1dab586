package console

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/affinityengine/affinity/shared/auth"
	"github.com/affinityengine/affinity/shared/httpapi"
)

// login shows what the page of the form shows.
type loginForm struct {
	App, Message string
	Ended        bool
	Links        bool // the terminal prints links
}

func (c *console) showLogin(w http.ResponseWriter, r *http.Request) error {
	return c.renderLogin(w, http.StatusOK, loginForm{Ended: r.URL.Query().Get("ended") != ""})
}

// login begins a session with a key.
func (c *console) login(w http.ResponseWriter, r *http.Request) error {
	form := loginForm{}
	if err := c.origin.Check(r); err != nil {
		form.Message = "The form was sent by a page of another site"
		return c.renderLogin(w, http.StatusForbidden, form)
	}
	r.Body = http.MaxBytesReader(w, r.Body, 16<<10)
	if err := r.ParseForm(); err != nil {
		form.Message = "The form cannot be read"
		return c.renderLogin(w, http.StatusBadRequest, form)
	}
	form.App = strings.TrimSpace(r.PostForm.Get("app"))
	request := r.Clone(r.Context())
	request.URL.RawQuery = ""
	request.Header.Set("X-Algolia-Application-Id", form.App)
	request.Header.Set("X-Algolia-Api-Key", strings.TrimSpace(r.PostForm.Get("key")))
	request.Header.Set(auth.CustomerHeader, form.App) // the console's host serves every app
	begun, err := c.Auth.Begin(request)
	if err == nil && !slices.ContainsFunc(begun.Rights, func(right string) bool { return right != auth.Search }) {
		err = httpapi.Errorf(http.StatusForbidden, "This key only sends events: the console needs one with the right recommendation or admin")
	}
	if err != nil {
		status, message := httpapi.Status(err)
		if errors.Is(err, auth.ErrCredentials) || errors.Is(err, auth.ErrMissing) {
			message = "The app and the key do not belong together, or the key has ended"
		}
		form.Message = message
		return c.renderLogin(w, status, form)
	}
	return c.begin(w, begun)
}

// begin sets the cookie of a session, and shows a page that goes on to the first one. A
// redirect would not do: a browser that has followed a link of another program sends a strict
// cookie only once a page of the console asks for the next.
func (c *console) begin(w http.ResponseWriter, of auth.Session) error {
	cookie, err := c.sessions.begin(of)
	if err != nil {
		return err
	}
	http.SetCookie(w, cookie)
	return write(w, templates()["login"], "opened", http.StatusOK, view{Title: "Welcome", App: of.App})
}

// open begins a session with a link that the terminal has printed.
func (c *console) open(w http.ResponseWriter, r *http.Request) error {
	if r.Method == http.MethodHead {
		return nil // what looks whether the link is there must not use it up
	}
	app, key, ok := c.Links.use(r.URL.Query().Get("code"))
	if !ok {
		return c.renderLogin(w, http.StatusForbidden, loginForm{Message: "This link has been used, or is older than ten minutes"})
	}
	begun := auth.Session{App: app, Key: key, Rights: auth.All}
	grant, err := c.Auth.Resume(r.Context(), begun)
	if err != nil {
		status, _ := httpapi.Status(err)
		return c.renderLogin(w, status, loginForm{App: app, Message: "The key of this link is no longer valid"})
	}
	begun.Rights = grant.Rights()
	return c.begin(w, begun)
}

func (c *console) logout(w http.ResponseWriter, r *http.Request) error {
	if err := c.origin.Check(r); err != nil {
		return httpapi.Errorf(http.StatusForbidden, "This change was asked for by a page of another site")
	}
	v, err := c.enter(w, r)
	if err != nil {
		return c.toLogin(w, r, err)
	}
	if err := c.permitChange(v, false); err != nil {
		return c.fail(v, page{}, err)
	}
	http.SetCookie(w, cookie("", -1))
	return see(w, r, "/console/login")
}
