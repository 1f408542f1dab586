package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/catalog"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// nobody is the token that stands for a new person. No event has it.
const nobody = "a-new-person-of-the-console"

// simulatorForm is what a person chose.
type simulatorForm struct {
	User      string // a token; empty: a new person
	Index     string
	IDs       []string // the order of today, each once
	Impact    int      // 0 to 100
	HalfLife  string   // empty: the first of the strategy
	Seen      string
	Diversity string // a key of diversities
	Version   int64  // to compare with; 0: none
	Drafted   bool   // to compare with the draft
	Engine    string // of the boost

	simulatedDraft

	pick string // whom to choose: "new", "active", "random", or nobody else
	from string // what to fill the list of objects with
	with string // a facet and a value that the objects have
	fill bool
}

// diversities are the choices of diversity, in their order.
var diversities = []struct {
	Key, Text string
	value     *strategy.Diversity
}{
	{"", "Off", nil},
	{"light", "Light", &strategy.Diversity{Lambda: 0.9}},
	{"usual", "Usual", &strategy.Diversity{Lambda: strategy.DefaultLambda}},
	{"strong", "Strong", &strategy.Diversity{Lambda: 0.5}},
}

// Diversities are the choices, for the template.
func (simulatorForm) Diversities() any { return diversities }

// SeenChoices are what happens to objects that the person has seen.
func (simulatorForm) SeenChoices() [][2]string {
	return [][2]string{{api.SeenKeep, "Keep"}, {api.SeenDemote, "Demote"}, {api.SeenExclude, "Leave out"}}
}

// readSimulator reads the form from the address, or from the body.
func readSimulator(v *visit, active api.Strategy) simulatorForm {
	values := v.URL.Query()
	var drafted simulatedDraft
	if v.Method == http.MethodPost {
		drafted, values = readSimulatedDraft(v.PostForm)
	}
	f := simulatorForm{
		simulatedDraft: drafted,
		User:           strings.TrimSpace(values.Get("user")), Index: strings.TrimSpace(values.Get("index")),
		IDs:    objectLines(values.Get("ids")),
		Impact: active.PersonalizationImpact, HalfLife: values.Get("halfLife"), Seen: values.Get("seen"),
		Diversity: values.Get("diversity"),
		Engine:    values.Get("engine"), pick: values.Get("pick"), from: values.Get("from"),
		with: strings.TrimSpace(values.Get("with")), fill: values.Get("fill") != "",
	}
	if n, err := strconv.Atoi(values.Get("impact")); err == nil {
		f.Impact = min(max(n, 0), strategy.MaxImpact)
	}
	if n, err := strconv.ParseInt(values.Get("version"), 10, 64); err == nil && n > 0 {
		f.Version = n
	}
	if !slices.Contains([]string{api.SeenKeep, api.SeenDemote, api.SeenExclude}, f.Seen) {
		f.Seen = api.SeenKeep
	}
	if show := values.Get("show"); show != "" {
		f.Engine = show
	}
	if !slices.ContainsFunc(boostEngines, func(e boostEngine) bool { return e.Key == f.Engine }) {
		f.Engine = boostEngines[0].Key
	}
	f.Drafted = f.Draft != "" && (values.Get("version") == draftChoice || !values.Has("ids"))
	first := !values.Has("user") && !values.Has("ids")
	if first && f.pick == "" {
		f.pick = "active"
	}
	f.fill = f.fill || !values.Has("ids")
	return f
}

// draftChoice is the choice of the draft among the versions to compare with.
const draftChoice = "draft"

// simulatedDraft is a strategy that is not published. The zero value is none.
type simulatedDraft struct {
	Draft      string // its JSON
	Began      string // the version that was active when it began
	draftFault string // why it cannot rank
	draft      strategy.Strategy
}

// readSimulatedDraft takes the draft from a form: that of this page, or that of the page of the
// strategy, of which nothing else counts here. rest are the values that count beside the draft.
func readSimulatedDraft(values url.Values) (s simulatedDraft, rest url.Values) {
	if typedJSON(values) == "" {
		return s, values
	}
	d, text, err := readForm(values).draft()
	if s.Draft = text; err == nil {
		s.Draft = d.JSON()
	}
	var faults []string
	if s.draft, faults = checkStrategy(s.Draft); len(faults) > 0 {
		s.draftFault = "The engine does not take the draft: " + strings.Join(faults, "; ")
	}
	if values.Has("hash") {
		s.Began = values.Get("version")
		return s, url.Values{}
	}
	s.Began = values.Get("began")
	return s, values
}

// impact is how much the person counts under a strategy: as much as the strategy says, until
// someone moves the slider away from what the active one says.
func (f simulatorForm) impact(active, by api.Strategy) int {
	if f.Impact == active.PersonalizationImpact {
		return by.PersonalizationImpact
	}
	return f.Impact
}

// objectLines reads a list of objectIDs: one a line, or a JSON list. A line in double quotes is
// a JSON string, for objectIDs with characters that a line cannot show.
func objectLines(text string) []string {
	var ids []string
	if list := strings.TrimSpace(text); strings.HasPrefix(list, "[") && json.Unmarshal([]byte(list), &ids) == nil {
		return once(ids)
	}
	ids = nil
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		var quoted string
		if strings.HasPrefix(line, `"`) && json.Unmarshal([]byte(line), &quoted) == nil {
			line = quoted
		}
		ids = append(ids, line)
	}
	return once(ids)
}

// once leaves out empty texts and repeated ones.
func once(ids []string) []string {
	seen, kept := make(map[string]bool, len(ids)), ids[:0]
	for _, id := range ids {
		if id != "" && !seen[id] {
			seen[id], kept = true, append(kept, id)
		}
	}
	return kept
}

// List is the list of objects as the form shows it, and as objectLines reads it.
func (f simulatorForm) List() string {
	var b strings.Builder
	for _, id := range f.IDs {
		if id != strings.TrimSpace(id) || strings.HasPrefix(id, `"`) || strings.HasPrefix(id, "[") || !plain(id) {
			id = jsonText(id)
		}
		b.WriteString(id + "\n")
	}
	return b.String()
}

// userFault says what is wrong with the token, empty if nothing is.
func (f simulatorForm) userFault() string {
	if f.User == "" || event.ValidUserToken(f.User) {
		return ""
	}
	return "A user token has 1 to 129 letters, digits and the characters = + / - _"
}

// fault says why no request can be made of the objects, empty if one can.
func (f simulatorForm) fault() string {
	switch {
	case f.draftFault != "":
		return f.draftFault
	case len(f.IDs) > 0 && !catalog.ValidIndex(f.Index):
		return fmt.Sprintf("The index must have 1 to %s bytes", number(api.MaxIndex))
	case len(f.IDs) > api.MaxCandidates:
		return fmt.Sprintf("The list has %s objects; the engine orders up to %s at once", number(len(f.IDs)),
			number(api.MaxCandidates))
	}
	return ""
}

// UserField and IndexField are the texts of the form, as long as they can be seen as they are.
func (f simulatorForm) UserField() string  { return safeField(f.User, api.MaxUserToken) }
func (f simulatorForm) IndexField() string { return safeField(f.Index, api.MaxIndex) }

// maxValue is how many bytes a facet and a value have together: those of a filter.
const maxValue = 2048

func safeField(text string, most int) string {
	if len(text) > most || !plain(text) {
		return ""
	}
	return text
}

// Token is the token of the requests.
func (f simulatorForm) Token() string {
	if f.User == "" {
		return nobody
	}
	return f.User
}

// diversity is the chosen one, nil for none.
func (f simulatorForm) diversity() *strategy.Diversity {
	for _, d := range diversities {
		if d.Key == f.Diversity {
			return d.value
		}
	}
	return nil
}

// halfLife is the chosen one if a strategy has it.
func (f simulatorForm) halfLife(of api.Strategy) strategy.HalfLife {
	for _, h := range of.HalfLives {
		if h.String() == f.HalfLife {
			return h
		}
	}
	return strategy.HalfLife{}
}

// maxLink is how long an address may be that people send each other.
const maxLink = 4000

// link is the address of the comparison, empty if it is too long for one: as with a draft.
func (f simulatorForm) link() string {
	values := url.Values{
		"user": {f.User}, "index": {f.Index}, "ids": {f.List()}, "impact": {strconv.Itoa(f.Impact)}, "seen": {f.Seen},
		"engine": {f.Engine},
	}
	for name, value := range map[string]string{"halfLife": f.HalfLife, "diversity": f.Diversity} {
		if value != "" {
			values.Set(name, value)
		}
	}
	if f.Version > 0 {
		values.Set("version", strconv.FormatInt(f.Version, 10))
	}
	to := "/console/simulator?" + values.Encode()
	if len(to) > maxLink || f.Drafted {
		return ""
	}
	return to
}

// plain reports whether a text has only characters that are seen as they are.
func plain(text string) bool {
	return !strings.ContainsFunc(text, func(c rune) bool {
		return c != ' ' && !unicode.IsPrint(c) ||
			c == unicode.ReplacementChar
	})
}

// From is what the list was filled with, and With the value that its objects have.
func (f simulatorForm) From() string { return f.from }
func (f simulatorForm) With() string { return safeField(f.with, maxValue) }

// CatalogCommand loads a catalog into the index.
func (f simulatorForm) CatalogCommand() string {
	return "affinity catalog import --index " + shellArg(f.Index) + " objects.ndjson.gz"
}

// CrowdCommand builds the statistics of the index.
func (f simulatorForm) CrowdCommand() string {
	return "affinity crowd build --index " + shellArg(f.Index)
}

// HalfLifeText is a half-life in words: a number of days has no unit in a strategy.
func (simulatorForm) HalfLifeText(h strategy.HalfLife) string {
	switch days, whole := h.WholeDays(); {
	case whole && days == 1:
		return "1 day"
	case whole:
		return strconv.Itoa(days) + " days"
	}
	return h.String()
}
