package measure

import (
	"slices"

	"github.com/affinityengine/affinity/shared/score/schema"
)

// The schemas to compare: those of the log in both encodings, narrow in two others,
// and the histories packed from the log.
const (
	NarrowJSON    = "narrow-json"
	NarrowCompact = "narrow-compact"
	NarrowProto   = "narrow-proto" // Protocol Buffers and encoding/gob, which no app can have
	NarrowGob     = "narrow-gob"
	WideJSON      = "wide-json"    // the server filters columns
	WideCompact   = "wide-compact" // the same
)

// CompareSchemas lists all schemas in the order of the report. WideClient receives
// the rows of WideCompact whole.
var CompareSchemas = []string{NarrowJSON, NarrowCompact, NarrowProto, NarrowGob, WideJSON, WideCompact,
	WideClient, History}

// schemaTables are the tables that hold them.
var schemaTables = []tables{
	logTables(only(schema.Narrow, schema.JSON), NarrowJSON),
	logTables(only(schema.Narrow, schema.Compact), NarrowCompact),
	encodedTables(NarrowProto),
	encodedTables(NarrowGob),
	logTables(only(schema.Wide, schema.JSON), WideJSON),
	logTables(only(schema.Wide, schema.Compact), WideCompact, WideClient),
	historyTables,
}

func only(n schema.Name, e schema.Encoding) schema.Layout {
	l := schema.Of(n)
	l.Encoding = e
	return l
}

// scenario has a fixed number of users with growing numbers of events, or a growing
// number of users with a fixed number of events.
type scenario struct {
	name   string
	users  int // 0: grows
	events int // per user; 0: grows
}

// scenarios go from few users with very many events to very many users with few.
// The last is the one that reports bytes per event.
var scenarios = []scenario{
	{name: "few", users: 2},
	{name: "some", users: 25},
	{name: "many", users: 250},
	{name: "most", users: 2500},
	{name: "shape", events: 500},
}

// Scenarios lists the names of all scenarios.
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

// size returns the number of users and the events of each for a total number of
// events, rounded down. users is 0 if there is less than one event per user.
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
