package api

import (
	"encoding/json"

	"github.com/affinityengine/affinity/shared/event"
)

// GET /1/dump answers with a page of all that an app has, in lines of ExportLine. The
// lines of all pages together, one after the other, are a dump: the app's settings, the
// objects of its indexes, who was deleted or has opted out, every event in the retention,
// and once more who was deleted or has opted out, so that a dump that takes hours knows of
// those who were deleted during that time. The last line of each page says how to ask for the
// next one, and the last line of a dump is an ExportEnd.

// ExportedApp is the first line of a dump.
type ExportedApp struct {
	App  string `json:"app"`
	AsOf Time   `json:"asOf"`
	// RetentionDays, Segments, BrowserRanking and Consistency are what the operator of the
	// app has set. No route sets them.
	RetentionDays  int    `json:"retentionDays"`
	Segments       bool   `json:"segments"`
	BrowserRanking bool   `json:"browserRanking"`
	Consistency    string `json:"consistency"`
}

// ExportedSettings are the settings of an index.
type ExportedSettings struct {
	Index    string   `json:"index"`
	Settings Settings `json:"settings"`
}

// ExportedFeed is the definition of a feed.
type ExportedFeed struct {
	Name string      `json:"name"`
	Feed FeedRequest `json:"feed"`
}

// ExportedSegment is a saved segment.
type ExportedSegment struct {
	Name  string           `json:"name"`
	Where SegmentCondition `json:"where"`
}

// ExportedObject is an object of an index, as the client sent it.
type ExportedObject struct {
	Index  string          `json:"index"`
	Object json.RawMessage `json:"object"`
}

// ExportedDeletion says which events of a user do not count: those up to a time, those
// received up to a time, and those of types that the user has opted out of.
type ExportedDeletion struct {
	UserToken     string       `json:"userToken"`
	DeletedUntil  Time         `json:"deletedUntil"`
	ReceivedUntil Time         `json:"receivedUntil"`
	OptedOut      []event.Type `json:"optedOut,omitempty"`
}

// ExportNext is the last line of a page that others follow.
type ExportNext struct {
	// Cursor is the query parameter cursor of the next page. It stays valid.
	Cursor string `json:"cursor"`
}
