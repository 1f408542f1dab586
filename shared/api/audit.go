package api

import "encoding/json"

// AuditRequest is the body of POST /1/audits, which may be empty.
type AuditRequest struct {
	// Sample is how many users to compare, 1 to MaxAuditSample, chosen at
	// random; absent: DefaultAuditSample.
	Sample *int `json:"sample,omitempty"`
}

// Audit is the answer of POST /1/audits, after a minute at the latest: which
// users were compared, and where a profile differs from the formula applied to
// the log.
type Audit struct {
	Sampled int `json:"sampled"`
	// Compared is less than Sampled if the audit ran out of time.
	Compared int `json:"compared"`
	// Stored counts the compared users who had a stored profile that a read
	// would serve. It was compared too.
	Stored int `json:"stored"`
	// Events counts the events of the compared users.
	Events int `json:"events"`
	// ByScorer counts users with more than 200,000 events. A scorer over the
	// log replaces the reference for them.
	ByScorer int `json:"byScorer"`
	// TooLarge counts users with more than 100,000 values, who are not compared.
	TooLarge int `json:"tooLarge,omitempty"`
	// Differing counts users with differences.
	Differing int `json:"differing"`
	// Differences are at most MaxAuditReport; Omitted counts the others.
	Differences []AuditDifference `json:"differences"`
	Omitted     int               `json:"omitted,omitempty"`
}

// AuditDifference is one difference between a profile and the log.
type AuditDifference struct {
	UserToken string `json:"userToken"`
	// Which is what differs: the "stored" profile, the profile "computed" from
	// blocks and log, or the user's "history", part of which cannot be used.
	Which string `json:"which"`
	// What is wrong: "score"; "missing" or "surplus", an affinity that should
	// or should not be listed; "lastEventAt"; "known"; "damaged".
	What     string   `json:"what"`
	Facet    string   `json:"facet,omitempty"`
	Value    string   `json:"value,omitempty"`
	HalfLife HalfLife `json:"halfLife,omitzero"` // of a score
	// Want is the value according to the log, and Got the value that was found:
	// a number, a time, true or false.
	Want json.RawMessage `json:"want,omitempty"`
	Got  json.RawMessage `json:"got,omitempty"`
}
