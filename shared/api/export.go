package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// ExportLine is a line of GET /1/export/{userToken}, or of GET /1/dump. One member is
// there. The lines of an export can be imported: the events are as they were, and the other
// lines are skipped or, if they say that something is missing, refused. `affinity restore`
// restores a dump.
type ExportLine struct {
	User    *ExportedUser  `json:"exportedUser,omitempty"`    // the first line
	Profile *Profile       `json:"exportedProfile,omitempty"` // the second one
	Link    *Link          `json:"exportedLink,omitempty"`    // of the tokens of the user; an import skips it
	Event   *ExportedEvent `json:"exportedEvent,omitempty"`
	Fault   *ExportedFault `json:"exportedFault,omitempty"` // in place of an event
	End     *ExportEnd     `json:"exportEnd,omitempty"`     // the last line of a complete export
	Cut     *Message       `json:"exportCut,omitempty"`     // the last line of another one

	// The others are lines of dumps alone.

	App      *ExportedApp      `json:"exportedApp,omitempty"` // the first line
	Strategy json.RawMessage   `json:"exportedStrategy,omitempty"`
	Settings *ExportedSettings `json:"exportedSettings,omitempty"`
	// TrackNames are the types that the app has given names of track calls.
	TrackNames *TrackNames       `json:"exportedTrackNames,omitempty"`
	Feed       *ExportedFeed     `json:"exportedFeed,omitempty"`
	Segment    *ExportedSegment  `json:"exportedSegment,omitempty"`
	Object     *ExportedObject   `json:"exportedObject,omitempty"`
	Deletion   *ExportedDeletion `json:"exportedDeletion,omitempty"`
	Consents   *ExportedConsents `json:"exportedConsents,omitempty"`
	Links      *ExportedLinks    `json:"exportedLinks,omitempty"`
	Report     *ExportedReport   `json:"exportedReport,omitempty"`
	Next       *ExportNext       `json:"exportNext,omitempty"` // the last line of a page, unless it is the last page
}

// ExportedUser says whose events follow.
type ExportedUser struct {
	App       string `json:"app"`
	UserToken string `json:"userToken"`
	AsOf      Time   `json:"asOf"`
	// RetentionDays is for how long events count, 0 for ever.
	RetentionDays int `json:"retentionDays"`
	// DeletedUntil is up to which time of receipt events are deleted; nil: none are.
	DeletedUntil *Time `json:"deletedUntil"`
	// OptedOut are the types of events that the user has opted out of.
	OptedOut []string `json:"optedOut"`
	// Consents are what holds for the user and each purpose of the app; absent if it has none.
	Consents []UserPurpose `json:"consents,omitempty"`
	// Exposures are the arms of experiments that have answered for the user.
	Exposures []ExportedExposure `json:"exposures,omitempty"`
}

// ExportedExposure says when an arm of an experiment first answered for a user.
type ExportedExposure struct {
	Experiment string `json:"experiment"` // HoldoutExperiment: the holdout
	Since      Time   `json:"since"`      // when the experiment began
	Arm        string `json:"arm"`
	At         Time   `json:"at"`
}

// ExportedEvent is an event of the log.
type ExportedEvent struct {
	// Time is the time of the event in the log, in milliseconds since the epoch.
	Time int64 `json:"time"`
	// ID names the event among those of its user and time.
	ID         string `json:"id"`
	ReceivedAt Time   `json:"receivedAt"`
	// Index is that of an event that does not name one itself.
	Index string `json:"index,omitempty"`
	// UnknownObjects are those of its objects that the catalog did not know, and
	// LeftOutObjects those that do not count because all together have too many filters.
	UnknownObjects int `json:"unknownObjects,omitempty"`
	LeftOutObjects int `json:"leftOutObjects,omitempty"`
	// Unresolved says that the filters have to be read from the catalog. Only events of
	// an archive are.
	Unresolved bool `json:"unresolved,omitempty"`
	// Call says that the event is a call of an SDK, and that an import with receipts=kept
	// remembers its time: later deliveries of the call take it.
	Call bool `json:"call,omitempty"`
	// Purposes are those for which the event counts, in an export of a user whose app has purposes. An import ignores
	// them: the consents of its app decide.
	Purposes []string `json:"purposes,omitempty"`
	// Filters are what the event counts for. nil: those that the event itself names.
	Filters []ExportedFilter `json:"filters,omitzero"`
	// Event is the event as the client sent it.
	Event json.RawMessage `json:"event"`
}

// ExportedFilter is a filter with the number of the event's objects that have it: a
// list ["color","Red",2] in JSON.
type ExportedFilter struct {
	Facet, Value string
	N            int
}

// MarshalJSON writes the list.
func (f ExportedFilter) MarshalJSON() ([]byte, error) {
	return json.Marshal([3]any{f.Facet, f.Value, f.N})
}

// UnmarshalJSON reads the list.
func (f *ExportedFilter) UnmarshalJSON(b []byte) error {
	return f.UnmarshalJSONFrom(jsontext.NewDecoder(bytes.NewBuffer(b)))
}

// UnmarshalJSONFrom reads the list.
func (f *ExportedFilter) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	for i, kind := range []jsontext.Kind(`[""0]`) {
		token, err := d.ReadToken()
		if err == nil && token.Kind() != kind {
			err = errFilter
		}
		switch {
		case err != nil:
			return err
		case i == 1:
			f.Facet = token.String()
		case i == 2:
			f.Value = token.String()
		case i == 3:
			if f.N, err = strconv.Atoi(token.String()); err != nil {
				return errFilter
			}
		}
	}
	return nil
}

var errFilter = errors.New(`a filter must be a list ["facet","value",number]`)

// ExportedFault is an event of the log that cannot be read.
type ExportedFault struct {
	UserToken string `json:"userToken,omitempty"` // in a dump, and of another token than the exported user's
	Time      int64  `json:"time"`
	ID        string `json:"id"`
}

// ExportEnd says that an export is complete.
type ExportEnd struct {
	// Events and Faults are the numbers of lines of events, and of those that cannot
	// be read.
	Events int `json:"events"`
	Faults int `json:"faults"`
	// Objects is the number of lines of objects in a dump.
	Objects int `json:"objects,omitempty"`
}
