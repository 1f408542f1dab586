package api

// Limits of GET /1/audit-log.
const (
	// DefaultAuditEntries is how many entries a page has if the request does not say.
	DefaultAuditEntries = 100
	// MaxAuditEntries is how many entries a page has at most.
	MaxAuditEntries = 1_000
	// AuditLogDays is how many days the engine keeps entries.
	AuditLogDays = 400
)

// AuditLogQuery are the query parameters of GET /1/audit-log.
type AuditLogQuery struct {
	// Limit is how many entries to list, 1 to MaxAuditEntries. 0 stands for
	// DefaultAuditEntries.
	Limit int
	// Cursor is that of the page before. "": the first page.
	Cursor string
	// Action lists only entries of that action. "": all.
	Action string
	// UserToken lists only entries about that user. "": all.
	UserToken string
}

// AuditLog is the answer of GET /1/audit-log: changes of the app, the newest first.
type AuditLog struct {
	Entries []AuditLogEntry `json:"entries"`
	// Cursor leads to the next page; absent on the last one. A page may have fewer
	// entries than were asked for, or none, and a cursor: the engine reads at most
	// 10,000 entries for a page.
	Cursor string `json:"cursor,omitempty"`
}

// AuditLogEntry is a change of an app.
type AuditLogEntry struct {
	// ID names the entry.
	ID string `json:"id"`
	// At is when the change began, by the clock of the machine that made it.
	At Time `json:"at"`
	// Actor is the name of the key, or the start of its hash if it has no name, or
	// "operator".
	Actor string `json:"actor"`
	// Action is what was done, such as strategy.set.
	Action string `json:"action"`
	// Subject names what was changed: an index, a job, a key.
	Subject string `json:"subject,omitempty"`
	// User is a keyed hash of the user token that the change is about: of one user
	// always the same, and of no use without the token.
	User string `json:"user,omitempty"`
	// Detail says in a few words what the change was.
	Detail string `json:"detail,omitempty"`
	// Outcome is "done", "failed" or "unknown". After "failed" a part of the change may
	// have been made. "unknown": the engine ended before it could say more.
	Outcome string `json:"outcome"`
	// Trace is the request's trace, which the engine's log lines carry.
	Trace string `json:"trace,omitempty"`
}
