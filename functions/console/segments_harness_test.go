package console_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/shared/api"
)

// packed is a person at a filled engine with the lists of segments.
func packed(t *testing.T) *person {
	t.Helper()
	s := newSite(t)
	s.fill(60)
	s.pack()
	return s.login(key)
}

// pack switches segments on and builds their lists.
func (s *site) pack() {
	s.t.Helper()
	s.must(s.stack.Backends.Config.SetSegments(context.Background(), "shop", true))
	s.eventually(func() bool { // another process may have read the app before
		_, err := s.engine.Segments().Refresh(context.Background())
		if err != nil && !strings.Contains(err.Error(), "409") {
			s.t.Fatal(err)
		}
		return err == nil
	})
	s.built()
}

// built waits until the newest build of the lists is done.
func (s *site) built() {
	s.t.Helper()
	s.eventually(func() bool {
		s.idle()
		list, err := s.engine.Segments().List(context.Background())
		s.must(err)
		return len(list.Builds) > 0 && list.Builds[0].State == api.JobDone
	})
}

// nestedSegment says more than fields can show; stridewell are users who like a brand of the simulated
// shop.
const nestedSegment = `{"or":[{"filter":"brand:Stridewell","above":100},{"and":[{"filter":"color:Blue"},{"filter":"categories.lvl0:Running"}]}]}`

var stridewell = api.SegmentCondition{And: []api.SegmentCondition{{Filter: "brand:Stridewell", Above: 1000}, {Not: &api.SegmentCondition{Filter: "color:Red", Above: 5000}}}}

// save saves two segments and builds the lists, so that they have sizes.
func (s *site) save() {
	s.t.Helper()
	_, err := s.engine.Segments().Save(context.Background(), "stridewell-not-red", stridewell, false)
	s.must(err)
	_, err = s.engine.Segments().Save(context.Background(), "blue", api.SegmentCondition{Filter: "color:Blue"}, false)
	s.must(err)
	_, err = s.engine.Segments().Refresh(context.Background())
	s.must(err)
	s.built()
}

// fields are what the form of a page sends.
func fields(page string) url.Values { return strategyView{Text: page}.form() }

// ask sends the form of a segment as htmx does while a person types.
func (p *person) ask(form url.Values) string {
	p.t.Helper()
	answer, body := p.send("POST", "/console/segments/query", form, htmx)
	if answer.StatusCode != http.StatusOK {
		p.t.Fatalf("%s: %s", answer.Status, body)
	}
	p.lacks(body, "<html", "<nav", "ZgotmplZ")
	return body
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
