package console

import (
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/web/auth"
)

func init() {
	const section = "segments"
	pages = append(pages,
		page{pattern: "GET /console/segments", section: section, template: "segments", fragment: "lists", poll: true,
			load: loadSegments},
		page{pattern: "POST /console/segments/refresh", section: section, template: "segments", load: refreshSegments},
		// The words query, refresh and values are names of no segment.
		page{pattern: "GET /console/segments/values", section: section, template: "segmentvalues", load: loadSegmentValues},
		page{pattern: "GET /console/segments/query", section: section, template: "segment", load: newSegment},
		page{pattern: "POST /console/segments/query", section: section, template: "segment", fragment: "live",
			load: changeSegment},
		page{pattern: "POST /console/segments/query/save", section: section, template: "segment", load: saveSegment},
		page{pattern: "GET /console/segments/{name}", section: section, template: "segment", load: openSegment},
		page{pattern: "GET /console/segments/{name}/delete", section: section, template: "segmentdelete",
			load: confirmSegmentDelete},
		page{pattern: "POST /console/segments/{name}/delete", section: section, template: "segmentdelete",
			load: deleteSegment},
		page{pattern: "POST /console/segments/{name}/exports", section: section, template: "segmentexport",
			load: startSegmentExport},
		page{pattern: "GET /console/segments/{name}/exports/{id}", section: section, template: "segmentexport",
			fragment: "progress", poll: true, load: loadSegmentExport},
		page{pattern: "GET /console/segments/{name}/exports/{id}/file", section: section, template: "segmentexport",
			load: sendSegmentFile},
	)
	notices["segments-refresh"] = "A build of the profiles' lists has been started."
	notices["segment-saved"] = "The segment is saved. The engine counts its users at the end of each build."
	notices["segment-same"] = "Nothing was saved: the segment has this condition already."
	notices["segment-deleted"] = "The segment is deleted, with its sizes. Profiles stay as they are."
}

const (
	segmentsPath = "/console/segments"
	queryPath    = segmentsPath + "/query"
	// segmentsListed is how many segments a page lists, and trendDays how many days their lines show.
	segmentsListed = 50
	trendDays      = 14
	// facetsOffered is how many facets the list shows the best values of, and valuesOffered how many
	// of each.
	facetsOffered = 4
	valuesOffered = 6
)

// segmentPath is the address of a page about a saved segment.
func segmentPath(name, rest string) string { return segmentsPath + "/" + url.PathEscape(name) + rest }

// segmentsPage is what the list of segments shows.
type segmentsPage struct {
	Now     time.Time
	Denied  bool // the key may not count users
	Off     bool // segments are off for the app
	Lists   *api.SegmentLists
	Build   *jobLine // the one that runs, or the newest if it failed
	Saved   []segmentLine
	Total   int    // of saved segments
	Next    string // the next page of them; empty: none
	Later   bool   // it is not the first page
	Likes   []facetValues
	Why     string // values cannot be counted
	NoFacet bool   // the strategy scores none
	More    int    // facets of the strategy that are not shown
}

// segmentLine is a saved segment of the list.
type segmentLine struct {
	Name, Path string
	Words      []wordPart
	Users      *api.UserCount // nil: not counted yet
	Day        string
	Share      float64 // of all users
	Trend      []int64
}

// Trends reports whether a segment of the list has sizes of several days.
func (p *segmentsPage) Trends() bool {
	return slices.ContainsFunc(p.Saved, func(s segmentLine) bool { return len(s.Trend) > 1 })
}

// canQuery reports whether the session may count users.
func (v *visit) canQuery() bool { return v.may(auth.Recommendation, auth.Admin) }

func loadSegments(v *visit) (any, error) {
	v.title, v.command = "Segments", "affinity segment list"
	p := &segmentsPage{Now: v.now()}
	if p.Denied = !v.canQuery(); p.Denied {
		v.command = ""
		return p, nil
	}
	list, err := v.engine.Segments().List(v.Context())
	if err != nil {
		return nil, err
	}
	p.Lists = list.Lists
	if len(list.Builds) > 0 {
		if build := segmentJob(list.Builds[0]); build.Running() || build.Failed() {
			p.Build = &build
		}
	}
	if v.Header.Get("Hx-Request") != "" {
		if p.Build == nil || !p.Build.Running() { // what the page shows besides is out of date
			return nil, redirect{segmentsPath}
		}
		return p, nil
	}
	p.list(list.Segments, v.URL.Query().Get("after"))
	p.readLikes(v)
	if p.Lists == nil || p.Off {
		v.command = "affinity segment refresh"
	}
	return p, nil
}

// list shows the page of the segments whose names follow one.
func (p *segmentsPage) list(saved []api.Segment, after string) {
	p.Total, p.Later = len(saved), after != ""
	for _, s := range saved {
		if s.Name <= after {
			continue
		}
		if len(p.Saved) == segmentsListed {
			p.Next = segmentsPath + "?" + url.Values{"after": {p.Saved[segmentsListed-1].Name}}.Encode()
			break
		}
		p.Saved = append(p.Saved, p.line(s))
	}
}

func (p *segmentsPage) line(s api.Segment) segmentLine {
	line := segmentLine{Name: s.Name, Path: segmentPath(s.Name, ""), Words: shortWords(s.Where)}
	if n := len(s.Sizes); n > 0 {
		last := s.Sizes[n-1]
		line.Users, line.Day = &last.Users, dayText(last.Day)
		line.Share = shareOf(last.Users, usersOf(p.Lists))
		for _, size := range s.Sizes[max(0, n-trendDays):] {
			line.Trend = append(line.Trend, size.Users.N)
		}
	}
	return line
}

// usersOf is how many users are in the lists, 0 if they are not built.
func usersOf(lists *api.SegmentLists) int64 {
	if lists == nil {
		return 0
	}
	return lists.Users
}

// shareOf is which share a count is of all users, at most 1; 0 if their number is not known.
func shareOf(n api.UserCount, all int64) float64 {
	if all == 0 {
		return 0
	}
	return min(1, float64(n.N)/float64(all))
}

// dayText writes a day such as 2026-11-23 for people.
func dayText(day string) string {
	at, err := time.Parse(time.DateOnly, day)
	if err != nil {
		return shown(day)
	}
	return at.Format("2 Jan 2006")
}

// readLikes counts the values that most users have, of the facets that the strategy scores.
func (p *segmentsPage) readLikes(v *visit) {
	facets := strategyFacets(v)
	p.NoFacet = len(facets) == 0 && v.may(auth.Recommendation)
	p.More = max(0, len(facets)-facetsOffered)
	facets = facets[:min(len(facets), facetsOffered)]
	if len(facets) == 0 && p.Lists == nil { // only to know whether segments are on
		facets = []string{"none"}
	}
	found, a := make([]part[api.Values], len(facets)), &asks{}
	off := make([]bool, len(facets))
	for i, facet := range facets {
		ask(a, &found[i], func() (api.Values, error) {
			got, err := v.engine.Segments().Values(v.Context(), facet, valuesOffered, 0)
			off[i] = isConflict(err)
			return got, err
		})
	}
	a.wait()
	for i, values := range found {
		if !values.OK {
			p.Why = values.Why
		} else if len(values.Got.Values) > 0 {
			p.Likes = append(p.Likes, newFacetValues(facets[i], values.Got, valuesOffered, p.Lists))
		}
	}
	p.Off = slices.Contains(off, true)
}

// strategyFacets are the facets that profiles have: those with a weight. A key that may not read the
// strategy gets none.
func strategyFacets(v *visit) (facets []string) {
	if !v.may(auth.Recommendation) {
		return nil
	}
	active, err := v.engine.Strategies().Get(v.Context())
	if err != nil {
		return nil // a person types the facet
	}
	return scoredFacets(active)
}

// scoredFacets are the facets with a weight in a strategy.
func scoredFacets(s api.Strategy) (facets []string) {
	for _, f := range s.FacetsScoring {
		if f.Score > 0 {
			facets = append(facets, f.FacetName)
		}
	}
	return facets
}

// Polls reports whether the page asks for news of a build.
func (p *segmentsPage) Polls() bool { return p.Build != nil && p.Build.Running() }

// refreshSegments starts a build of the lists that queries read.
func refreshSegments(v *visit) (any, error) {
	v.title, v.command = "Segments", "affinity segment refresh"
	if _, err := v.engine.Segments().Refresh(v.Context()); err != nil {
		return nil, err
	}
	return nil, done(segmentsPath, "segments-refresh")
}

// facetValues are the values of a facet that most users have.
type facetValues struct {
	Facet, Path string
	Values      []valueLine
	Total       int // different values
	Rest        int // of them that are not shown
}

// valueLine is a value with the number of users who like it.
type valueLine struct {
	Value string
	Path  string // a query for it; empty: too long for an address
	Users api.UserCount
	Share float64 // of all users
}

// maxValueLink is how many bytes a filter may have that an address names.
const maxValueLink = 200

func newFacetValues(facet string, got api.Values, most int, lists *api.SegmentLists) facetValues {
	got.Values = got.Values[:min(len(got.Values), most)]
	f := facetValues{Facet: facet, Path: segmentsPath + "/values?" + url.Values{"facet": {facet}}.Encode(),
		Total: got.Total, Rest: got.Total - len(got.Values)}
	for _, value := range got.Values {
		line := valueLine{Value: visible(value.Value, 60), Users: value.Users, Share: shareOf(value.Users, usersOf(lists))}
		if len(facet)+len(value.Value) <= maxValueLink {
			line.Path = queryPath + "?" + url.Values{"facet": {facet}, "value": {value.Value}}.Encode()
		}
		f.Values = append(f.Values, line)
	}
	return f
}

// valuesPage lists the values of one facet.
type valuesPage struct {
	Facet string
	Got   facetValues
	AsOf  time.Time
}

// valuesListed is how many values of a facet a page lists.
const valuesListed = 50

func loadSegmentValues(v *visit) (any, error) {
	p := &valuesPage{Facet: v.URL.Query().Get("facet")}
	v.title = "Values of " + shown(p.Facet)
	if p.Facet == "" {
		return nil, &api.Error{Status: http.StatusUnprocessableEntity, Message: "The address names no facet"}
	}
	got, err := v.engine.Segments().Values(v.Context(), p.Facet, valuesListed, 0)
	if err != nil {
		return nil, err
	}
	list, err := v.engine.Segments().List(v.Context())
	if err != nil {
		return nil, err
	}
	p.Got, p.AsOf = newFacetValues(p.Facet, got, valuesListed, list.Lists), got.AsOf.Time
	v.made.keep(func(c call) bool { return c.Method == http.MethodGet && c.Path != "/1/segments" })
	return p, nil
}
