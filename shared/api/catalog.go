package api

import (
	"encoding/json"
	"time"
)

// The actions of a batch.
const (
	ActionAddObject           = "addObject"           // stores a record; without an objectID it gets a random one
	ActionUpdateObject        = "updateObject"        // stores a record, which must have an objectID
	ActionPartialUpdateObject = "partialUpdateObject" // replaces attributes; creates the record if it does not exist
	// ActionPartialUpdateObjectNoCreate replaces attributes of a record that
	// exists.
	ActionPartialUpdateObjectNoCreate = "partialUpdateObjectNoCreate"
	ActionDeleteObject                = "deleteObject" // removes a record
	ActionClear                       = "clear"        // removes all records of the index
)

// BatchRequest is the body of POST /1/indexes/{index}/batch: at most MaxActions
// actions in MaxCatalogBody bytes. The actions apply in their order, all or
// none: a bad one refuses the batch. To add and update, the key needs the permission
// addObject; to delete and clear, it needs deleteObject.
type BatchRequest struct {
	Requests []BatchAction `json:"requests"`
}

// BatchAction is one step of a batch.
type BatchAction struct {
	Action string `json:"action"`
	// ObjectID names the object, as a string or a number of at most MaxObjectID
	// bytes; it may also be in Body.
	ObjectID any `json:"objectID,omitempty"`
	// Body is the record, or the attributes to replace: a JSON object of at
	// most MaxRecord bytes. Unused by deleteObject and clear.
	Body json.RawMessage `json:"body,omitempty"`
}

// BatchAnswer is the answer of POST /1/indexes/{index}/batch. The batch is
// applied before it is answered.
type BatchAnswer struct {
	// ObjectIDs are the objects of the actions, in their order, without clears.
	ObjectIDs []string `json:"objectIDs"`
	// TaskID is for clients that wait for a task. The task is always finished.
	TaskID int64 `json:"taskID"`
	// NotNumbers counts, by facet with numeric bands, the values of the objects that are
	// left out because they are no numbers. Without any it is absent.
	NotNumbers map[string]int `json:"notNumbers,omitzero"`
	// Dropped counts, by facet that the settings of the index name, the objects that have no
	// filters of it, because a value has over 1,000 bytes, or there are over 1,000 values.
	// Without any it is absent.
	Dropped map[string]int `json:"dropped,omitzero"`
}

// TaskAnswer is the answer of GET /1/indexes/{index}/task/{taskID}: the task is
// always finished.
type TaskAnswer struct {
	PendingTask bool   `json:"pendingTask"` // false
	Status      string `json:"status"`      // "published"
}

// ObjectsQuery says which objects GET /1/indexes/{index} lists.
type ObjectsQuery struct {
	Filter string // those that have it, such as brand:Acme; empty: all
	Limit  int    // 1 to MaxObjects; 0: DefaultObjects
	Cursor string // of the answer before; empty: from the first on
}

// Objects is a page of the objects of an index, in the order of the bytes of their objectIDs.
type Objects struct {
	ObjectIDs []string `json:"objectIDs"`
	// Cursor begins the next page; empty: this is the last one. A page with a filter may be short
	// before the end, since the engine reads up to MaxObjectsRead objects for it.
	Cursor string `json:"cursor,omitempty"`
}

// DeletedObject is the answer of DELETE /1/indexes/{index}/{objectID}, even if
// the object did not exist.
type DeletedObject struct {
	DeletedAt time.Time `json:"deletedAt"`
	TaskID    int64     `json:"taskID"`
}

// Settings are the settings of an index: the answer of
// GET /1/indexes/{index}/settings and the body of PUT, which ignores all other
// keys.
type Settings struct {
	// AttributesForFaceting are the attributes that become filters, by their
	// dotted paths, at most MaxFacetsDeclared of MaxFacet bytes. searchable(x),
	// filterOnly(x) and afterDistinct(x) mean x. If it was never set, it is
	// absent, and every attribute with short values becomes filters. A PUT
	// without it does not change it.
	AttributesForFaceting []string `json:"attributesForFaceting,omitzero"`
	// PrivateFacets are the facets that no boost shows, in the same form, at most
	// MaxPrivateFacets. They score as others do. A facet is private for the whole
	// app if any of its indexes lists it. A change holds after at most 5 seconds. If
	// the index lists none, they are absent. A PUT without them does not change them.
	PrivateFacets []string `json:"privateFacets,omitzero"`
	// NumericBands are, by facet, the ascending numbers at which one band of numbers ends
	// and the next begins, at most MaxBandedFacets facets of MaxBandLimits numbers. The
	// filters of the facet then name bands: [0,50,100] gives <0, 0-50, 50-100 and 100+,
	// each from its first number and below its second. A value that is no number, and no
	// string that holds one, gives none. A facet must be one of AttributesForFaceting, if these were set. A
	// change starts a re-enrichment of the events in the log. Without any they are
	// absent. A PUT without them does not change them.
	NumericBands map[string][]float64 `json:"numericBands,omitzero"`
}

// SettingsAnswer is the answer of PUT /1/indexes/{index}/settings.
type SettingsAnswer struct {
	TaskID    int64     `json:"taskID"`
	UpdatedAt time.Time `json:"updatedAt"`
}
