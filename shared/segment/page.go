package segment

// User is a user of a page.
type User struct {
	Order Order
	Token string
	// Part (an index among the manifest's parts) and Ordinal say whose Token it is until
	// it is known. Part is -1 for a user whose profile was read.
	Part    int
	Ordinal uint16
}

// Candidates returns the users who can be on a page of limit users: hits by part, and
// others whose profiles were read. Their tokens decide between equal Orders, so the
// caller looks up the Tokens and calls Page. There are few more of them than limit.
func Candidates(parts []Part, hits [][]Hit, read []User, limit int) []User { return nil }

// Page sorts users with tokens by Order descending, then token, and returns the first
// limit of them.
func Page(users []User, limit int) []User { return nil }

// Cursor says where the next page of a query begins: behind a user.
type Cursor struct {
	Where uint32 // Query.Where
	At    int64  // ms: when the first page was read
	Order Order
	Token string
}

// String returns the cursor for a client. It is opaque.
func (c Cursor) String() string { return "" }

// ParseCursor decodes a cursor for a query, as of an instant (ms). A cursor that is
// damaged, of another condition or older than a day is refused with a *fault.Error.
func ParseCursor(text string, q *Query, now int64) (Cursor, error) { return Cursor{}, nil }

// Passed reports whether a page before the cursor held a user, or would have.
func (c *Cursor) Passed(o Order, token string) bool { return false }
