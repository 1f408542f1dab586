package importer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/api"
)

// Skip is the type of events that are left out.
const Skip = "skip"

// EventTypes are the types that events of a name of the file's own may have.
var EventTypes = []string{api.EventView, api.EventClick, api.EventConversion, Skip}

// AnyKind stands for the events of all names that have no type.
const AnyKind = "*"

// kindError refuses an event whose type nobody has given.
type kindError struct {
	name    string
	aimless bool // it names no object and no filter
}

// Error says which name has no type.
func (e *kindError) Error() string { return fmt.Sprintf("%q is no type of event", e.name) }

// Kind counts the lines whose events have a name that is no type of event.
type Kind struct {
	Name  string `json:"name"`
	Lines int    `json:"lines"`
	// Guess is the type that they probably have: one of EventTypes.
	Guess   string `json:"guess"`
	first   int    // line
	aimless bool   // no line names an object or a filter
}

// maxKinds is how many kinds a tally counts, and shownKinds how many it prints.
const (
	maxKinds   = 1000
	shownKinds = 20
)

// guesses are parts of names that say what the user did. The first one that a name has
// counts.
var guesses = []struct{ guess, parts string }{
	{Skip, "remove delete cancel refund unlike"},
	{api.EventConversion, "purchase complete transaction"},
	{api.EventView, "view impression detail visit open read seen"},
	{api.EventClick, "click select cart basket wish favo like add save share checkout download"},
	{api.EventConversion, "order buy bought sale convert subscri book"},
}

// guess guesses the type of a kind.
func (k *Kind) guess() string {
	if k.aimless {
		return Skip
	}
	name := strings.ToLower(k.Name)
	for _, g := range guesses {
		for part := range strings.FieldsSeq(g.parts) {
			if strings.Contains(name, part) {
				return g.guess
			}
		}
	}
	return api.EventClick
}

// text says what to do about a kind.
func (k *Kind) text() string {
	text := fmt.Sprintf("%q is no type of event (%s", k.Name, cli.Count(k.Lines, "line"))
	if k.aimless {
		text += " without objects and filters"
	}
	if strings.ContainsAny(k.Name, "=\"") { // no flag can hold it
		return text + "): give these lines an event_type of view, click or conversion"
	}
	if k.Guess == Skip {
		return text + "): --event " + cli.ShellWord(k.Name+"="+k.Guess) + " leaves them out"
	}
	return text + "): say which it is, such as --event " + cli.ShellWord(k.Name+"="+k.Guess)
}

// Kinds lists what the lines of the last file name as types of events and are none, those
// of the most lines first.
func (im *Importer) Kinds() []Kind { return im.lines.listKinds() }

// refuseKind counts a line of a kind without a type. It reports false if there are too many
// kinds to count.
func (t *tally) refuseKind(number int, e *kindError) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := t.kinds[e.name]
	if k == nil && len(t.kinds) == maxKinds {
		return false
	}
	if k == nil {
		k = &Kind{Name: e.name, first: number, aimless: true}
		if t.kinds == nil {
			t.kinds = map[string]*Kind{}
		}
		t.kinds[e.name] = k
	}
	k.Lines, k.aimless = k.Lines+1, k.aimless && e.aimless
	t.count.Refused++
	return true
}

func (t *tally) listKinds() []Kind {
	t.mu.Lock()
	defer t.mu.Unlock()
	var list []Kind
	for _, k := range t.kinds {
		counted := *k
		counted.Guess = counted.guess()
		list = append(list, counted)
	}
	slices.SortFunc(list, func(a, b Kind) int { return cmp.Or(b.Lines-a.Lines, strings.Compare(a.Name, b.Name)) })
	return list
}

// printKinds prints the kinds of a file.
func (t *tally) printKinds(m *meter, src *Source) {
	list := t.listKinds()
	for i, k := range list {
		if i == shownKinds {
			m.print("%s: %d more names are no types of events", src.name, len(list)-i)
			return
		}
		m.print("%s:%d: %s", src.name, k.first, cli.Printable(k.text()))
	}
}

// clearKinds forgets the kinds of the files before.
func (t *tally) clearKinds() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kinds = nil
}
