package links

import (
	"fmt"
	"maps"
	"slices"
)

// reasons say in words why a link is refused.
var reasons = map[Reason]string{
	TokenIsKnown:    "the userToken has been named as an authenticatedUserToken before, and is no anonymous one",
	UserIsAnonymous: "the authenticatedUserToken has been linked as an anonymous token before",
	TooLate:         "the userToken has been linked by later evidence",
	Unlinked:        "the tokens were unlinked after this evidence was received",
	Deleted:         "one of the two was deleted after this evidence was received",
	OptedOut:        "one of the two has opted out of all events",
	Shared:          fmt.Sprintf("%d users have signed in under the userToken within 30 days", MaxOpen),
	Limit:           fmt.Sprintf("the authenticatedUserToken or the userToken has %d links", MaxEntries),
	BadValue:        "one of the tokens stands for no user",
	WeakKey:         "the key stands in web pages, and the app links by the keys of servers alone",
}

// Reasons returns all reasons, in order.
func Reasons() []Reason { return slices.Sorted(maps.Keys(reasons)) }

// Words says what the reason means, "" if there is no such reason.
func (r Reason) Words() string { return reasons[r] }
