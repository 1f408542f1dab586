package console

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"slices"
	"strings"

	"github.com/affinityengine/affinity/shared/score/strategy"
)

// draftForm is what the page of the draft sends: the JSON that it was made from, and the fields that
// stand above it.
type draftForm struct {
	url.Values
	// Edited reports that the JSON is not the one that the page was made from. It then is the
	// draft, and the other fields do not count.
	Edited bool
	text   string
}

// jsonHash tells whether a person has changed the JSON of a page.
func jsonHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// typedJSON returns the JSON of a form as it was typed, with the line ends of this machine.
func typedJSON(values url.Values) string {
	return strings.TrimSpace(strings.ReplaceAll(values.Get("json"), "\r\n", "\n"))
}

func readForm(values url.Values) draftForm {
	f := draftForm{Values: values, text: typedJSON(values)}
	f.Edited = jsonHash(f.text) != values.Get("hash")
	return f
}

// draft returns what the form says. text is the draft as JSON: as it was typed, if that is no object.
func (f draftForm) draft() (d draft, text string, err error) {
	if d, err = parseDraft(f.text); err != nil || f.Edited {
		return d, f.text, err
	}
	f.scores(d, "event", "eventsScoring", func(name string) map[string]any {
		typ, rest, _ := strings.Cut(name, "/")
		return map[string]any{"eventType": typ, "eventName": rest}
	})
	f.scores(d, "facet", "facetsScoring", func(name string) map[string]any { return map[string]any{"facetName": name} })
	if now := f.slide("impact", "impactSlide", 0, fieldText(d.at("personalizationImpact"))); now != "" {
		d.set(typedValue(now), "personalizationImpact")
	}
	f.halfLives(d)
	f.ranking(d)
	return d, d.JSON(), nil
}

// slide returns what a slider and the number beside it say: the one that differs from what they were.
// Without JavaScript they do not follow each other.
func (f draftForm) slide(number, slider string, i int, was string) string {
	numbers, sliders := f.Values[number], f.Values[slider]
	if i >= len(numbers) || i >= len(sliders) {
		return was
	}
	if typed := strings.TrimSpace(numbers[i]); typed != "" && typed != was {
		return typed
	}
	if _, fits := sliderValue(number, was); fits {
		return sliders[i]
	}
	return was
}

// scores takes over a list of scores. make returns the entry of a name without its score.
func (f draftForm) scores(d draft, field, list string, make func(name string) map[string]any) {
	entries, _ := d.list(list)
	byName := map[string]map[string]any{}
	for _, entry := range entries {
		byName[entryName(entry)] = entry
	}
	for i, encoded := range f.Values[field] {
		name, err := url.QueryUnescape(encoded)
		if err != nil {
			continue
		}
		entry, scored := byName[name]
		was := "0"
		if scored {
			was = fieldText(entry["score"])
		}
		now := f.slide(field+"Score", field+"Slide", i, was)
		switch {
		case now == was:
		case scored:
			entry["score"] = typedValue(now)
		default:
			entry = make(name)
			entry["score"] = typedValue(now)
			byName[name] = entry
			d.add(list, entry)
		}
	}
}

// entryName names an entry of a list of scores: its facet, or the type and the name of its event.
func entryName(entry map[string]any) string {
	if name, ok := entry["facetName"]; ok {
		return fieldText(name)
	}
	return fieldText(entry["eventType"]) + "/" + fieldText(entry["eventName"])
}

func (f draftForm) halfLives(d draft) {
	typed, given := f.Values["halfLife"]
	if !given {
		return
	}
	var texts []string
	for _, text := range typed {
		if text = strings.TrimSpace(text); text != "" {
			texts = append(texts, text)
		}
	}
	if slices.Equal(texts, d.halfLives()) {
		return
	}
	values := make([]any, len(texts))
	for i, text := range texts {
		values[i] = typedValue(text)
	}
	if d.set(values, "halfLives"); len(values) == 0 {
		delete(d.root, "halfLives")
	}
}

// halfLives returns the half-lives as they are typed.
func (d draft) halfLives() (texts []string) {
	all, _ := d.root["halfLives"].([]any)
	for _, v := range all {
		texts = append(texts, fieldText(v))
	}
	return texts
}

// rankingField is a field of the ranking. Until the strategy gives it, it has the engine's default.
type rankingField struct {
	path    []string
	Default string
}

func (r rankingField) name() string { return strings.Join(r.path[1:], ".") }

// value returns the field's text in a draft, and whether the draft gives it.
func (r rankingField) value(d draft) (text string, given bool) {
	if v := d.at(r.path...); v != nil {
		return fieldText(v), true
	}
	return r.Default, false
}

// rankingFields are the fields of the ranking; those that end in weight have sliders.
func rankingFields() []rankingField {
	full := strategy.DefaultRanking()
	weight := func(part string, n int) rankingField {
		return rankingField{[]string{"ranking", part, "weight"}, fieldText(n)}
	}
	text := func(value string, path ...string) rankingField {
		return rankingField{append([]string{"ranking"}, path...), value}
	}
	return []rankingField{
		text(string(full.Contrast), "contrast"),
		weight("session", full.Session.Weight), text(full.Session.HalfLife.String(), "session", "halfLife"),
		weight("popularity", full.Popularity.Weight), text(full.Popularity.HalfLife.String(), "popularity", "halfLife"),
		weight("pairs", full.Pairs.Weight), weight("sequence", full.Sequence.Weight),
		weight("neighbours", full.Neighbours.Weight),
		weight("freshness", full.Freshness.Weight), text(full.Freshness.HalfLife.String(), "freshness", "halfLife"),
		text(full.Freshness.Attribute, "freshness", "attribute"),
	}
}

// ranking takes over the fields of the ranking that differ from what the page showed.
func (f draftForm) ranking(d draft) {
	for _, field := range rankingFields() {
		name := field.name()
		was, _ := field.value(d)
		now := was
		switch {
		case !f.Has(name):
		case strings.HasSuffix(name, "weight"):
			now = f.slide(name, name+"Slide", 0, was)
		default:
			now = strings.TrimSpace(f.Get(name))
		}
		switch {
		case now == was:
		case now == "" && d.at(field.path[:len(field.path)-1]...) != nil:
			object, _ := d.at(field.path[:len(field.path)-1]...).(map[string]any)
			delete(object, field.path[len(field.path)-1])
		case now != "":
			d.set(rankingValue(name, now), field.path...)
		}
	}
}

// rankingValue is the JSON value of a field of the ranking: attributes and contrasts are texts.
func rankingValue(name, text string) any {
	if strings.HasSuffix(name, "weight") || strings.HasSuffix(name, "halfLife") {
		return typedValue(text)
	}
	return text
}

// change does what a button of the form asks for beside the fields. It reports what could not be done.
func (f draftForm) change(d draft) (problem string) {
	do, of, _ := strings.Cut(f.Get("do"), " ")
	switch do {
	case "add-event":
		return d.addScore("eventsScoring", "event",
			map[string]any{"eventType": f.Get("newType"), "eventName": strings.TrimSpace(f.Get("newEvent"))})
	case "add-facet":
		return d.addScore("facetsScoring", "facet", map[string]any{"facetName": strings.TrimSpace(f.Get("newFacet"))})
	case "add-alias":
		return d.addAlias(strings.TrimSpace(f.Get("aliasFacet")), strings.TrimSpace(f.Get("aliasFrom")),
			strings.TrimSpace(f.Get("aliasTo")))
	case "add-suggested":
		for _, text := range f.Values["suggested"] {
			if parts, ok := unpack(text, 3); ok {
				if problem := d.addAlias(parts[0], parts[1], parts[2]); problem != "" {
					return problem
				}
			}
		}
	case "remove-alias":
		if parts, ok := unpack(of, 2); ok {
			d.removeAlias(parts[0], parts[1])
		}
	}
	return ""
}

// newScore is what an entry that a person adds counts at first.
const newScore = "10"

func (d draft) addScore(list, what string, entry map[string]any) string {
	name := entryName(entry)
	if name == "" || strings.HasSuffix(name, "/") {
		return "Type the name of the " + what + " to add"
	}
	entries, _ := d.list(list)
	if slices.ContainsFunc(entries, func(e map[string]any) bool { return entryName(e) == name }) {
		return "The draft has this " + what + " already"
	}
	entry["score"] = typedValue(newScore)
	d.add(list, entry)
	return ""
}

func (d draft) addAlias(facet, from, to string) string {
	if facet == "" || from == "" || to == "" {
		return "An alias needs a facet, the value as it is sent, and the value that it counts as"
	}
	d.set(to, "aliases", facet, from)
	return ""
}

func (d draft) removeAlias(facet, from string) {
	pairs, _ := d.at("aliases", facet).(map[string]any)
	delete(pairs, from)
	if all, _ := d.at("aliases").(map[string]any); len(pairs) == 0 {
		delete(all, facet)
		if len(all) == 0 {
			delete(d.root, "aliases")
		}
	}
}

// pack writes texts from outside into one value of a form, which changes no character of it.
func pack(texts ...string) string {
	escaped := make([]string, len(texts))
	for i, text := range texts {
		escaped[i] = url.QueryEscape(text)
	}
	return strings.Join(escaped, "&")
}

// unpack reads what pack has written.
func unpack(packed string, n int) ([]string, bool) {
	texts := strings.Split(packed, "&")
	for i, escaped := range texts {
		text, err := url.QueryUnescape(escaped)
		if err != nil {
			return nil, false
		}
		texts[i] = text
	}
	return texts, len(texts) == n
}
