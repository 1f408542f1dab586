package api

import (
	"encoding/json"
	"errors"

	"github.com/affinityengine/affinity/shared/score/strategy"
)

// FeedRequest is the body of PUT /1/feeds/{name}: which objects of an index the feed
// shows.
type FeedRequest struct {
	Index string `json:"index"`
	// Date is the attribute that holds an object's date, a dotted path.
	Date string `json:"date"`
	// MaxAgeDays is how old an object may be, 1 to MaxFeedAgeDays. 0: there is no limit.
	MaxAgeDays int `json:"maxAgeDays,omitempty"`
	// Where are conditions that all hold.
	Where     []FeedCondition     `json:"where,omitempty"`
	Diversity *strategy.Diversity `json:"diversity,omitempty"`
	// Seen is "keep", "demote" or "exclude", as in RankRequest. "" is "keep".
	Seen string `json:"seen,omitempty"`
	// Format is "records", "ids" or "wordpress". "" is "records".
	Format string `json:"format,omitempty"`
	// Public lets anybody read the order latest, in the feed's format, at the app's own host.
	Public bool `json:"public,omitempty"`
}

// FeedCondition holds if an object has any of the filters, each facet:value. In JSON
// one filter is a string, several are a list.
type FeedCondition []string

// MarshalJSON encodes a condition.
func (c FeedCondition) MarshalJSON() ([]byte, error) {
	if len(c) == 1 {
		return json.Marshal(c[0])
	}
	return json.Marshal([]string(c))
}

// UnmarshalJSON decodes a condition.
func (c *FeedCondition) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*c = FeedCondition{one}
		return nil
	}
	var several []string
	if json.Unmarshal(b, &several) != nil {
		return errors.New("a condition must be a filter or a list of filters")
	}
	*c = several
	return nil
}

// FeedDefinition is a stored definition.
type FeedDefinition struct {
	Name string `json:"name"`
	// Version is another one after each change.
	Version int64 `json:"version"`
	FeedRequest
}

// Feed is the answer of PUT and GET /1/feeds/{name}.
type Feed struct {
	FeedDefinition
	// Backfill is the job that lists the objects by date. PUT answers null if it is done
	// already.
	Backfill *FeedBackfill `json:"backfill"`
}

// FeedBackfill is the job that lists the objects of an index by date, for those that
// were there before the feed.
type FeedBackfill struct {
	ID    string   `json:"id"`
	State JobState `json:"state"`
	// Objects is how many it has read, Inserted how many of them it has listed.
	Objects  int64 `json:"objects"`
	Inserted int64 `json:"inserted"`
	// Undated is how many objects have no readable date, so that the feed never shows
	// them. It is null until all are read.
	Undated *int64 `json:"undated"`
	// Faulty is how many objects cannot be read.
	Faulty     int64 `json:"faulty,omitempty"`
	StartedAt  Time  `json:"startedAt"`
	FinishedAt *Time `json:"finishedAt"`
	// Error is why it failed or was superseded.
	Error string `json:"error,omitempty"`
}

// Feeds is the answer of GET /1/feeds.
type Feeds struct {
	Feeds []FeedDefinition `json:"feeds"` // by name
}

// DeletedFeed is the answer of DELETE /1/feeds/{name}.
type DeletedFeed struct {
	DeletedAt Time `json:"deletedAt"`
}
