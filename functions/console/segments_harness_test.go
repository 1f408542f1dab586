package console_test

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/auth"
	"github.com/affinityengine/affinity/shared/config"
)

// pack switches segments on and builds their lists.
func (s *site) pack() {
	s.t.Helper()
	s.must(s.stack.Backends.Config.SetSegments(context.Background(), "shop", true))
	for { // another process may have read the app before
		_, err := s.engine.RefreshSegments(context.Background())
		if err == nil {
			break
		}
		if !strings.Contains(err.Error(), "409") {
			s.t.Fatal(err)
		}
		time.Sleep(5 * time.Millisecond)
	}
	s.built()
}

// built waits until the newest build of the lists is done.
func (s *site) built() {
	s.t.Helper()
	for until := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		s.idle()
		list, err := s.engine.Segments(context.Background())
		s.must(err)
		if len(list.Builds) > 0 && list.Builds[0].State == api.JobDone {
			return
		}
		if time.Now().After(until) {
			s.t.Fatalf("no build ends: %+v", list.Builds)
		}
	}
}

// nestedSegment says more than fields can show; stridewell are users who like a brand of the simulated
// shop.
const nestedSegment = `{"or":[{"filter":"brand:Stridewell","above":100},{"and":[{"filter":"color:Blue"},{"filter":"categories.lvl0:Running"}]}]}`

var stridewell = api.SegmentCondition{And: []api.SegmentCondition{{Filter: "brand:Stridewell", Above: 1000}, {Not: &api.SegmentCondition{Filter: "color:Red", Above: 5000}}}}

// save saves two segments and builds the lists, so that they have sizes.
func (s *site) save() {
	s.t.Helper()
	_, err := s.engine.SaveSegment(context.Background(), "stridewell-not-red", stridewell, false)
	s.must(err)
	_, err = s.engine.SaveSegment(context.Background(), "blue", api.SegmentCondition{Filter: "color:Blue"}, false)
	s.must(err)
	_, err = s.engine.RefreshSegments(context.Background())
	s.must(err)
	s.built()
}

// as logs in with a key that has one right.
func (s *site) as(right string) *person {
	s.t.Helper()
	name := "a-key-for-" + right
	s.must(s.stack.Backends.Config.PutKey(context.Background(), "shop", config.Key{Hash: auth.Hash(name), ACL: []string{right}}))
	return s.login(name)
}

// fields are what the form of a page sends.
func fields(page string) url.Values { return strategyView{Text: page}.form() }

// ask sends the form of a segment as htmx does while a person types.
func (p *person) ask(form url.Values) string {
	p.t.Helper()
	r, err := http.NewRequest("POST", p.stack.URL+"/console/segments/query", strings.NewReader(form.Encode()))
	p.must(err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", p.stack.URL)
	r.Header.Set("Hx-Request", "true")
	r.AddCookie(&http.Cookie{Name: p.cookie.Name, Value: p.cookie.Value})
	answer, err := http.DefaultTransport.RoundTrip(r)
	p.must(err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		p.t.Fatalf("%s: %v: %s", answer.Status, err, body)
	}
	p.lacks(string(body), "<html", "<nav", "ZgotmplZ")
	return string(body)
}

// row sets a filter of a form.
func row(form url.Values, i int, facet, value, above string) url.Values {
	for name, text := range map[string]string{"facet": facet, "value": value, "above": above, "kept": "", "halfLife": "", "of": ""} {
		for len(form[name]) <= i {
			form[name] = append(form[name], "")
		}
		form[name][i] = text
	}
	for len(form["side"]) <= i {
		form["side"] = append(form["side"], "with")
	}
	return form
}
