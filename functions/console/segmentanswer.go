package console

import (
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/web/auth"
)

const (
	// usersShown is how many users a page names.
	usersShown = 5
	// histogramsShown is how many filters of a condition have a histogram.
	histogramsShown = 3
)

// segmentAnswer is who meets a condition.
type segmentAnswer struct {
	Empty   bool   // there is no condition yet
	Message string // why there is no answer
	Off     bool   // segments are off for the app
	Later   bool   // the same request may be answered later
	Skipped bool   // a row does not count: it is not complete

	OK         bool
	Words      []wordPart
	Count      api.UserCount
	Share      float64 // of the users in the lists; 0: not known
	AsOf       time.Time
	Users      []userLine
	Scored     string // the filter that the scores of Users are of
	Histograms []histogram
	Link       string
	JSON, Hash string // the text that htmx replaces; empty: it stays
}

// One reports whether exactly one user meets the condition.
func (s *segmentAnswer) One() bool { return s.Count.N == 1 && !s.Count.Fewer }

// askedFilter is a filter of the condition whose scores a histogram shows.
type askedFilter struct {
	event.Filter
	halfLife string
	above    float64
	row      int // of the form; -1: none
	without  bool
}

// asked returns the first filters of a condition, each once.
func (p *segmentPage) asked() (filters []askedFilter) {
	add := func(f askedFilter) {
		if len(filters) < histogramsShown && !slices.ContainsFunc(filters,
			func(g askedFilter) bool { return g.Filter == f.Filter && g.halfLife == f.halfLife }) {
			filters = append(filters, f)
		}
	}
	if p.Form.Shown {
		for i, r := range p.Form.Rows {
			if c, ok := r.filter(); ok {
				add(askedFilter{event.Filter{Facet: r.Facet, Value: r.Value}, r.HalfLife, c.Above, i, r.Without})
			}
		}
		return filters
	}
	var walk func(c api.SegmentCondition, without bool)
	walk = func(c api.SegmentCondition, without bool) {
		if f, err := event.ParseFilter(c.Filter); err == nil {
			add(askedFilter{f, c.HalfLife.String(), c.Above, -1, without})
		}
		for _, branch := range slices.Concat(c.And, c.Or) {
			walk(branch, without)
		}
		if c.Not != nil {
			walk(*c.Not, !without)
		}
	}
	walk(p.Form.where, false)
	return filters
}

// ask asks the engine who meets the condition.
func (p *segmentPage) ask(v *visit) {
	answer := &segmentAnswer{}
	p.Answer = answer
	if !p.Form.Edited {
		answer.JSON, answer.Hash = p.Form.JSON, p.Form.Hash()
	}
	a := &asks{}
	offered := p.offer(v, a)
	defer func() { a.wait(); offered() }()
	if answer.look(p.Form); !p.Form.ready() {
		return
	}
	answer.Words = conditionWords(p.Form.where)
	limit := 0
	if v.may(auth.Admin) {
		limit = usersShown
	}
	filters := p.asked()
	found := make([]part[api.SegmentHistogram], len(filters))
	for i, f := range filters {
		ask(a, &found[i], func() (api.SegmentHistogram, error) {
			return v.engine.Segments().Histogram(v.Context(), f.Facet, f.Value, f.halfLife)
		})
	}
	page, err := v.engine.Segments().Query(v.Context(), api.SegmentQuery{Where: p.Form.where, Limit: &limit})
	a.wait()
	if err != nil {
		answer.refused(err)
		return
	}
	answer.OK, answer.Count, answer.AsOf = true, page.Total, page.AsOf.Time
	if !page.Total.Fewer {
		answer.Share = shareOf(page.Total, p.All)
	}
	for _, u := range page.Users[:min(len(page.Users), usersShown)] {
		answer.Users = append(answer.Users, userLine{Token: u.UserToken, Path: userPath(u.UserToken, ""), Score: u.Score})
	}
	for i, f := range filters {
		if !f.without && answer.Scored == "" {
			answer.Scored = f.Facet + ": " + f.Value
		}
		if !found[i].OK {
			continue
		}
		answer.Histograms = append(answer.Histograms, newHistogram(f, found[i].Got))
		if f.row >= 0 {
			p.Rows[f.row].slider(f.above, found[i].Got)
		}
	}
}

// look says what a form lacks before the engine can be asked.
func (s *segmentAnswer) look(f *segmentForm) {
	for _, r := range f.Rows {
		s.Skipped = s.Skipped || r.partial() != ""
	}
	switch {
	case f.Broken != "":
		s.Message = capitalized(f.Broken)
	case f.faulty():
		for _, r := range f.Rows {
			if r.Fault != "" {
				s.Message = r.Fault + ": " + shown(r.Text())
			}
		}
	case f.OnlyWithout():
		s.Message = "Add a value that users like. Without one, almost everybody would belong to the segment, and " +
			"the engine would have to read all profiles."
	case f.empty:
		s.Empty = true
	}
}

// refused says why the engine gives no answer.
func (s *segmentAnswer) refused(err error) {
	s.Message = refusalText(err)
	refused, ok := errors.AsType[*api.Error](err)
	s.Off = ok && refused.Status == http.StatusConflict
	s.Later = !ok || refused.Temporary()
}
