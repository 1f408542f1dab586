package shop

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"
)

// HistoryDays is how far back the shop's history goes.
const HistoryDays = 30

// Event is an event as POST /1/events takes it.
type Event struct {
	EventType    string `json:"eventType"`
	EventSubtype string `json:"eventSubtype,omitempty"`
	EventName    string `json:"eventName"`
	Index        string `json:"index"`
	UserToken    string `json:"userToken"`
	// AuthenticatedUserToken is who has signed in; empty: the event does not say.
	AuthenticatedUserToken string   `json:"authenticatedUserToken,omitempty"`
	Timestamp              int64    `json:"timestamp"` // ms since the epoch
	ObjectIDs              []string `json:"objectIDs"`
}

// The steps of a visit.
var (
	viewed  = step{"view", "", "Product Viewed"}
	clicked = step{"click", "", "Product Clicked"}
	carted  = step{"conversion", "addToCart", "Added To Cart"}
	ordered = step{"conversion", "purchase", "Order Completed"}
)

type step struct{ kind, subtype, name string }

func (s step) event(token string, at time.Time, objects ...Object) Event {
	e := Event{EventType: s.kind, EventSubtype: s.subtype, EventName: s.name, Index: Index, UserToken: token,
		Timestamp: at.UnixMilli()}
	for _, o := range objects {
		if !slices.Contains(e.ObjectIDs, o.ObjectID) {
			e.ObjectIDs = append(e.ObjectIDs, o.ObjectID)
		}
	}
	return e
}

// History returns the events of the HistoryDays before now, ordered by time. It
// ends ten minutes before now, where Live begins.
func (s *Shop) History(now time.Time) []Event {
	r := s.random(streamHistory)
	var events []Event
	for _, p := range s.personas {
		for n := range UsersPerPersona {
			seen := map[string]bool{}
			for i, ago := range sessions(r, n) {
				at := now.Add(-ago).Truncate(time.Millisecond)
				taste := s.choices[tasteOf(p.ID, p.phaseAt(ago.Hours()/24), n)]
				made := visit(r, taste, seen, UserToken(p.ID, n), at)
				if n == phoneUser && i%2 == 0 {
					onPhone(made, p.ID)
				}
				events = append(events, made...)
			}
		}
	}
	inOrder(events)
	return events
}

// Live returns count events of the last minutes before now, ordered by time, by
// the regulars of all personas in turn. Each is newer than History(now).
func (s *Shop) Live(now time.Time, count int) []Event {
	r := s.random(streamLive)
	apart := 5 * time.Minute / time.Duration(max(count, 1))
	events := make([]Event, 0, count)
	for i := range count {
		p := s.personas[i%len(s.personas)]
		taste := s.choices[tasteOf(p.ID, len(p.Phases)-1, 0)]
		at := now.Add(-time.Duration(count-1-i) * apart)
		events = append(events, oneOf(r).event(UserToken(p.ID, 0), at, taste.pick(r)))
	}
	return events
}

// onPhone makes a visit of the user of a persona who has a phone one on it: anonymous until its end, when they
// sign in.
func onPhone(events []Event, persona string) {
	for i := range events {
		events[i].UserToken = PhoneToken(persona)
	}
	events[len(events)-1].AuthenticatedUserToken = UserToken(persona, phoneUser)
}

// sessions returns how long ago each visit of a persona's user n was, the first one
// first. The regular comes every other day.
func sessions(r *rand.Rand, n int) []time.Duration {
	const day = 24 * time.Hour
	var ago []time.Duration
	if n == 0 {
		for at := time.Hour; at < HistoryDays*day-time.Hour; at += 2 * day {
			ago = append(ago, at)
		}
		slices.Reverse(ago)
		return ago
	}
	for range 2 + r.IntN(5) {
		ago = append(ago, time.Hour+time.Duration(r.Int64N(int64(HistoryDays*day-2*time.Hour))))
	}
	slices.SortFunc(ago, func(a, b time.Duration) int { return cmp.Compare(b, a) })
	return ago
}

// visit is one session of at most 20 minutes: views of products, fewer clicks,
// fewer additions to the cart, and sometimes an order of the cart. It ends with a
// look at something else, so a backtest has a next object to predict for nearly
// everybody. seen holds the objects of the user's visits, and gets those of this one.
func visit(r *rand.Rand, taste *choice, seen map[string]bool, token string, at time.Time) []Event {
	var events []Event
	var cart []Object
	do := func(s step, objects ...Object) {
		events = append(events, s.event(token, at, objects...))
		at = at.Add(5*time.Second + time.Duration(r.Int64N(int64(30*time.Second))).Truncate(time.Millisecond))
	}
	for range 1 + r.IntN(5) {
		o := taste.pickNew(r, seen)
		do(viewed, o)
		if r.Float64() < 0.5 {
			do(clicked, o)
			if r.Float64() < 0.4 {
				do(carted, o)
				cart = append(cart, o)
			}
		}
	}
	if len(cart) > 0 && r.Float64() < 0.6 {
		do(ordered, cart...)
	}
	do(viewed, taste.pickNew(r, seen))
	return events
}

// oneOf chooses a step by its frequency.
func oneOf(r *rand.Rand) step {
	switch p := r.Float64(); {
	case p < 0.55:
		return viewed
	case p < 0.85:
		return clicked
	case p < 0.95:
		return carted
	default:
		return ordered
	}
}

func inOrder(events []Event) {
	slices.SortStableFunc(events, func(a, b Event) int {
		return cmp.Or(cmp.Compare(a.Timestamp, b.Timestamp), cmp.Compare(a.UserToken, b.UserToken))
	})
}
