package api

import (
	"encoding/json"

	"github.com/affinityengine/affinity/shared/event"
)

// GET /1/dump answers with a page of all that an app has, in lines of ExportLine. The
// lines of all pages together, one after the other, are a dump: the app's settings, the
// objects of its indexes, its kept reports, who was deleted or has opted out, every event in the retention,
// and once more who was deleted or has opted out, so that a dump that takes hours knows of
// those who were deleted during that time. Beside these last ones are the links of tokens. The last
// line of each page says how to ask for the next one, and the last line of a dump is an ExportEnd.

// ExportedApp is the first line of a dump.
type ExportedApp struct {
	App  string `json:"app"`
	AsOf Time   `json:"asOf"`
	// RetentionDays, Segments, BrowserRanking, Consistency, Identity and Purposes are what the operator of the
	// app has set. No route sets them.
	RetentionDays  int    `json:"retentionDays"`
	Segments       bool   `json:"segments"`
	BrowserRanking bool   `json:"browserRanking"`
	Consistency    string `json:"consistency"`
	// Identity is there if the operator has changed it.
	Identity *AppIdentity `json:"identity,omitempty"`
	Purposes []AppPurpose `json:"purposes,omitempty"`
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

// ExportedConsents are what a user has said of purposes of the app.
type ExportedConsents struct {
	UserToken string            `json:"userToken"`
	Purposes  []ExportedConsent `json:"purposes"`
}

// ExportedConsent is what a user has said of a purpose.
type ExportedConsent struct {
	Name string `json:"name"`
	// Granted is nil if the user has taken the answer back.
	Granted *bool `json:"granted,omitempty"`
	AskedAt Time  `json:"askedAt"`
	// Since is when the purpose last changed between granted and not. Events from before, and those received up to
	// ReceivedUntil, do not count for it. Both are nil if it never changed.
	Since         *Time `json:"since,omitempty"`
	ReceivedUntil *Time `json:"receivedUntil,omitempty"`
}

// ExportedReport is a kept report of an experiment.
type ExportedReport struct {
	Experiment string `json:"experiment"`
	// Month is that of a report of a month, such as 2026-11. Absent: it is the last report.
	Month      string `json:"month,omitempty"`
	Definition string `json:"definition"`
	Job        string `json:"job"`
	AsOf       Time   `json:"asOf"`
	// Reports are those of each metric, Exposed those of the people whom an arm has answered, and Metric is the one that
	// decides.
	Metric  string                     `json:"metric"`
	Reports map[string]json.RawMessage `json:"reports"`
	Exposed map[string]json.RawMessage `json:"exposed"`
}

// ExportedLinks are the links of a token, as its row has them.
type ExportedLinks struct {
	UserToken string `json:"userToken"`
	// Role is "anonymous", with Entries, or "known", with Tokens.
	Role    string              `json:"role"`
	Entries []ExportedLinkEntry `json:"entries,omitempty"`
	// DeletedUntil and ReceivedUntil are those of the deletion of an anonymous token, if it was deleted.
	DeletedUntil  *Time `json:"deletedUntil,omitempty"`
	ReceivedUntil *Time `json:"receivedUntil,omitempty"`
	// OptedOutBy is the user whose opt-out has taken the anonymous token along, "" for none.
	OptedOutBy string           `json:"optedOutBy,omitempty"`
	Tokens     []ExportedLinked `json:"tokens,omitempty"`
}

// ExportedLinkEntry is a link of an anonymous token, or what is left of one.
type ExportedLinkEntry struct {
	AuthenticatedUserToken string `json:"authenticatedUserToken"`
	// State is "live"; "void" of a link that was undone, or "dead" of one whose user was deleted.
	State string `json:"state"`
	// Since and To are as in Link, From and ReceivedAt the time and the receipt of the evidence.
	Since      Time  `json:"since"`
	To         *Time `json:"to,omitempty"`
	From       Time  `json:"from"`
	ReceivedAt Time  `json:"receivedAt"`
	// Strength and By are as in Link. Evidence is the ID of the event, the messageId of the call, or the reason of
	// the request.
	Strength string `json:"strength"`
	By       string `json:"by"`
	Evidence string `json:"evidence,omitempty"`
	// Key is the ID of the key that the evidence came with.
	Key string `json:"key,omitempty"`
	// Limited says that the link was closed because the user had too many tokens.
	Limited bool `json:"limited,omitempty"`
	// DeletedUntil and ReceivedUntil are, of a dead one, those of the user's deletion. Evidence of a void one that was
	// received up to ReceivedUntil links no more.
	DeletedUntil  *Time `json:"deletedUntil,omitempty"`
	ReceivedUntil *Time `json:"receivedUntil,omitempty"`
	// Was is the end of a dead one before the deletion; nil: it was open.
	Was *Time `json:"was,omitempty"`
}

// ExportedLinked is a token of a known user.
type ExportedLinked struct {
	UserToken string `json:"userToken"`
	At        Time   `json:"at"` // of the newest evidence
	// Shut is when the limit of tokens has closed the link, nil if it has not.
	Shut *Time `json:"shut,omitempty"`
}

// ExportNext is the last line of a page that others follow.
type ExportNext struct {
	// Cursor is the query parameter cursor of the next page. It stays valid.
	Cursor string `json:"cursor"`
}
