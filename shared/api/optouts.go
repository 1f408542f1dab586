package api

import "github.com/affinityengine/affinity/shared/event"

// OptOutRequest is the body of PUT /1/optouts/{userToken}. No body is an empty one.
type OptOutRequest struct {
	// EventTypes are the types of events that the user is out of: view, click,
	// conversion. Empty: all.
	EventTypes []event.Type `json:"eventTypes,omitempty"`
}

// OptOut is the answer of PUT, DELETE and GET /1/optouts/{userToken}.
type OptOut struct {
	UserToken string `json:"userToken"`
	// OptedOut is whether the user is out of some type of events.
	OptedOut bool `json:"optedOut"`
	// EventTypes are these types. A user who is out of view, click and conversion is
	// unknown.
	EventTypes []event.Type `json:"eventTypes"`
	// DeletedUntil is the time up to which no event of the user counts, as DeletedUser
	// has it; absent if the user never opted out and was never deleted.
	DeletedUntil *Time `json:"deletedUntil,omitempty"`
}
