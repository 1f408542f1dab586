package console

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/affinityengine/affinity/shared/api"
)

// segmentForm is a condition that a person edits. Its JSON is what counts. Rows show it if it has
// their form: filters that all hold or of which one holds, and filters that do not hold.
type segmentForm struct {
	Any    bool // one of the filters that hold is enough
	Rows   []segmentRow
	Shown  bool // the rows say the whole condition
	Edited bool // a person has changed the JSON since the page was made
	JSON   string
	Broken string // why the JSON is no condition
	where  api.SegmentCondition
	empty  bool // there is no filter yet
}

// readSegmentForm reads what a page has sent.
func readSegmentForm(values url.Values) *segmentForm {
	f := &segmentForm{JSON: typedJSON(values)}
	f.Edited = jsonHash(f.JSON) != values.Get("hash")
	if f.Edited || !values.Has("match") {
		f.takeJSON()
		return f
	}
	kept := map[string]segmentRow{} // by their marks
	if c, broken := parseCondition(f.JSON); broken == "" {
		for _, r := range formOf(c).Rows {
			kept[r.Mark()] = r
		}
	}
	f.Shown, f.Any = true, values.Get("match") == "any"
	at := func(name string, i int) string {
		if all := values[name]; i < len(all) {
			return all[i]
		}
		return ""
	}
	for i, side := range values["side"] {
		if i == api.MaxSegmentConditions {
			break
		}
		r := segmentRow{
			Facet: strings.TrimSpace(at("facet", i)), Value: strings.TrimSpace(at("value", i)),
			Above:    strings.TrimSpace(at("above", i)),
			HalfLife: at("halfLife", i), Without: side == "without",
		}
		if was, ok := kept[at("kept", i)]; ok {
			r.Facet, r.Value = was.Facet, was.Value
		}
		f.Rows = append(f.Rows, r)
	}
	f.write()
	return f
}

// formOf shows a condition.
func formOf(c api.SegmentCondition) *segmentForm {
	f := &segmentForm{where: c, JSON: jsonLines(c)}
	f.split()
	return f
}

// emptySegment is a form for the first filter.
func emptySegment() *segmentForm {
	return &segmentForm{Rows: []segmentRow{{}}, Shown: true, empty: true}
}

// takeJSON takes over the JSON as it was typed.
func (f *segmentForm) takeJSON() {
	if f.JSON == "" {
		f.Rows, f.Shown, f.empty = []segmentRow{{}}, true, true
		return
	}
	if f.where, f.Broken = parseCondition(f.JSON); f.Broken == "" {
		f.split()
	}
}

// tidy writes the JSON that a person has typed as the page writes it.
func (f *segmentForm) tidy() {
	if f.Broken == "" && !f.empty {
		f.JSON = jsonLines(f.where)
	}
}

// parseCondition reads the JSON of a condition, or of the body of a query. Whether the engine accepts
// it is another matter.
func parseCondition(text string) (c api.SegmentCondition, broken string) {
	if len(text) > api.MaxSegmentBody {
		return c, fmt.Sprintf("the condition has %s bytes, and the engine takes %s", number(len(text)),
			number(api.MaxSegmentBody))
	}
	if fault := tooMuch(text); fault != "" {
		return c, strings.Replace(fault, "draft", "condition", 1)
	}
	var body struct {
		Where json.RawMessage `json:"where"`
	}
	if json.Unmarshal([]byte(text), &body) == nil && body.Where != nil {
		text = string(body.Where)
	}
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&c); err != nil {
		return api.SegmentCondition{}, "this is no condition: " + strings.TrimPrefix(err.Error(), "json: ")
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return api.SegmentCondition{}, "this is more than one JSON object"
	}
	return c, ""
}

// split makes rows of the condition, if they can say it.
func (f *segmentForm) split() {
	f.Rows, f.Any, f.Shown = nil, false, false
	branches := f.where.And
	if len(branches) == 0 {
		branches = []api.SegmentCondition{f.where}
	}
	holding := 0 // branches that hold
	for _, branch := range branches {
		filters, without := []api.SegmentCondition{branch}, false
		if branch.Not != nil {
			filters, without = []api.SegmentCondition{*branch.Not}, true
			if len(branch.Not.Or) > 0 { // none of several holds
				filters = branch.Not.Or
			}
		} else if holding++; len(branch.Or) > 0 {
			filters, f.Any = branch.Or, true
		}
		for _, filter := range filters {
			row, ok := rowOf(filter)
			if !ok {
				f.Rows, f.Any = nil, false
				return
			}
			row.Without = without
			f.Rows = append(f.Rows, row)
		}
	}
	if f.Any && holding > 1 || len(f.Rows) > api.MaxSegmentConditions {
		f.Rows, f.Any = nil, false
		return
	}
	f.sort()
	f.Shown = true
}

// sort puts filters that hold first, as the form shows them.
func (f *segmentForm) sort() {
	slices.SortStableFunc(f.Rows, func(a, b segmentRow) int {
		side := func(r segmentRow) int {
			if r.Without {
				return 1
			}
			return 0
		}
		return cmp.Compare(side(a), side(b))
	})
}

// write makes the condition and its JSON of the rows. A row that is not complete is no part of them.
func (f *segmentForm) write() {
	f.sort()
	var with, all []api.SegmentCondition
	for i := range f.Rows {
		c, ok := f.Rows[i].filter()
		switch {
		case !ok:
		case f.Rows[i].Without:
			all = append(all, api.SegmentCondition{Not: &c})
		default:
			with = append(with, c)
		}
	}
	if f.Any && len(with) > 1 {
		with = []api.SegmentCondition{{Or: with}}
	}
	all = slices.Concat(with, all)
	f.where, f.JSON, f.empty = api.SegmentCondition{}, "", false
	switch len(all) {
	case 0:
		f.empty = true
		return
	case 1:
		f.where = all[0]
	default:
		f.where = api.SegmentCondition{And: all}
	}
	f.JSON = jsonLines(f.where)
}

// change does what a button asks for beside the fields.
func (f *segmentForm) change(do string) {
	words := strings.Fields(do)
	if len(words) == 0 || !f.Shown {
		return
	}
	at := -1
	if len(words) > 1 {
		if n, err := strconv.Atoi(words[1]); err == nil && n >= 0 && n < len(f.Rows) {
			at = n
		}
	}
	switch {
	case (words[0] == "with" || words[0] == "without") && len(f.Rows) < api.MaxSegmentConditions:
		f.Rows = append(f.Rows, segmentRow{Without: words[0] == "without"})
	case words[0] == "remove" && at >= 0:
		f.Rows = slices.Delete(f.Rows, at, at+1)
	case words[0] == "above" && at >= 0 && len(words) == 3:
		f.Rows[at].Above, f.Rows[at].Fault = words[2], ""
	default:
		return
	}
	f.write()
}

// Hash tells whether a person has changed the JSON of the page.
func (f *segmentForm) Hash() string { return jsonHash(f.JSON) }

// Full reports whether the condition has as many filters as the engine takes.
func (f *segmentForm) Full() bool { return len(f.Rows) >= api.MaxSegmentConditions }

// faulty reports whether a row has a fault.
func (f *segmentForm) faulty() bool {
	return slices.ContainsFunc(f.Rows, func(r segmentRow) bool { return r.Fault != "" })
}

// ready reports whether the engine can be asked.
func (f *segmentForm) ready() bool {
	return f.Broken == "" && !f.empty && !f.faulty() && !f.OnlyWithout()
}

// complete marks rows that lack something, and reports whether none does.
func (f *segmentForm) complete() bool {
	ok := true
	for i := range f.Rows {
		if lacks := f.Rows[i].partial(); lacks != "" {
			f.Rows[i].Fault, ok = lacks, false
		}
	}
	return ok
}

// OnlyWithout reports whether the condition only leaves users out, which the engine refuses.
func (f *segmentForm) OnlyWithout() bool {
	return f.Shown && !slices.ContainsFunc(f.Rows, func(r segmentRow) bool { return !r.Without && r.Value != "" }) &&
		slices.ContainsFunc(f.Rows, func(r segmentRow) bool { return r.Without && r.Value != "" })
}
