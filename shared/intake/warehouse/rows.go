// Package warehouse defines the rows that analysts get: of an event, a deletion, a profile and a saved
// segment. process and imports publish the first two as messages, which a subscription writes to
// BigQuery; `affinity warehouse export` writes events, profiles and segments as Parquet. The tags name the
// columns of all of them. Tests hold the schemas and the SQL of terraform/modules/warehouse to these types.
//
// A place, which is the app, the user, the time and the id, names one event. A table may hold several rows of a
// place: a message is delivered more than once, and an event is written again when the catalog knows more of its
// objects. The view keeps the best one. The package keeps no data.
package warehouse

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/consent"
	"github.com/affinityengine/affinity/shared/score/schema"
)

// Event is an event that counts in the log.
type Event struct {
	App       string    `json:"app" parquet:"app,dict"`
	UserToken string    `json:"user_token" parquet:"user_token,dict"`
	Time      time.Time `json:"time" parquet:"time,timestamp(millisecond)"`
	ID        string    `json:"id" parquet:"id"`
	// ReceivedAt decides, beside Time, whether a deletion covers the event.
	ReceivedAt time.Time `json:"received_at" parquet:"received_at,timestamp(millisecond)"`
	// WrittenAt is when the engine made the row.
	WrittenAt time.Time `json:"written_at" parquet:"written_at,timestamp(millisecond)"`
	Type      string    `json:"type" parquet:"type,dict"`
	Subtype   string    `json:"subtype,omitempty" parquet:"subtype,optional,dict"`
	Name      string    `json:"name" parquet:"name,dict"`
	Index     string    `json:"index_name" parquet:"index_name,dict"`
	// AuthenticatedUserToken and QueryID are as the client sent them, if it did.
	AuthenticatedUserToken string   `json:"authenticated_user_token,omitempty" parquet:"authenticated_user_token,optional"`
	QueryID                string   `json:"query_id,omitempty" parquet:"query_id,optional"`
	ObjectIDs              []string `json:"object_ids" parquet:"object_ids"`
	// Filters are what the event counts for: those that it names, or those of its objects.
	Filters []Filter `json:"filters" parquet:"filters"`
	// UnknownObjects are those of its objects that the catalog did not know, LeftOutObjects those that
	// do not count because all together have too many filters.
	UnknownObjects int64 `json:"unknown_objects" parquet:"unknown_objects"`
	LeftOutObjects int64 `json:"left_out_objects" parquet:"left_out_objects"`
	// Event is the JSON that the client sent, with what no other column has, such as prices.
	Event string `json:"event" parquet:"event,zstd"`
}

// Filter is a filter with the number of the event's objects that have it.
type Filter struct {
	Facet string `json:"facet" parquet:"facet,dict"`
	Value string `json:"value" parquet:"value,dict"`
	N     int64  `json:"n" parquet:"n"`
}

// compare orders filters by facet and value.
func (f Filter) compare(g Filter) int {
	return cmp.Or(strings.Compare(f.Facet, g.Facet), strings.Compare(f.Value, g.Value))
}

// Deletion says that events of a user do not count: those of times until DeletedUntil, and those received
// until ReceivedUntil. An opt-out is one too. Without a UserToken it is about all users of the app.
type Deletion struct {
	App           string    `json:"app"`
	UserToken     string    `json:"user_token"`
	DeletedUntil  time.Time `json:"deleted_until"`
	ReceivedUntil time.Time `json:"received_until"`
	WrittenAt     time.Time `json:"written_at"`
}

// Profile is the profile of a user at a time.
type Profile struct {
	App             string     `parquet:"app,dict"`
	UserToken       string     `parquet:"user_token"`
	AsOf            time.Time  `parquet:"as_of,timestamp(millisecond)"`
	LastEventAt     time.Time  `parquet:"last_event_at,timestamp(millisecond)"`
	StrategyVersion int64      `parquet:"strategy_version"`
	Affinities      []Affinity `parquet:"affinities"`
}

// Affinity is how much a user likes a value of a facet, by the strategy's first half-life.
type Affinity struct {
	Facet string  `parquet:"facet,dict"`
	Value string  `parquet:"value,dict"`
	Score float64 `parquet:"score"`
}

// Segment is a saved segment. Condition is JSON, as PUT /1/segments/{name} takes it.
type Segment struct {
	App       string `parquet:"app,dict"`
	Name      string `parquet:"name"`
	Condition string `parquet:"condition"`
}

// Logged is what the log has of an event. The user is the one of the original.
type Logged struct {
	App      string
	Time     int64 // ms
	ID       string
	Counts   []affinity.Count // none: those of the filters that the original names
	Original []byte           // schema.Original
}

// EventOf returns the row of an event that is made now.
func EventOf(l Logged, now time.Time) (Event, error) {
	original, err := schema.ParseOriginal(l.Original)
	var sent event.Event
	if err == nil {
		sent, err = original.Decode()
	}
	if err != nil {
		return Event{}, fmt.Errorf("make the row of an event of %s for the warehouse: %w", l.App, err)
	}
	row := Event{
		App: l.App, UserToken: sent.UserToken, Time: at(l.Time), ID: l.ID, ReceivedAt: at(original.ReceivedAt),
		WrittenAt: at(now.UnixMilli()), Type: string(sent.Type), Subtype: sent.Subtype, Name: sent.Name, Index: sent.Index,
		AuthenticatedUserToken: sent.AuthenticatedUserToken, QueryID: sent.QueryID,
		ObjectIDs: append([]string{}, sent.ObjectIDs...), Filters: []Filter{},
		UnknownObjects: int64(original.UnknownObjects), LeftOutObjects: int64(original.LeftOutObjects),
		Event: string(original.Event),
	}
	for _, c := range l.Counts {
		row.Filters = append(row.Filters, Filter{c.Facet, c.Value, int64(c.N)})
	}
	if len(l.Counts) == 0 {
		for _, f := range sent.Filters {
			row.Filters = append(row.Filters, Filter{f.Facet, f.Value, 1})
		}
	}
	slices.SortFunc(row.Filters, Filter.compare)
	return row, nil
}

// Limit leaves in a row the filters that count by a view, and reports whether the event does.
func (e *Event) Limit(view *consent.View) bool {
	if view == nil {
		return true
	}
	of := affinity.Event{Type: event.Type(e.Type), Name: e.Name, Time: e.Time.UnixMilli()}
	for _, f := range e.Filters {
		of.Counts = append(of.Counts, affinity.Count{Facet: f.Facet, Value: f.Value, N: int(f.N)})
	}
	counts, kept := view.Counts(of, e.ReceivedAt.UnixMilli())
	e.Filters = e.Filters[:0]
	for _, c := range counts {
		e.Filters = append(e.Filters, Filter{c.Facet, c.Value, int64(c.N)})
	}
	return kept
}

func at(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

// DeletionOf returns the row of what the deletions of a user cover, made now.
func DeletionOf(app, user string, t affinity.Tombstone, now time.Time) Deletion {
	return Deletion{app, user, at(t.DeletedUntil), at(max(t.ReceivedUntil, t.DeletedUntil)), at(now.UnixMilli())}
}

// Message returns the JSON of the row. It is far below the ten megabytes that Pub/Sub and BigQuery take: an
// event has at most event.MaxBody bytes, which quoting doubles, and event.MaxCountedBytes of filters beside those of
// one object.
func (e Event) Message() ([]byte, error) { return encode(e) }

// Message returns the JSON of the row.
func (d Deletion) Message() ([]byte, error) { return encode(d) }

func encode(row any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(row); err != nil {
		return nil, fmt.Errorf("encode a row for the warehouse: %w", err)
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), nil
}
