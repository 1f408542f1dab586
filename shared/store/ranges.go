package store

import (
	"net/url"
	"strings"

	"cloud.google.com/go/bigtable"

	"github.com/affinityengine/affinity/shared/score/schema"
)

// Range is a range of an app's users, or of its log, in the order of their keys:
// it includes From and excludes To. Each end is a place: a user token, which
// stands for the start of that user's row or log, or the result of Entry.After.
// An empty end is open.
type Range struct{ From, To string }

// Within returns the user in whose log the range begins. It returns "" if the
// range begins with the first event of a user.
func (r Range) Within() string {
	user, _, within := strings.Cut(r.From, ",")
	if !within {
		return ""
	}
	return user
}

// keys returns the log's rows in the range. False means that the range is empty.
func (r Range) keys(app string) (bigtable.RowRange, bool) {
	from, to := r.ends(app)
	return bigtable.NewRange(from, to), from < to
}

// ends returns the key of the log that the range starts at, and the one that it ends
// before.
func (r Range) ends(app string) (from, to string) {
	from, to = placeKey(app, r.From), prefixEnd(app+",")
	if r.To != "" {
		to = placeKey(app, r.To)
	}
	return from, to
}

// escapedPlace starts a place that is escaped. No user token contains it.
const escapedPlace = "%"

// placeKey returns the key at which a place begins. A user token contains no
// comma; every other place does.
func placeKey(app, place string) string {
	if escaped, ok := strings.CutPrefix(place, escapedPlace); ok {
		if plain, err := url.QueryUnescape(escaped); err == nil {
			return app + "," + plain
		}
	}
	if place == "" || strings.Contains(place, ",") {
		return app + "," + place
	}
	return userKey(app, place)
}

// usersBetween returns the rows of the users from one user up to, but not
// including, another. An empty end is open.
func usersBetween(app, from, to string) bigtable.RowRange {
	first, end := app+",", prefixEnd(app+",")
	if from != "" {
		first = userKey(app, from)
	}
	if to != "" {
		end = userKey(app, to)
	}
	return bigtable.NewRange(first, end)
}

// UserRange is a range of one user's log. It includes From and excludes To.
// schema.End lies after every event. A range that does not end after its start is
// empty.
type UserRange struct {
	User     string
	From, To schema.Pos
}

// keys returns the keys that the range starts at and ends before.
func (r UserRange) keys(app string) (from, to string) {
	key := func(p schema.Pos) string {
		switch { // a key can hold the time of every event
		case p.Time < 0:
			return userKey(app, r.User)
		case p.Time > maxTime:
			return prefixEnd(userKey(app, r.User))
		}
		return logKey(app, r.User, p.Time, p.ID)
	}
	return key(r.From), key(r.To)
}

// prefixEnd returns the first key after all keys with a prefix. The prefix must
// end in an ASCII character.
func prefixEnd(prefix string) string {
	return prefix[:len(prefix)-1] + string(prefix[len(prefix)-1]+1)
}
