package strategy

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/fault"
)

// wire is a strategy as clients send it. Pointers distinguish a missing or null
// field from a zero.
type wire struct {
	EventsScoring         *[]wireEvent                  `json:"eventsScoring"`
	FacetsScoring         *[]wireFacet                  `json:"facetsScoring"`
	PersonalizationImpact *int                          `json:"personalizationImpact"`
	HalfLives             []jsontext.Value              `json:"halfLives"`
	Aliases               map[string]map[string]*string `json:"aliases"`
	IgnoredValues         []*string                     `json:"ignoredValues"`
	AllowedValues         map[string][]*string          `json:"allowedValues"`
	Ranking               *wireRanking                  `json:"ranking"`
	Placements            map[string]*wireRanking       `json:"placements"`
}

type wireEvent struct {
	EventName *string `json:"eventName"`
	EventType *string `json:"eventType"`
	Score     *int    `json:"score"`
}

type wireFacet struct {
	FacetName *string `json:"facetName"`
	Score     *int    `json:"score"`
}

// Decode decodes a strategy from JSON: Algolia's three keys, all required, and
// the optional keys halfLives, aliases, ignoredValues, allowedValues, ranking and placements, for
// which null equals absent, and empty too but for the two lists of values. It refuses
// unknown keys (names are case-sensitive), repeated keys, wrong types and values beyond
// the limits. Integers must be written as integers: it refuses 10.0 and 1e2 like 1.5.
// Every error is a *fault.Error. It has all faults, unless the form of the JSON is wrong: then it has the first.
func Decode(body []byte) (Strategy, error) {
	// Syntax first: a truncated body is invalid JSON, whatever else is wrong
	// with it.
	if err := checkSyntax(body); err != nil {
		return Strategy{}, err
	}
	var w *wire
	if err := json.Unmarshal(body, &w, json.RejectUnknownMembers(true)); err != nil {
		return Strategy{}, explain(err)
	}
	if w == nil {
		return Strategy{}, invalid("a strategy must be an object, got null")
	}
	var f faults
	s := w.strategy(&f)
	if err := s.validate(&f); err != nil {
		return Strategy{}, err
	}
	if err := f.err(); err != nil {
		return Strategy{}, err
	}
	return s, nil
}

func checkSyntax(body []byte) error {
	if jsontext.Value(body).IsValid(jsontext.AllowDuplicateNames(true)) {
		return nil
	}
	var v jsontext.Value
	err := json.Unmarshal(body, &v, jsontext.AllowDuplicateNames(true))
	return fault.New(fault.Malformed, "the strategy is not valid JSON: %s", reason(err))
}

// reason returns the JSON library's message without the library's name.
func reason(err error) string {
	return strings.TrimPrefix(fmt.Sprint(err), "jsontext: ")
}

// explain converts the JSON library's error to a message that names the field
// as the client wrote it.
func explain(err error) error {
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) && syntax.Err == jsontext.ErrDuplicateName {
		return invalid("Duplicate field %s", quote(syntax.JSONPointer.LastToken()))
	}
	var semantic *json.SemanticError
	if !errors.As(err, &semantic) {
		return invalid("the strategy cannot be read: %s", reason(err))
	}
	if semantic.Err == json.ErrUnknownName {
		return invalid("Unknown field %s", quote(semantic.JSONPointer.LastToken()))
	}
	return invalid("%s must be %s, got %s", fieldPath(semantic.JSONPointer), wanted(semantic.GoType), got(semantic))
}

func wanted(t reflect.Type) string {
	if t == nil {
		return "of another type"
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Int:
		return "an integer"
	case reflect.Float64:
		return "a number"
	case reflect.String:
		return "a string"
	case reflect.Slice:
		return "a list"
	default:
		return "an object"
	}
}

func got(err *json.SemanticError) string {
	if err.JSONKind == '0' && len(err.JSONValue) > 0 {
		return shorten(string(err.JSONValue))
	}
	return kindOf(byte(err.JSONKind))
}

// kindOf names the kind of the JSON value that begins with first.
func kindOf(first byte) string {
	switch first {
	case '0':
		return "a number"
	case '"':
		return "a string"
	case '{':
		return "an object"
	case '[':
		return "a list"
	case 't', 'f':
		return "a boolean"
	default:
		return "null"
	}
}

// strategy adds the fields that are missing to f. validate checks the limits.
func (w *wire) strategy(f *faults) Strategy {
	var s Strategy
	if w.EventsScoring == nil {
		f.add("eventsScoring", required("eventsScoring"))
	} else {
		s.EventsScoring = make([]EventScore, len(*w.EventsScoring))
		for i, e := range *w.EventsScoring {
			path := fmt.Sprintf("eventsScoring[%d]", i)
			s.EventsScoring[i] = EventScore{
				EventName: value(f, path+".eventName", e.EventName),
				EventType: event.Type(value(f, path+".eventType", e.EventType)),
				Score:     value(f, path+".score", e.Score),
			}
		}
	}
	if w.FacetsScoring == nil {
		f.add("facetsScoring", required("facetsScoring"))
	} else {
		s.FacetsScoring = make([]FacetScore, len(*w.FacetsScoring))
		for i, facet := range *w.FacetsScoring {
			path := fmt.Sprintf("facetsScoring[%d]", i)
			s.FacetsScoring[i] = FacetScore{FacetName: value(f, path+".facetName", facet.FacetName),
				Score: value(f, path+".score", facet.Score)}
		}
	}
	s.PersonalizationImpact = value(f, "personalizationImpact", w.PersonalizationImpact)
	return w.optional(f, s)
}

// value returns the value of a required field, and adds a fault if it is missing.
func value[T any](f *faults, path string, given *T) (v T) {
	if given == nil {
		f.add(path, required(path))
		return v
	}
	return *given
}

// optional adds the optional keys of w to s.
func (w *wire) optional(f *faults, s Strategy) Strategy {
	for i, given := range w.HalfLives {
		path := fmt.Sprintf("halfLives[%d]", i)
		h, err := decodeHalfLife(path, given)
		f.add(path, err)
		s.HalfLives = append(s.HalfLives, h)
	}
	s.Ranking = w.Ranking.ranking(f, "ranking")
	s.Placements = make(map[string]*Ranking, len(w.Placements))
	for _, name := range sortedKeys(w.Placements) {
		s.Placements[name] = w.Placements[name].ranking(f, keyPath("placements", name))
	}
	s.Aliases = make(map[string]map[string]string, len(w.Aliases))
	for _, facet := range sortedKeys(w.Aliases) {
		s.Aliases[facet] = make(map[string]string, len(w.Aliases[facet]))
		for _, from := range sortedKeys(w.Aliases[facet]) {
			s.Aliases[facet][from] = value(f, keyPath("aliases", facet, from), w.Aliases[facet][from])
		}
	}
	if w.IgnoredValues != nil {
		s.IgnoredValues = valuesOf(f, "ignoredValues", w.IgnoredValues)
	}
	s.AllowedValues = make(map[string]ValueSet, len(w.AllowedValues))
	for _, facet := range sortedKeys(w.AllowedValues) {
		s.AllowedValues[facet] = allowedOf(f, keyPath("allowedValues", facet), w.AllowedValues[facet])
	}
	return s.withoutEmpty()
}

// allowedOf returns the allowed values of a facet, and adds the faults of their form. Nil
// is no list.
func allowedOf(f *faults, path string, given []*string) ValueSet {
	if given != nil && len(given) == 0 {
		f.add(path, invalid("%s must not be empty: leave it out if all values score, and score the facet 0 if none does",
			path))
	}
	set := make(ValueSet, len(given))
	for i, v := range valuesOf(f, path, given) {
		if _, twice := set[v]; twice {
			f.add(path, invalid("%s[%d] repeats the value %s", path, i, quote(v)))
		}
		set[v] = struct{}{}
	}
	return set
}

// valuesOf returns a list of values, and adds a fault for each that is null.
func valuesOf(f *faults, path string, given []*string) []string {
	values := make([]string, len(given))
	for i, v := range given {
		values[i] = value(f, fmt.Sprintf("%s[%d]", path, i), v)
	}
	return values
}

func required(path string) error { return invalid("%s is required", path) }

// fieldPath formats a JSON pointer as a path: eventsScoring[2].score,
// aliases["color"]["Rouge"], allowedValues["tags"][3] or placements["home"].pairs.weight.
func fieldPath(p jsontext.Pointer) string {
	var path strings.Builder
	for token := range p.Tokens() {
		if path.Len() == 0 {
			switch keys := slices.Collect(p.Tokens())[1:]; {
			case token == "allowedValues" && len(keys) > 1:
				return keyPath(token, keys[0]) + "[" + keys[1] + "]"
			case token == "placements" && len(keys) > 0:
				return strings.Join(append([]string{keyPath(token, keys[0])}, keys[1:]...), ".")
			case token == "allowedValues", token == "aliases":
				return keyPath(token, keys...)
			}
			path.WriteString(token)
		} else if _, err := strconv.Atoi(token); err == nil {
			path.WriteString("[" + token + "]")
		} else {
			path.WriteString("." + token)
		}
	}
	if path.Len() == 0 {
		return "a strategy"
	}
	return path.String()
}

// keyPath formats a path below a field whose keys may be any text.
func keyPath(field string, keys ...string) string {
	for _, key := range keys {
		field += "[" + quote(key) + "]"
	}
	return field
}

func quote(s string) string { return strconv.Quote(shorten(s)) }

// shorten truncates the client's text for use in a message.
func shorten(s string) string {
	const maxBytes = 100
	if len(s) <= maxBytes {
		return s
	}
	return strings.ToValidUTF8(s[:maxBytes], "") + "..."
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
