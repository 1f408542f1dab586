package engines

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/rank/boost"
)

var rewrite = flag.Bool("rewrite", false, "write the answers and requests of the pages in functions/docs/guides/engines")

const pages = "../../functions/docs/guides/engines"

// block is a fenced block of a page: its language, and what its fence says.
var block = regexp.MustCompile("(?ms)^```(\\w+) ?([^\n]*)\n(.*?)^```$")

// page is a page of an engine.
type page struct {
	name, text string
}

func readPages(t *testing.T) []page {
	t.Helper()
	files, err := filepath.Glob(pages + "/*.md")
	if err != nil || len(files) < 2 {
		t.Fatalf("%d pages, %v", len(files), err)
	}
	var list []page
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, page{strings.TrimSuffix(filepath.Base(f), ".md"), string(text)})
	}
	return list
}

// find returns the first block of a language whose fence begins with a word, and
// the rest of the fence.
func (p page) find(language, word string) (text, fence string) {
	for _, m := range block.FindAllStringSubmatch(p.text, -1) {
		if rest, ok := strings.CutPrefix(m[2], word); ok && m[1] == language {
			return m[3], strings.TrimSpace(rest)
		}
	}
	return "", ""
}

// all returns all blocks of a language, as one text.
func (p page) all(language string) string {
	var all strings.Builder
	for _, m := range block.FindAllStringSubmatch(p.text, -1) {
		if m[1] == language {
			all.WriteString(m[3] + "\n")
		}
	}
	return all.String()
}

// replace writes a text into a block, if the test rewrites pages.
func (p *page) replace(t *testing.T, language, word string, value any) {
	t.Helper()
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		t.Fatal(err)
	}
	wrapped, err := wrap(bytes.TrimSpace(text.Bytes()), "")
	if err != nil {
		t.Fatal(err)
	}
	p.text = block.ReplaceAllStringFunc(p.text, func(b string) string {
		m := block.FindStringSubmatch(b)
		if m[1] != language || !strings.HasPrefix(m[2], word) {
			return b
		}
		return "```" + m[1] + " " + m[2] + "\n" + wrapped + "\n```"
	})
	if err := os.WriteFile(filepath.Join(pages, p.name+".md"), []byte(p.text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// wrap breaks JSON into lines that fit a page: of an object or a list that is
// longer than a line, each member has lines of its own.
func wrap(text json.RawMessage, indent string) (string, error) {
	if len(indent)+len(text) <= 120 || text[0] != '{' && text[0] != '[' {
		return string(text), nil
	}
	d := json.NewDecoder(bytes.NewReader(text))
	if _, err := d.Token(); err != nil {
		return "", err
	}
	var members []string
	for d.More() {
		name := ""
		if text[0] == '{' {
			key, err := d.Token()
			if err != nil {
				return "", err
			}
			name = strconv.Quote(key.(string)) + ":"
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return "", err
		}
		member, err := wrap(value, indent+" ")
		if err != nil {
			return "", err
		}
		members = append(members, name+member)
	}
	return string(text[:1]) + strings.Join(members, ",\n "+indent) + string(text[len(text)-1:]), nil
}

// render answers the parameters of a request for the user of the pages.
func render(parameters url.Values) (api.Boost, error) {
	impact, err := strconv.Atoi(parameters.Get("impact"))
	if err != nil {
		return api.Boost{}, err
	}
	q := boost.Request{Engine: parameters.Get("engine"), Mode: parameters.Get("mode"), Impact: impact, Limit: 20,
		Affinities: []boost.Affinity{{Facet: "brand", Value: "Apple", Score: 10}, {Facet: "color", Value: "Black", Score: 8}, {Facet: "brand", Value: "Sony", Score: 3}},
		Spoken:     func(string, string) bool { return true }}
	if text := parameters.Get("limit"); text != "" {
		if q.Limit, err = strconv.Atoi(text); err != nil {
			return api.Boost{}, err
		}
	}
	if text := parameters.Get("fields"); text != "" {
		q.Fields = strings.Split(text, ",")
	}
	if facet, field, ok := strings.Cut(parameters.Get("fieldMap"), ":"); ok {
		q.FieldMap = map[string]string{facet: field}
	}
	for name := range parameters {
		if !slices.Contains([]string{"engine", "mode", "impact", "limit", "fields", "fieldMap"}, name) {
			return api.Boost{}, fmt.Errorf("GET /1/boosts has no parameter %s", name)
		}
	}
	a, err := boost.Render(q)
	if err != nil {
		return api.Boost{}, err
	}
	answer := api.Boost{UserToken: "user-1", Engine: q.Engine, Mode: a.Mode, StrategyVersion: 1, Impact: impact, Query: a.Query,
		AsOf: api.Time{Time: time.Date(2026, time.November, 22, 10, 0, 0, 0, time.UTC)}, Affinities: []api.BoostAffinity{}, Dropped: []api.DroppedAffinity{}}
	for _, w := range a.Affinities {
		answer.Affinities = append(answer.Affinities, api.BoostAffinity(w))
	}
	for _, d := range a.Dropped {
		answer.Dropped = append(answer.Dropped, api.DroppedAffinity(d))
	}
	return answer, nil
}

var asked = regexp.MustCompile(`/1/boosts\?([^"]*)"`)

// The answer on each page is the renderer's answer to the request on it.
func TestPagesShowAnswers(t *testing.T) {
	var named []string
	for _, p := range readPages(t) {
		if p.name == "README" {
			continue
		}
		named = append(named, p.name)
		curl, _ := p.find("sh", "")
		m := asked.FindStringSubmatch(curl)
		if m == nil {
			t.Errorf("%s asks for no boost", p.name)
			continue
		}
		parameters, err := url.ParseQuery(m[1])
		if err != nil {
			t.Fatal(err)
		}
		full, err := render(parameters)
		if err != nil {
			t.Errorf("%s: %v", p.name, err)
			continue
		}
		word, want := "answer", any(full)
		if !slices.Contains(boost.Engines(), p.name) {
			word, want = "affinities", map[string]any{"affinities": full.Affinities}
		}
		if *rewrite {
			p.replace(t, "json", word, want)
		}
		got, _ := p.find("json", word)
		same(t, p.name+": the answer", got, want)
	}
	for _, engine := range boost.Engines() {
		if !slices.Contains(named, engine) {
			t.Errorf("%s has no page", engine)
		}
	}
}

// same compares a text of JSON with a value.
func same(t *testing.T, what, text string, want any) {
	t.Helper()
	encoded, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var g, w any
	if err := json.Unmarshal([]byte(text), &g); err != nil {
		t.Errorf("%s: %v in %q", what, err, text)
		return
	}
	if err := json.Unmarshal(encoded, &w); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(w, g); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
