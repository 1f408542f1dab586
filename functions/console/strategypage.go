package console

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// strategyPage is what the page of the draft shows.
type strategyPage struct {
	Now      time.Time
	Active   activeStrategy
	Versions []api.StrategyVersion
	Seen     seen
	// Experiment is the one that has not ended; nil: none.
	Experiment *api.Experiment

	// Began is the version that was active when the draft began, From the one that it began with if
	// that is another.
	Began, From int64
	Problem     string   // with what a button asked for
	Faults      []string // messages of the engine that stand at no field

	Events, Facets scoreGroup
	Impact         sliderRow
	HalfLives      halfLivesView
	Ranking        []rankingPart
	Contrast       string
	Aliases        []aliasRow
	MoreAliases    int
	Silent         []string // which values score nothing, in words; empty of a draft with faults
	Suggestions    *suggestions
	Beginning      *beginning
	JSON, Hash     string
	Broken         bool // the JSON is no object
	Sample         int
	Index          string
	Indexes        []string
	Preview        *previewView
	// What was typed into fields that add something.
	NewType, NewEvent, NewFacet, AliasFacet, AliasFrom, AliasTo string

	byPath map[string]string // messages by the path of their field
}

// sliderRow is a slider with a number beside it.
type sliderRow struct {
	ID, Field string
	Packed    string // the name, for the form
	Type      string // of an event
	Name      string
	Title     string // instead of a name from outside
	Says      string // what the title means
	Value     string
	Slide     int
	Was       int   // in the active strategy
	Seen      int64 // -1: not known
	Days      int   // in which it was seen
	Scored    bool  // the draft has an entry for it
	Default   bool  // the draft does not give it
	Fault     string
}

// Number is the name of the field beside the slider.
func (r sliderRow) Number() string {
	if r.Packed != "" {
		return r.Field + "Score"
	}
	return r.Field
}

// Most is the highest value of the slider.
func (r sliderRow) Most() int { return mostOf(r.Field) }

// Cut is the whole name, if the label shows less of it.
func (r sliderRow) Cut() string {
	if shown(r.Name) != r.Name {
		return long(r.Name)
	}
	return ""
}

// Delta is how far the value is from that of the active strategy.
func (r sliderRow) Delta() string {
	n, ok := sliderValue(r.Field, r.Value)
	switch {
	case !ok || n == r.Was:
		return ""
	case n > r.Was:
		return "+" + strconv.Itoa(n-r.Was)
	}
	return "−" + strconv.Itoa(r.Was-n)
}

// Types are the types of events that score.
func (*strategyPage) Types() []string { return []string{"view", "click", "conversion"} }

// scoreGroup are the sliders of events, or of facets.
type scoreGroup struct {
	Scored, Others []sliderRow
	More           int // entries of the draft beyond those that the engine takes
}

// Many reports whether a person needs help to find a slider.
func (g scoreGroup) Many() bool { return len(g.Scored)+len(g.Others) > 12 }

// Open reports whether what is not scored is shown at once.
func (g scoreGroup) Open() bool { return len(g.Scored) == 0 || len(g.Others) <= 6 }

type halfLivesView struct {
	Texts []halfLifeText
	Words string
}

type halfLifeText struct{ Value, Fault string }

// rankingPart is a feature of the ranking.
type rankingPart struct {
	Weight    sliderRow
	HalfLife  *textRow
	Attribute *textRow
}

// textRow is a field for a text.
type textRow struct {
	ID, Field, Value, Hint, Fault string
	Default                       bool
}

// aliasRow is a value that counts as another.
type aliasRow struct{ Facet, From, To, Packed string }

// shownAliases is how many aliases the page lists. The JSON has the others.
const shownAliases = 200

// show fills the page from a draft. text is its JSON as it was typed.
func (p *strategyPage) show(d draft, text string, broken bool) {
	p.JSON, p.Hash, p.Broken = text, jsonHash(text), broken
	wanted, messages := checkStrategy(text)
	if len(messages) == 0 {
		p.Silent = silentWords(wanted)
	}
	p.byPath = map[string]string{}
	for _, m := range messages {
		path, _, _ := strings.Cut(m, " ")
		p.byPath[path] = m
	}
	p.Events, p.Facets = p.events(d), p.facets(d)
	p.Impact = p.slider("impact", "impact", fieldText(d.at("personalizationImpact")),
		p.Active.Strategy.PersonalizationImpact, "personalizationImpact")
	p.Impact.Title, p.Impact.Says = "Impact",
		"How far search engines that read the strategy let profiles change their order. Scores do not depend on it."
	p.halfLives(d)
	p.ranking(d)
	p.aliases(d)
	for _, m := range messages {
		if path, _, _ := strings.Cut(m, " "); p.byPath[path] != "" {
			p.Faults = append(p.Faults, m)
		}
	}
}

// fault returns the message of a field, once.
func (p *strategyPage) fault(path string) string {
	m := p.byPath[path]
	delete(p.byPath, path)
	return m
}

// keep shows again what was typed into fields that could not be added.
func (p *strategyPage) keep(f draftForm) {
	p.Sample, p.Index = f.sample(), cmp.Or(f.Get("index"), p.Index)
	if p.Problem != "" {
		p.NewType, p.NewEvent, p.NewFacet = f.Get("newType"), f.Get("newEvent"), f.Get("newFacet")
		p.AliasFacet, p.AliasFrom, p.AliasTo = f.Get("aliasFacet"), f.Get("aliasFrom"), f.Get("aliasTo")
	}
}

func (p *strategyPage) slider(id, field, value string, was int, path string) sliderRow {
	n, _ := sliderValue(field, value)
	return sliderRow{ID: id, Field: field, Value: value, Slide: n, Was: was, Fault: p.fault(path)}
}

// events returns the sliders of the draft's events, in its order, then of other events that were seen.
func (p *strategyPage) events(d draft) scoreGroup {
	was := map[string]int{}
	for _, e := range p.Active.Strategy.EventsScoring {
		was[string(e.EventType)+"/"+e.EventName] = e.Score
	}
	scorable := slices.DeleteFunc(slices.Clone(p.Seen.order), func(name string) bool {
		typ, _, _ := strings.Cut(name, "/")
		return typ != "click" && typ != "conversion" && typ != "view"
	})
	return p.group(d, "event", "eventsScoring", was, p.Seen.events, scorable)
}

func (p *strategyPage) facets(d draft) scoreGroup {
	was := map[string]int{}
	for _, f := range p.Active.Strategy.FacetsScoring {
		was[f.FacetName] = f.Score
	}
	return p.group(d, "facet", "facetsScoring", was, p.Seen.facets, p.Seen.facetsBy)
}

func (p *strategyPage) group(d draft, field, list string, was map[string]int, counts map[string]int64,
	found []string) scoreGroup {
	var g scoreGroup
	have := map[string]bool{}
	row := func(name, value, path string) sliderRow {
		r := p.slider(fmt.Sprintf("%s%d", field, len(have)), field, value, was[name], path+".score")
		if r.Fault == "" {
			r.Fault = p.fault(path)
		}
		r.Packed, r.Name, r.Seen, r.Days = url.QueryEscape(name), name, -1, p.Seen.Days
		if field == "event" {
			r.Type, r.Name, _ = strings.Cut(name, "/")
		}
		if n, ok := counts[name]; ok || p.Seen.Known && !p.Seen.Truncated {
			r.Seen = n
		}
		have[name] = true
		return r
	}
	entries, places := d.list(list)
	for i, entry := range entries {
		name := entryName(entry)
		switch {
		case have[name]:
		case len(g.Scored) == strategy.MaxEntries:
			have[name] = true
			g.More++
		default:
			r := row(name, fieldText(entry["score"]), fmt.Sprintf("%s[%d]", list, places[i]))
			r.Scored = true
			g.Scored = append(g.Scored, r)
		}
	}
	for _, name := range found {
		if !have[name] {
			g.Others = append(g.Others, row(name, "0", ""))
		}
	}
	return g
}

func (p *strategyPage) halfLives(d draft) {
	for i, text := range d.halfLives() {
		p.HalfLives.Texts = append(p.HalfLives.Texts, halfLifeText{text, p.fault(fmt.Sprintf("halfLives[%d]", i))})
	}
	p.HalfLives.Words = draftHalfLives(d)
	if len(p.HalfLives.Texts) < strategy.MaxHalfLives {
		p.HalfLives.Texts = append(p.HalfLives.Texts, halfLifeText{})
	}
}

// draftHalfLives says what the half-lives of a draft do, if they are half-lives.
func draftHalfLives(d draft) string {
	var all []strategy.HalfLife
	for _, text := range d.halfLives() {
		h, err := strategy.ParseHalfLife(text)
		if err != nil {
			return "“" + shown(text) + "” is no half-life: type a number of days, or a time such as 12h or 45m."
		}
		all = append(all, h)
	}
	if err := (strategy.Strategy{HalfLives: all}).Validate(); err != nil {
		return err.Error()
	}
	return halfLivesWords(all)
}

// rankingSays is what each feature of the ranking does.
var rankingSays = []struct{ key, title, says string }{
	{"session", "Session", "How much the newest events of the user count beside the whole profile."},
	{"popularity", "Popularity", "How much it counts how often all users chose an object."},
	{"pairs", "Pairs", "How much it counts how often users chose an object soon after those that this user chose last."},
	{"sequence", "Sequences", "How much it counts how few steps users went from what this user chose last to an object."},
	{"neighbours", "Neighbours", "How much it counts how many who chose what this user chose lately chose an object too."},
	{"freshness", "Freshness", "How much it counts that an object is new, by a date in its record."},
}

func (p *strategyPage) ranking(d draft) {
	fields := map[string]rankingField{}
	for _, f := range rankingFields() {
		fields[f.name()] = f
	}
	active, err := parseDraft(p.Active.raw)
	if err != nil {
		active = draft{map[string]any{}}
	}
	text := func(name, hint string) *textRow {
		f, ok := fields[name]
		if !ok {
			return nil
		}
		value, given := f.value(d)
		return &textRow{ID: strings.ReplaceAll(name, ".", "-"), Field: name, Value: value, Hint: hint,
			Default: !given, Fault: p.fault("ranking." + name)}
	}
	p.Contrast, _ = fields["contrast"].value(d)
	for _, part := range rankingSays {
		name := part.key + ".weight"
		value, given := fields[name].value(d)
		before, _ := fields[name].value(active)
		was, _ := sliderValue(name, before)
		slider := p.slider(part.key, name, value, was, "ranking."+name)
		slider.Title, slider.Says, slider.Default = part.title, part.says, !given
		view := rankingPart{Weight: slider}
		hint := "days, or a time such as 12h"
		if part.key == "session" {
			hint = "newer events such as 2e, or a time such as 30m"
		}
		view.HalfLife, view.Attribute = text(part.key+".halfLife", hint),
			text(part.key+".attribute", "of records, such as publishedAt")
		p.Ranking = append(p.Ranking, view)
	}
}

func (p *strategyPage) aliases(d draft) {
	all, _ := d.at("aliases").(map[string]any)
	for _, facet := range slices.Sorted(maps.Keys(all)) {
		pairs, _ := all[facet].(map[string]any)
		for _, from := range slices.Sorted(maps.Keys(pairs)) {
			if len(p.Aliases) == shownAliases {
				p.MoreAliases++
				continue
			}
			p.Aliases = append(p.Aliases, aliasRow{facet, from, fieldText(pairs[from]), pack(facet, from)})
		}
	}
}

// versionOf reads the number of a version, from 1 on; 0 stands for the time before any.
func versionOf(text string) (int64, bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && n >= 0
}
