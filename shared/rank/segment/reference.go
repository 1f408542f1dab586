package segment

import "github.com/affinityengine/affinity/shared/score/affinity"

// Reference finds the users of a segment as the definition reads: it judges every
// profile. Profiles are as of at (ms). It returns the users in order.
func Reference(q *Query, profiles map[string]affinity.Profile, at int64) []User {
	var users []User
	for token, p := range profiles {
		if score, ok := q.Holds(p); ok {
			users = append(users, User{Order: q.Order(score, at), Token: token, Part: -1})
		}
	}
	return Page(users, len(users))
}
