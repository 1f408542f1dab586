package api

import "encoding/json"

// FeedQuery are the query parameters of a page of a feed.
type FeedQuery struct {
	// User is for the order suggested. "" gives the order of a user without events.
	User string
	// Limit is how many items the page has at most, 1 to MaxFeedItems. 0 stands for
	// DefaultFeedItems.
	Limit int
	// Cursor is that of the page before. "" begins a walk.
	Cursor string
	// Format is FormatRecords, FormatIDs, or "" for that of the feed's definition.
	Format string
	// Exclude are up to MaxExcluded objectIDs that the page does not have. Name them for every page of a walk.
	Exclude []string
}

// The orders of a feed.
const (
	OrderSuggested = "suggested" // by the user's profile
	OrderLatest    = "latest"    // by date, the newest first
)

// The formats of a feed's items.
const (
	FormatRecords = "records" // the records as they were stored
	FormatIDs     = "ids"     // their objectIDs
	// FormatWordPress answers the list of posts alone, as WordPress gave them.
	FormatWordPress = "wordpress"
)

// FeedPage is the answer of GET /1/feeds/{name}/suggested and /latest.
type FeedPage struct {
	Feed  string `json:"feed"`
	Order string `json:"order"`
	// Items are records, or objectIDs.
	Items []json.RawMessage `json:"items"`
	// Cursor is for the next page. nil: this page is the last one.
	Cursor *string `json:"cursor"`
	// AsOf is when the records of the feed were listed.
	AsOf Time `json:"asOf"`
	// Fallback is FallbackPopularity or FallbackCatalog if the order knows nothing of the
	// user.
	Fallback *string `json:"fallback"`
	// Person is true if the order is that of the user who has signed in under the userToken.
	Person bool `json:"person,omitempty"`
	// Experiment is the arm whose order it is; nil: none.
	Experiment *InArm `json:"experiment,omitempty"`
}
