package console_test

import (
	"html"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/shared/local/stack"
)

// strategist is a session of the console, in a browser without JavaScript.
type strategist struct {
	*person
	live bool // requests are those of htmx
}

// strategistOf logs in with a key of the app of functiontest.
func strategistOf(t *testing.T, s *stack.Stack, key string) *strategist {
	t.Helper()
	return &strategist{person: (&site{t: t, stack: s}).login(key)}
}

// strategyView is an answer of the console.
type strategyView struct {
	Status int
	To     string // of a redirect
	Text   string
}

func (b *strategist) view(method, path string, form url.Values) strategyView {
	b.t.Helper()
	answer, text := b.send(method, path, form, htmxIf(b.live)...)
	return strategyView{answer.StatusCode, answer.Header.Get("Location"), text}
}

func (b *strategist) get(path string) strategyView { return b.view("GET", path, nil) }

func (b *strategist) post(path string, form url.Values) strategyView {
	return b.view("POST", path, form)
}

var (
	formInput    = regexp.MustCompile(`<input [^>]*>`)
	formText     = regexp.MustCompile(`(?s)<textarea [^>]*name="([^"]*)"[^>]*>(.*?)</textarea>`)
	attributeOf  = regexp.MustCompile(`([a-z-]+)="([^"]*)"`)
	strategyTags = regexp.MustCompile(`<[^>]*>`)
)

// form returns what a browser would send of the fields of a page.
func (v strategyView) form() url.Values {
	fields := url.Values{}
	for _, tag := range formInput.FindAllString(v.Text, -1) {
		of := map[string]string{}
		for _, a := range attributeOf.FindAllStringSubmatch(tag, -1) {
			of[a[1]] = html.UnescapeString(a[2])
		}
		if of["name"] != "" && (of["type"] != "radio" && of["type"] != "checkbox" || strings.Contains(tag, " checked")) {
			fields.Add(of["name"], of["value"])
		}
	}
	for _, m := range formText.FindAllStringSubmatch(v.Text, -1) {
		fields.Set(m[1], strings.ReplaceAll(html.UnescapeString(m[2]), "\n", "\r\n"))
	}
	return fields
}

// plain is the text that a person reads.
func (v strategyView) plain() string {
	return strings.Join(strings.Fields(html.UnescapeString(strategyTags.ReplaceAllString(v.Text, " "))), " ")
}

// shows checks that a page has texts.
func (v strategyView) shows(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(v.plain(), text) && !strings.Contains(v.Text, text) {
			t.Errorf("the page (%d) lacks %q:\n%s", v.Status, text, v.plain())
		}
	}
}

func (v strategyView) lacks(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if strings.Contains(v.Text, text) {
			t.Errorf("the page shows %q", text)
		}
	}
}
