package measure

import (
	"slices"

	"github.com/affinityengine/affinity/shared/schema"
)

// The schemas that can be compared: the log's, in both encodings of values, and the histories that are packed from it.
const (
	NarrowJSON    = "narrow-json"
	NarrowCompact = "narrow-compact"
	WideJSON      = "wide-json"    // columns sifted by the server
	WideCompact   = "wide-compact" // the same
)

// CompareSchemas are all of them, in the order of the report. WideClient is the rows of WideCompact, received whole.
var CompareSchemas = []string{NarrowJSON, NarrowCompact, WideJSON, WideCompact, WideClient, History}

// schemaTables are the tables that they lie in.
var schemaTables = []tables{
	logTables(only(schema.Narrow, schema.JSON), NarrowJSON),
	logTables(only(schema.Narrow, schema.Compact), NarrowCompact),
	logTables(only(schema.Wide, schema.JSON), WideJSON),
	logTables(only(schema.Wide, schema.Compact), WideCompact, WideClient),
	historyTables,
}

func only(n schema.Name, e schema.Encoding) schema.Layout {
	l := schema.Of(n)
	l.Encoding = e
	return l
}

// scenario is users whose events grow in number, or users with equally many events who do.
type scenario struct {
	name   string
	users  int // 0: they grow
	events int // a user; 0: they grow
}

// scenarios are all there are, from few users with very many events to very many users with few, and last users of the number of
// events that bytes per event are told for.
var scenarios = []scenario{
	{name: "few", users: 2},
	{name: "some", users: 25},
	{name: "many", users: 250},
	{name: "most", users: 2500},
	{name: "shape", events: 500},
}

// Scenarios are the names of those that can be measured.
func Scenarios() (names []string) {
	for _, s := range scenarios {
		names = append(names, s.name)
	}
	return names
}

func findScenario(name string) (scenario, bool) {
	i := slices.IndexFunc(scenarios, func(s scenario) bool { return s.name == name })
	if i < 0 {
		return scenario{}, false
	}
	return scenarios[i], true
}

// size is the users, and the events of each, of a scenario with so many events in all, or somewhat fewer where they do not come
// out even. users is 0 if there are too few for one each.
func (s scenario) size(events, scale int) (users, each int) {
	if s.users > 0 {
		users, each = s.users*scale, events/s.users
		if each == 0 {
			users = 0
		}
		return users, each
	}
	return events * scale / s.events, s.events
}
