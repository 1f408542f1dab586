package console

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync"
)

//go:embed templates/*.html
var templateFiles embed.FS

// layout are the templates that all pages share; each page is parsed on top of a copy.
var layout = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(functions).ParseFS(templateFiles, "templates/layout.html",
		"templates/parts*.html"))
})

// templates are those of the pages, by the name of their file.
var templates = sync.OnceValue(func() map[string]*template.Template {
	files, err := fs.Glob(templateFiles, "templates/*.html")
	if err != nil {
		panic(err) // the pattern is a constant
	}
	all := map[string]*template.Template{}
	for _, file := range files {
		name := strings.TrimSuffix(path.Base(file), ".html")
		if name != "layout" && !strings.HasPrefix(name, "parts") {
			all[name] = template.Must(template.Must(layout().Clone()).ParseFS(templateFiles, file))
		}
	}
	return all
})

// view is what the layout shows.
type view struct {
	Page     any // what the page's own template shows
	Title    string
	Section  string
	Sections []section
	App, Key string
	CSRF     string
	Notice   string
	Calls    []call
	Command  string
	URL      string // of the API
	can      func(anyOf ...string) bool
}

// Can reports whether the session has one of the permissions.
func (v view) Can(anyOf ...string) bool { return v.can(anyOf...) }

// section is an entry of the navigation.
type section struct{ Name, Path, Title, Icon string }

// sections are in the order of the navigation.
var sections = []section{
	{"overview", "/", "Overview", "i-overview"},
	{"users", "/console/users", "Users", "i-users"},
	{"strategy", "/console/strategy", "Strategy", "i-strategy"},
	{"simulator", "/console/simulator", "Simulator", "i-simulator"},
	{"segments", "/console/segments", "Segments", "i-segments"},
	{"data", "/console/data", "Data in", "i-data"},
	{"jobs", "/console/jobs", "Jobs", "i-jobs"},
}

// render writes a page, or the fragment of it that htmx asks for.
func (c *console) render(v *visit, p page, status int, shown any) error {
	t := templates()[p.template]
	if t == nil {
		return fmt.Errorf("the page %q has no template", p.template)
	}
	view := view{
		Page: shown, Title: v.title, Section: p.section, Sections: sections, App: v.session.App, Key: v.grant.Key,
		CSRF:   c.sessions.token(v.session),
		Notice: v.notice, Calls: v.made.list(), Command: v.command, URL: c.urlFor(v), can: v.may,
	}
	block := "layout"
	if p.fragment != "" && v.Header.Get("Hx-Request") != "" {
		block = p.fragment
	}
	return write(v.w, t, block, status, view)
}

// urlFor returns the address at which the API answers for the app of a visit.
func (c *console) urlFor(v *visit) string {
	if host := c.Hosts.For(v.session.App); host != "" && c.URL != "" {
		return "https://" + host
	}
	if c.URL != "" {
		return c.URL
	}
	if overTLS(v.Request) {
		return "https://" + v.Host
	}
	return "http://" + v.Host
}

func (c *console) renderLogin(w http.ResponseWriter, status int, form loginForm) error {
	form.Links = c.Links != nil
	return write(w, templates()["login"], "login", status,
		view{Page: form, Title: "Log in", can: func(...string) bool { return false }})
}

// write executes a template whole before it sends anything, so that a failure is no half page.
func write(w http.ResponseWriter, t *template.Template, block string, status int, shown any) error {
	var b bytes.Buffer
	if err := t.ExecuteTemplate(&b, block, shown); err != nil {
		return fmt.Errorf("render a page: %w", err)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, err := w.Write(b.Bytes())
	if err != nil {
		return nil // the client is gone
	}
	return nil
}
