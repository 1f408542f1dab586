package usage

import (
	"cmp"
	"container/heap"
	"slices"
	"time"
)

// sketchUsers is the number of users that a sketch counts. Each user with more than
// a hundredth of the app's events in the process is among them.
const sketchUsers = 100

// hotUsers is the number of users of a sketch that are stored.
const hotUsers = 10

// sketch finds the users with the most events in bounded memory: the space-saving
// algorithm of Metwally, Agrawal and El Abbadi (Efficient Computation of Frequent
// and Top-k Elements in Data Streams, 2005). A user that it does not know replaces
// the one with the fewest events and takes over its count, as an error.
type sketch struct {
	users map[string]*counter
	heap  counters
}

// counter counts a user since a time: at least count-over events, at most count.
type counter struct {
	user        string
	count, over int64
	since       time.Time
	place       int
}

// add counts n events of a user, now.
func (s *sketch) add(user string, n int64, now time.Time) {
	if c, ok := s.users[user]; ok {
		c.count += n
		heap.Fix(&s.heap, c.place)
		return
	}
	if s.users == nil {
		s.users = make(map[string]*counter)
	}
	if len(s.heap) < sketchUsers {
		c := &counter{user: user, count: n, since: now}
		s.users[user] = c
		heap.Push(&s.heap, c)
		return
	}
	c := s.heap[0]
	delete(s.users, c.user)
	c.user, c.over, c.count, c.since = user, c.count, c.count+n, now
	s.users[user] = c
	heap.Fix(&s.heap, 0)
}

// forget drops the users who may have been counted up to the times of their deletions. It
// reports whether there are any.
func (s *sketch) forget(deleted map[string]time.Time) bool {
	found := false
	for user, until := range deleted {
		if c := s.users[user]; c != nil && !c.since.After(until) {
			heap.Remove(&s.heap, c.place)
			delete(s.users, user)
			found = true
		}
	}
	return found
}

// top returns the users with the most events.
func (s *sketch) top() []User {
	var users []User
	for _, c := range s.heap {
		if c.count > c.over {
			users = append(users, User{c.user, c.count - c.over})
		}
	}
	return hottest(users)
}

// hottest sorts users by their events and cuts off all but the first hotUsers.
func hottest(users []User) []User {
	slices.SortFunc(users, func(a, b User) int {
		return cmp.Or(cmp.Compare(b.Events, a.Events), cmp.Compare(a.Token, b.Token))
	})
	return users[:min(len(users), hotUsers)]
}

// Merge returns the hottest of all users, adding up the events of each.
func Merge(users []User) []User {
	events := make(map[string]int64)
	for _, u := range users {
		events[u.Token] += u.Events
	}
	var merged []User
	for token, n := range events {
		merged = append(merged, User{token, n})
	}
	return hottest(merged)
}

// counters is a heap with the smallest count first.
type counters []*counter

func (h counters) Len() int           { return len(h) }
func (h counters) Less(i, j int) bool { return h[i].count < h[j].count }

func (h counters) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

func (h *counters) Push(x any) {
	c := x.(*counter)
	c.place = len(*h)
	*h = append(*h, c)
}

func (h *counters) Pop() any {
	last := len(*h) - 1
	c := (*h)[last]
	*h = (*h)[:last]
	return c
}
