package console

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/fault"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// draft is a strategy that a person edits. It is the JSON of a stored strategy, of which a page
// changes only what it shows: keys that the console does not know stay.
type draft struct{ root map[string]any }

// parseDraft reads the JSON of a strategy. Whether the engine accepts it is another matter: checkStrategy.
func parseDraft(text string) (draft, error) {
	if fault := tooMuch(text); fault != "" {
		return draft{map[string]any{}}, errors.New(fault)
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var d draft
	if err := decoder.Decode(&d.root); err != nil || d.root == nil {
		return draft{map[string]any{}}, errors.New("the draft is not a JSON object")
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return draft{map[string]any{}}, errors.New("the draft is more than one JSON object")
	}
	return d, nil
}

// maxDraftLevels is how deep a draft may be nested. A strategy has four levels.
const maxDraftLevels = 20

// tooMuch says why a draft is not parsed, "" if it is.
func tooMuch(text string) string {
	if len(text) > api.MaxStrategyBody {
		return fmt.Sprintf("the draft has %s bytes, and the engine takes %s", number(len(text)), number(api.MaxStrategyBody))
	}
	level, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if level++; level > maxDraftLevels {
				return fmt.Sprintf("the draft is nested deeper than %d levels", maxDraftLevels)
			}
		case c == '}' || c == ']':
			level--
		}
	}
	return ""
}

// checkStrategy returns the strategy of a text, or the engine's messages about it.
func checkStrategy(text string) (strategy.Strategy, []string) {
	if fault := tooMuch(text); fault != "" {
		return strategy.Strategy{}, []string{fault}
	}
	s, err := strategy.Decode([]byte(text))
	var refused *fault.Error
	if errors.As(err, &refused) {
		return s, append([]string{refused.Message}, refused.Others...)
	}
	if err != nil {
		return s, []string{err.Error()}
	}
	return s, nil
}

// at returns what is at a path of keys, nil if nothing is.
func (d draft) at(path ...string) any {
	var v any = d.root
	for _, key := range path {
		object, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = object[key]
	}
	return v
}

// set sets what is at a path of keys. It makes the objects on the way.
func (d draft) set(v any, path ...string) {
	object := d.root
	for _, key := range path[:len(path)-1] {
		inner, ok := object[key].(map[string]any)
		if !ok {
			inner = map[string]any{}
			object[key] = inner
		}
		object = inner
	}
	object[path[len(path)-1]] = v
}

// list returns the entries of a list of scores that are objects, with their places in the list.
func (d draft) list(key string) (entries []map[string]any, places []int) {
	all, _ := d.root[key].([]any)
	for i, v := range all {
		if entry, ok := v.(map[string]any); ok {
			entries, places = append(entries, entry), append(places, i)
		}
	}
	return entries, places
}

func (d draft) add(key string, entry map[string]any) {
	all, _ := d.root[key].([]any)
	d.root[key] = append(all, entry)
}

// typedValue is the JSON value of a text that a person typed where a number or a text may stand.
func typedValue(text string) any {
	if n := json.Number(text); text != "" && json.Valid([]byte(text)) {
		if _, err := n.Float64(); err == nil {
			return n
		}
	}
	return text
}

// fieldText is the text of a JSON value in a field of a form.
func fieldText(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case json.Number:
		return v.String()
	}
	text, _ := json.Marshal(v) // it was decoded from JSON
	return string(text)
}

// JSON returns the draft as the engine takes it.
func (d draft) JSON() string {
	var b strings.Builder
	writeDraft(&b, d.root, 0)
	return b.String()
}

// keyOrder is how keys of a strategy are ordered where a person reads them. Others follow.
var keyOrder = []string{
	"eventsScoring", "facetsScoring", "personalizationImpact", "halfLives", "ranking", "placements", "aliases", "eventName",
	"eventType", "facetName", "score",
	"contrast", "session", "popularity", "pairs", "sequence", "neighbours", "freshness", "attribute", "halfLife", "weight",
}

// writeDraft writes a value as JSON with a line for each entry down to the second level.
func writeDraft(b *strings.Builder, v any, depth int) {
	const levels = 2
	breaks, pad := depth < levels, ""
	if breaks {
		pad = strings.Repeat("  ", depth+1)
	}
	separate := func(i int) {
		switch {
		case i > 0 && !breaks:
			b.WriteString(", ")
		case i > 0:
			b.WriteString(",\n" + pad)
		case breaks:
			b.WriteString("\n" + pad)
		}
	}
	end := func(n int, bracket string) {
		if n > 0 && breaks {
			b.WriteString("\n" + pad[2:])
		}
		b.WriteString(bracket)
	}
	switch v := v.(type) {
	case map[string]any:
		b.WriteString("{")
		for i, key := range draftKeys(v) {
			separate(i)
			b.WriteString(jsonText(key) + ": ")
			writeDraft(b, v[key], depth+1)
		}
		end(len(v), "}")
	case []any:
		b.WriteString("[")
		breaks = breaks && slices.ContainsFunc(v, isNested)
		for i, e := range v {
			separate(i)
			writeDraft(b, e, depth+1)
		}
		end(len(v), "]")
	default:
		b.WriteString(jsonText(v))
	}
}

func isNested(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}

func draftKeys(object map[string]any) []string {
	keys := make([]string, 0, len(object))
	for key := range object {
		keys = append(keys, key)
	}
	rank := func(key string) int {
		if i := slices.Index(keyOrder, key); i >= 0 {
			return i
		}
		return len(keyOrder)
	}
	slices.SortFunc(keys, func(a, b string) int {
		if d := rank(a) - rank(b); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	return keys
}

// sliderValue reads a score or a weight. ok is false for what the slider of a field cannot show.
func sliderValue(field, text string) (n int, ok bool) {
	n, err := strconv.Atoi(text)
	return n, err == nil && n >= 0 && n <= mostOf(field)
}

// mostOf is the highest value of the slider of a field.
func mostOf(field string) int {
	switch field {
	case "popularity.weight", "pairs.weight", "sequence.weight", "neighbours.weight":
		return strategy.MaxCrowdWeight
	}
	return strategy.MaxWeight
}
