package api

// LinkRequest is the body of POST /1/identities/link.
type LinkRequest struct {
	// UserToken is the anonymous token, AuthenticatedUserToken that of the user who has signed in under it.
	UserToken              string `json:"userToken"`
	AuthenticatedUserToken string `json:"authenticatedUserToken"`
	// Reason is kept with the link; at most MaxLinkReason bytes.
	Reason string `json:"reason,omitempty"`
}

// MaxLinkEvents is up to how many events of a link are counted.
const MaxLinkEvents = 10_000

// MaxLinkReason is the largest size of a reason, in bytes.
const MaxLinkReason = 200

// Identity is the answer of GET /1/identities/{userToken} and of POST /1/identities/link: what the
// engine knows of the links of a token.
type Identity struct {
	UserToken string `json:"userToken"`
	// Role is "anonymous", "known", or "none" for a token that no event has named beside another one.
	// It never changes again.
	Role string `json:"role"`
	// Links are those of an anonymous token, oldest first, and of a known one those that name it.
	Links []Link `json:"links"`
}

// Limits of GET /1/identities.
const (
	DefaultLinks = 100
	MaxLinks     = 1000
)

// LinksQuery are the query parameters of GET /1/identities. "" takes all links.
type LinksQuery struct {
	// Day is the UTC day on which the engine received the evidence, such as 2026-11-22.
	Day string
	// Strength, By, State and Key are those of Link.
	Strength, By, State, Key string
	// Limit is how many links a page lists, at most MaxLinks. 0: DefaultLinks.
	Limit int
	// Cursor is that of the page before. "": the first page.
	Cursor string
}

// Links is the answer of GET /1/identities: links of an app, in the order in which their anonymous tokens are stored.
type Links struct {
	// Links are without Events. Those of a token are on one page, oldest first, which may have more than Limit for them.
	Links []Link `json:"links"`
	// Faulty are tokens whose links cannot be read.
	Faulty []string `json:"faulty,omitempty"`
	// Cursor leads to the next page; absent on the last one. A page may have fewer links than asked for, or none,
	// and still a next one: a request looks at so many users at most.
	Cursor string `json:"cursor,omitempty"`
}

// Link says that the events of an anonymous token in an interval of time count for a known user.
type Link struct {
	UserToken              string `json:"userToken"`
	AuthenticatedUserToken string `json:"authenticatedUserToken"`
	// Since and To bound the times of the events: from Since on, before To. To is absent while the link is open.
	Since Time  `json:"since"`
	To    *Time `json:"to,omitempty"`
	// From is when the user signed in: the time of the evidence.
	From Time `json:"from"`
	// State is "open", "closed" by another user's sign-in, "limit" if the known user had too many tokens,
	// "unlinked", or "deleted" if a deletion or an opt-out of one of the two has ended it.
	State string `json:"state"`
	// Strength is "strong", or "weak" for evidence that came with a key which stands in web pages.
	Strength string `json:"strength"`
	// Events is how many events within the retention count for the known user by the link, at most MaxLinkEvents;
	// MoreEvents says that there are more. While links are only collected it is how many would. Absent in an export,
	// in Links, and in the answer of POST /1/identities/link.
	Events     *int `json:"events,omitempty"`
	MoreEvents bool `json:"moreEvents,omitempty"`
	// By is the evidence: "event" of both tokens, "call" of an SDK, or "request" of an admin.
	By string `json:"by"`
	// Event is the ID of the event.
	Event string `json:"event,omitempty"`
	// MessageID is that of the call, if it has one.
	MessageID string `json:"messageId,omitempty"`
	// Reason is that of the request.
	Reason string `json:"reason,omitempty"`
	// Key is the ID of the key that the event or the call came with, as AppKey has it: of a secured key that of its
	// parent. The audit log names the key of a request.
	Key string `json:"key,omitempty"`
}

// Unlinked is the answer of DELETE /1/identities/{userToken}/links/{authenticatedUserToken}.
type Unlinked struct {
	// UnlinkedUntil is the time of receipt up to which evidence links the tokens no more. What is received
	// later may link them again.
	UnlinkedUntil Time `json:"unlinkedUntil"`
}

// Limits of GET /1/identities/refused.
const (
	MaxRefusedLinks     = 100 // of a page
	MaxRefusedLinksDays = 30  // age of what is listed and counted
)

// RefusedLinks is the answer of GET /1/identities/refused: the events that asked for a link between their two
// tokens and got none, in the last MaxRefusedLinksDays days. The events themselves count as ever.
type RefusedLinks struct {
	// Refused are the newest ones, the newest first: of each reason the last 10 at least. Users who were deleted or
	// have opted out are not named.
	Refused []RefusedLink `json:"refused"`
	// Days count all of them, the newest day first; days without any are left out. An event that is delivered again
	// to the engine counts again.
	Days []RefusedLinksDay `json:"days"`
	// Cursor asks for those before the ones of this answer; absent if there are no others.
	Cursor string `json:"cursor,omitempty"`
}

// RefusedLink is an event that asked for a link.
type RefusedLink struct {
	// At is when the engine refused the link.
	At Time `json:"at"`
	// Reason is one word, such as late.
	Reason                 string `json:"reason"`
	UserToken              string `json:"userToken"`
	AuthenticatedUserToken string `json:"authenticatedUserToken"`
	// Time is that of the event, and Event its ID.
	Time  Time   `json:"time"`
	Event string `json:"event"`
}

// RefusedLinksDay counts the links that were refused in a day.
type RefusedLinksDay struct {
	Day    string           `json:"day"` // as 2026-11-22, in UTC
	Counts map[string]int64 `json:"counts"`
}
