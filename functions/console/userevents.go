package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/web/auth"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

func init() {
	pages = append(pages, page{pattern: "GET /console/users/{token}/events", section: "users",
		template: "userevents", fragment: "events", load: ofUser(loadUserEvents)})
}

const (
	// maxTimeline is how many events a user may have to be shown: an export is kept in memory.
	maxTimeline = 10_000
	// eventsListed is how many events are listed one by one.
	eventsListed = 50
	// objectsListed and filtersListed are how many of an event's are.
	objectsListed = 5
	filtersListed = 8
)

// userEvents is what the timeline of a user shows.
type userEvents struct {
	Token, Path string
	Now         time.Time
	Accepted    int // in the log
	TooMany     bool
	Events      int // that count or could, in the retention
	Faults      int
	Rows        []eventRow
	Folded      bool // the rows, below a chart on the page of the user
	Chart       *chart
}

// Most is how many events a user may have.
func (userEvents) Most() int { return maxTimeline }

// eventRow is an event of the table.
type eventRow struct {
	At time.Time
	// By is the anonymous token of the event, if it is not one of the user's own.
	By                   string
	Type, Name, Index    string
	Objects              []string
	MoreObjects          int
	Filters              []api.ExportedFilter
	MoreFilters, Unknown int
}

func loadUserEvents(v *visit, token string) (any, error) {
	v.title, v.command = "Events of "+shown(token), "affinity export "+userArg(token)
	if !v.may(auth.Admin) {
		return nil, httpapi.Errorf(403, "The events of a user need a key with the permission admin")
	}
	x, err := v.engine.Profiles().Explain(v.Context(), token, api.ExplainQuery{Limit: 1})
	if err != nil {
		return nil, fmt.Errorf("count the events of a user: %w", err)
	}
	p := userEvents{Token: token, Path: userPath(token, ""), Now: v.now(), Accepted: x.Events.Accepted,
		Folded: v.Header.Get("Hx-Request") != ""}
	if p.TooMany = p.Accepted > maxTimeline; p.TooMany {
		return p, nil
	}
	lines := &eventLines{token: token}
	end, err := v.engine.Export(v.Context(), token, lines)
	if err != nil {
		return nil, fmt.Errorf("export a user: %w", err)
	}
	p.Events, p.Faults, p.Rows = end.Events, end.Faults, lines.newest()
	p.Chart = newChart(lines.points, x.AsOf.Time, lines.halfLives,
		func(n float64) string { return number(int(math.Round(n))) })
	return p, nil
}

// eventLines takes the lines of an export. It keeps the newest events whole.
type eventLines struct {
	token     string // of the user
	halfLives []string
	points    []point
	rows      []eventRow // a ring of the newest
}

// sentEvent is what a client has sent.
type sentEvent struct {
	UserToken any      `json:"userToken"`
	EventType string   `json:"eventType"`
	EventName string   `json:"eventName"`
	Index     string   `json:"index"`
	ObjectIDs []string `json:"objectIDs"`
}

// Write takes one line: the client writes them one by one.
func (l *eventLines) Write(line []byte) (int, error) {
	if !bytes.HasPrefix(line, []byte(`{"exportedEvent":`)) && !bytes.HasPrefix(line, []byte(`{"exportedProfile":`)) {
		return len(line), nil
	}
	var read api.ExportLine
	if err := json.Unmarshal(line, &read); err != nil {
		return 0, fmt.Errorf("read a line of an export: %w", err)
	}
	if read.Profile != nil && len(read.Profile.Affinities) > 0 {
		for name := range read.Profile.Affinities[0].Scores {
			l.halfLives = append(l.halfLives, name)
		}
		slices.SortFunc(l.halfLives, byLength)
	}
	if read.Event == nil {
		return len(line), nil
	}
	var sent sentEvent
	if err := json.Unmarshal(read.Event.Event, &sent); err != nil {
		return 0, fmt.Errorf("read an event of an export: %w", err)
	}
	at := time.UnixMilli(read.Event.Time)
	row := eventRow{At: at, Type: sent.EventType, Name: sent.EventName, Index: sent.Index,
		Unknown: read.Event.UnknownObjects}
	if by, _ := sent.UserToken.(string); by != l.token {
		row.By = by
	}
	if row.Index == "" {
		row.Index = read.Event.Index
	}
	row.Objects, row.MoreObjects = firstOf(sent.ObjectIDs, objectsListed)
	row.Filters, row.MoreFilters = firstOf(read.Event.Filters, filtersListed)
	if len(l.points) < eventsListed {
		l.rows = append(l.rows, row)
	} else {
		l.rows[len(l.points)%eventsListed] = row
	}
	l.points = append(l.points, point{at, sent.EventType, 1})
	return len(line), nil
}

// newest returns the rows, the newest first.
func (l *eventLines) newest() []eventRow {
	slices.SortStableFunc(l.rows, func(a, b eventRow) int { return b.At.Compare(a.At) })
	return l.rows
}

// firstOf returns the first n of a list, and how many more there are.
func firstOf[T any](list []T, n int) ([]T, int) {
	if len(list) <= n {
		return list, 0
	}
	return list[:n], len(list) - n
}
