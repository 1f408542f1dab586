package api

import "encoding/json"

// AuditRequest is the body of POST /1/audits, which may be empty.
type AuditRequest struct {
	// Sample is how many users to compare, 1 to MaxAuditSample, chosen at random;
	// absent: DefaultAuditSample.
	Sample *int `json:"sample,omitempty"`
}

// Audit is the answer of POST /1/audits: what was compared, and what is not as the
// formula makes it of the log. It comes after a minute at the latest.
type Audit struct {
	Sampled int `json:"sampled"`
	// Compared is less than Sampled if the minute was up.
	Compared int `json:"compared"`
	// Stored counts the compared users whose stored profile could be served and was
	// compared too.
	Stored int `json:"stored"`
	// Events counts the events of the compared users.
	Events int `json:"events"`
	// ByScorer counts users with more than 200,000 events, who are compared with a
	// scorer over the log in place of the reference.
	ByScorer int `json:"byScorer"`
	// Differing counts users with differences.
	Differing int `json:"differing"`
	// Differences are at most MaxAuditReport; Omitted counts the others.
	Differences []AuditDifference `json:"differences"`
	Omitted     int               `json:"omitted,omitempty"`
}

// AuditDifference is one thing that is not as the formula makes it of the log.
type AuditDifference struct {
	UserToken string `json:"userToken"`
	// Which is what differs: the "stored" profile, the profile "computed" from
	// blocks and log, or the user's "history", part of which cannot be used.
	Which string `json:"which"`
	// What is wrong: "score"; "missing" or "surplus", an affinity that should or
	// should not be listed; "lastEventAt"; "known"; "damaged".
	What     string `json:"what"`
	Facet    string `json:"facet,omitempty"`
	Value    string `json:"value,omitempty"`
	HalfLife int    `json:"halfLife,omitempty"` // days, of a score
	// Want is what the log says, Got what was found: a number, a time or a truth.
	Want json.RawMessage `json:"want,omitempty"`
	Got  json.RawMessage `json:"got,omitempty"`
}
