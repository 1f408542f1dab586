package api

import "encoding/json"

// AuditRequest is the body of POST /1/audits, which may be empty.
type AuditRequest struct {
	// Sample is how many users to compare, 1 to MaxAuditSample, chosen at
	// random; absent: DefaultAuditSample.
	Sample *int `json:"sample,omitempty"`
	// Segments compares answers about segments with the profiles of the sample, and not
	// profiles with the log. The app must have segments on.
	Segments bool `json:"segments,omitempty"`
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
	// Segments is there if the request has Segments. Of the others only Sampled, Compared
	// and Differing then say something.
	Segments *SegmentsAudit `json:"segments,omitempty"`
}

// SegmentsAudit says how answers about segments compare with profiles.
type SegmentsAudit struct {
	// Planned is how many conditions the audit has made of what profiles hold, and
	// Conditions how many it compared before the time was up.
	Planned    int `json:"planned"`
	Conditions int `json:"conditions"`
	// Judged counts pairs of a condition and a user whose profile was read.
	Judged int `json:"judged"`
	// Differences are at most MaxAuditReport; Omitted counts the others.
	Differences []SegmentsDifference `json:"differences"`
	Omitted     int                  `json:"omitted,omitempty"`
}

// SegmentsDifference is one difference between an answer and a profile.
type SegmentsDifference struct {
	Where json.RawMessage `json:"where"` // the condition
	// UserToken is absent if What is "total".
	UserToken string `json:"userToken,omitempty"`
	// What is wrong: "missing" or "surplus", a user who should or should not be found;
	// "twice"; "score"; "total", if an answer counts other users than it names.
	What string `json:"what"`
	// Want is the score by the profile or the number of users named, and Got that of the answer.
	Want float64 `json:"want,omitempty"`
	Got  float64 `json:"got,omitempty"`
}

// AuditDifference is one difference between a profile and the log.
type AuditDifference struct {
	UserToken string `json:"userToken"`
	// Region is where the user is, if each user of the app lives in a region of their own.
	Region string `json:"region,omitempty"`
	// Which is what differs: the "stored" profile, the profile "computed" from
	// blocks and log, the user's "history", part of which cannot be used, the "log", or the "links" between tokens.
	Which string `json:"which"`
	// What is wrong: "score"; "missing" or "surplus", an affinity that should
	// or should not be listed; "lastEventAt"; "known"; "damaged"; of links "overlap", two that hold the same instant,
	// and "unlisted", one to a user who does not know of it.
	What     string   `json:"what"`
	Facet    string   `json:"facet,omitempty"`
	Value    string   `json:"value,omitempty"`
	HalfLife HalfLife `json:"halfLife,omitzero"` // of a score
	// Want is the value according to the log, and Got the value that was found:
	// a number, a time, true or false.
	Want json.RawMessage `json:"want,omitempty"`
	Got  json.RawMessage `json:"got,omitempty"`
}
