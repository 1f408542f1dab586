package console

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/web/auth"
)

// segmentPage is what the page of one segment shows: a condition, and who meets it.
type segmentPage struct {
	Now       time.Time
	Denied    bool // the key may not count users
	Form      *segmentForm
	Rows      []rowView
	Facets    []string // of the strategy
	HalfLives []halfLifeChoice
	Answer    *segmentAnswer
	All       int64     // users in the lists; 0: not known
	Built     time.Time // the lists

	Name    string // as it was typed
	Fault   string // of the name
	Taken   string // the address of the segment that has the name
	Opened  string // the saved segment that the page began with
	SetAt   string // when its condition was set
	Changed *api.Segment
	Saved   *api.Segment
	Trend   []int64
	Days    []sizeLine
	Exports []exportLine
}

// sizeLine is the size of a segment on a day.
type sizeLine struct {
	Day   string
	Users api.UserCount
}

// Path is the address of the saved segment.
func (p *segmentPage) Path() string { return segmentPath(p.Opened, "") }

// ExportPath is where the form of the export leads.
func (p *segmentPage) ExportPath() string { return segmentPath(p.Opened, "/exports") }

// DeletePath asks whether to delete the segment.
func (p *segmentPage) DeletePath() string { return segmentPath(p.Opened, "/delete") }

// With and Without are the rows of filters that hold, and of those that do not.
func (p *segmentPage) With() []rowView    { return p.side(false) }
func (p *segmentPage) Without() []rowView { return p.side(true) }

func (p *segmentPage) side(without bool) (rows []rowView) {
	for _, r := range p.Rows {
		if r.Without == without {
			rows = append(rows, r)
		}
	}
	return rows
}

// Swaps are the rows whose sliders htmx replaces.
func (p *segmentPage) Swaps() (rows []rowView) {
	for _, r := range p.Rows {
		if r.Swap || r.SwapOffer {
			rows = append(rows, r)
		}
	}
	return rows
}

// newSegment shows a condition that no segment has yet: that of the address.
func newSegment(v *visit) (any, error) {
	query, form := v.URL.Query(), emptySegment()
	switch {
	case query.Has("where"):
		form = &segmentForm{JSON: query.Get("where")}
		form.takeJSON()
		form.tidy()
	case query.Has("facet"):
		form = &segmentForm{Shown: true, Rows: []segmentRow{{Facet: query.Get("facet"), Value: query.Get("value")}}}
		form.write()
	}
	p := &segmentPage{Form: form}
	return p, p.load(v)
}

// openSegment shows a saved segment.
func openSegment(v *visit) (any, error) {
	p := &segmentPage{}
	if !v.canQuery() {
		return p, p.load(v)
	}
	s, err := v.engine.Segments().Get(v.Context(), v.PathValue("name"))
	if err != nil {
		return nil, err
	}
	p.Form, p.Name = formOf(s.Where), s.Name
	p.open(s)
	return p, p.load(v)
}

// open takes over what the engine says of a saved segment.
func (p *segmentPage) open(s api.Segment) {
	const shownDays = 90
	p.Saved, p.Opened, p.SetAt = &s, s.Name, s.SetAt.UTC().Format(time.RFC3339Nano)
	for _, size := range s.Sizes[max(0, len(s.Sizes)-shownDays):] {
		p.Trend = append(p.Trend, size.Users.N)
		p.Days = append(p.Days, sizeLine{dayText(size.Day), size.Users})
	}
	slices.Reverse(p.Days)
}

// changeSegment shows the condition of a form, after the change that a button asks for.
func changeSegment(v *visit) (any, error) {
	p := &segmentPage{Form: readSegmentForm(v.PostForm), Name: strings.TrimSpace(v.PostForm.Get("name"))}
	if v.Header.Get("Hx-Request") != "" && v.PostForm.Get("do") == "" {
		return p, p.live(v)
	}
	p.Form.tidy()
	p.Form.change(v.PostForm.Get("do"))
	if err := p.reopen(v); err != nil {
		return nil, err
	}
	return p, p.load(v)
}

// reopen reads the saved segment that the form began with. It may be gone.
func (p *segmentPage) reopen(v *visit) error {
	name := v.PostForm.Get("opened")
	if name == "" || !v.canQuery() {
		return nil
	}
	s, err := v.engine.Segments().Get(v.Context(), name)
	if _, refused := asRefusal(err); refused {
		return nil
	}
	if err != nil {
		return err
	}
	p.open(s)
	p.SetAt = v.PostForm.Get("setAt")
	return nil
}

// load reads what the page offers and what the engine answers.
func (p *segmentPage) load(v *visit) error {
	p.Now = v.now()
	v.title = "New segment"
	if p.Opened != "" {
		v.title = "Segment " + p.Opened
	}
	if p.Denied = !v.canQuery(); p.Denied {
		return nil
	}
	var lists part[api.Segments]
	var active part[api.Strategy]
	var exports part[[]exportLine]
	a := &asks{}
	ask(a, &lists, func() (api.Segments, error) { return v.engine.Segments().List(v.Context()) })
	if v.may(auth.Recommendation) {
		ask(a, &active, func() (api.Strategy, error) { return v.engine.Strategies().Get(v.Context()) })
	}
	if p.Opened != "" && v.may(auth.Admin) {
		ask(a, &exports, func() ([]exportLine, error) { return readExports(v, p.Opened) })
	}
	a.wait()
	if lists.OK && lists.Got.Lists != nil {
		p.All, p.Built = lists.Got.Lists.Users, lists.Got.Lists.BuiltAt.Time
	}
	p.Facets = slices.DeleteFunc(scoredFacets(active.Got), func(facet string) bool { return !plain(facet) })
	for i, h := range active.Got.HalfLives {
		text := span(h.String())
		if i == 0 {
			p.HalfLives = append(p.HalfLives, halfLifeChoice{"", text + ", the first"})
		} else {
			p.HalfLives = append(p.HalfLives, halfLifeChoice{h.String(), text})
		}
	}
	p.Exports = exports.Got
	p.rows(nil)
	p.ask(v)
	p.Answer.Link = p.link()
	v.command = p.command(v.may(auth.Admin))
	v.made.keep(func(c call) bool {
		return c.Path == "/1/segments/query" || strings.HasPrefix(c.Path, "/1/segments/histogram?") ||
			c.Method == http.MethodPut
	})
	return nil
}

// live answers a field that changes: who meets the condition, without the form around it.
func (p *segmentPage) live(v *visit) error {
	p.Now = v.now()
	if p.Denied = !v.canQuery(); p.Denied {
		return nil
	}
	p.All, _ = strconv.ParseInt(v.PostForm.Get("all"), 10, 64)
	p.Built, _ = time.Parse(time.RFC3339, v.PostForm.Get("built"))
	p.rows(v.PostForm["of"])
	p.ask(v)
	p.Answer.Link = p.link()
	return nil
}

// link opens the same condition, empty if it is too long for an address.
func (p *segmentPage) link() string {
	if p.Form.empty || p.Form.Broken != "" {
		return ""
	}
	to := queryPath + "?" + url.Values{"where": {jsonText(p.Form.where)}}.Encode()
	if len(to) > maxLink {
		return ""
	}
	return to
}

// command are the command lines that answer and do the same.
func (p *segmentPage) command(admin bool) string {
	if p.Form.empty || p.Form.Broken != "" {
		return "affinity segment query --count --where 'FACET:VALUE > SCORE'"
	}
	args, lines := segmentArgs(p.Form.where), []string(nil)
	if args == "condition.json" {
		lines = append(lines, "# condition.json has the JSON of this page")
	}
	if !admin {
		lines = append(lines, "affinity segment query --count "+args)
	} else {
		lines = append(lines, "affinity segment query "+args)
	}
	for _, h := range p.Answer.Histograms {
		if arg, ok := filterArg(api.SegmentCondition{Filter: strings.ReplaceAll(h.Filter, "%", "%25")}); ok {
			lines = append(lines, "affinity segment histogram "+shellArg(arg))
			break
		}
	}
	name := "NAME"
	if p.Opened != "" {
		name = p.Opened + " --replace"
	}
	lines = append(lines, "affinity segment save "+name+" "+args)
	if p.Opened != "" && admin {
		lines = append(lines, exportCommand(p.Opened))
	}
	return strings.Join(lines, "\n")
}
