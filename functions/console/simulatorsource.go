package console

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/web/auth"
)

const (
	recentPeople  = 50 // users of recent events among whom the page chooses
	enoughPeople  = 8  // of them, or else it takes users of the list of all
	startPeople   = 10 // users of that list behind each of its starts
	offeredPeople = 12 // of them, tokens that the form offers
	sampleObjects = 12 // objects that the page fills in
	samplePeople  = 4  // people whose events they are from
)

// The sources of a list of objects beside feeds, which are "latest:NAME" and "suggested:NAME".
const (
	fromPeople = "people"
	fromPerson = "person"
	fromValue  = "value"
)

// choose decides whom the page is for and which objects it orders, as far as the form leaves
// that open.
func (s *simulation) choose(v *visit) error {
	f := &s.Form
	needsPeople := f.pick == "active" || f.pick == "random" || f.fill && (f.from == "" || f.from == fromPeople)
	var people []someone
	if needsPeople && v.may(auth.Admin) {
		var err error
		if people, err = listPeople(v, f.pick == "random"); err != nil {
			return fmt.Errorf("list users: %w", err)
		}
	}
	s.pick(v, people)
	if !f.fill {
		return nil
	}
	ids, index, err := s.source(v, people)
	if err != nil {
		return err
	}
	if len(ids) > 0 {
		f.IDs = once(ids)
		f.Index = index
	}
	f.Index = cmp.Or(f.Index, "products")
	return nil
}

// someone is a user among whom the page chooses.
type someone struct {
	token    string
	activity int // a number of events, or of values that they score
}

// starts are where the page begins to read in the list of all users, which is in the order of
// their tokens, so that it meets different ones.
var starts = []string{"", "d", "h", "m", "s"}

// listPeople returns users of recent events or, if there are few, of the list of all users.
func listPeople(v *visit, random bool) ([]someone, error) {
	var all []someone
	recent, err := v.engine.Profiles().RecentUsers(v.Context(), recentPeople)
	if err != nil && !isRefusal(err) {
		return nil, err
	}
	for _, u := range recent.Users {
		all = append(all, someone{u.UserToken, u.Events})
	}
	if len(all) >= enoughPeople {
		return all, nil
	}
	all = nil
	known := map[string]bool{}
	for _, start := range starts {
		if random && start != "" {
			start = strconv.FormatInt(36*10+rand.Int64N(36*26), 36) // a letter and what follows it
		}
		listed, err := v.engine.Profiles().Users(v.Context(), api.UsersQuery{Limit: startPeople, Cursor: start})
		if err != nil && !isRefusal(err) {
			return nil, err
		}
		for _, u := range listed.Users {
			if !known[u.UserToken] {
				known[u.UserToken], all = true, append(all, someone{u.UserToken, u.Total})
			}
		}
	}
	return all, nil
}

// pick chooses a person if the form asks for a kind of person.
func (s *simulation) pick(v *visit, people []someone) {
	f := &s.Form
	for i := range min(offeredPeople, len(people)) {
		s.People = append(s.People, people[i*len(people)/min(offeredPeople, len(people))].token)
	}
	switch {
	case f.pick == "new":
		f.User = ""
	case f.pick != "active" && f.pick != "random":
	case !v.may(auth.Admin):
		s.Missing.People = "A list of users needs a key with the permission admin. Type a user token, or see the " +
			"page as a new person does."
	case len(people) == 0:
		s.Missing.People = "Nobody has an event that counts yet, so this is the order for a new person."
	case f.pick == "active":
		f.User = slices.MaxFunc(people, func(a, b someone) int { return cmp.Compare(a.activity, b.activity) }).token
	case f.pick == "random":
		f.User = people[rand.IntN(len(people))].token
	}
}

// source returns the objects that the form asks to fill in, in the order of today.
func (s *simulation) source(v *visit, people []someone) (ids []string, index string, err error) {
	f := &s.Form
	for _, order := range []string{api.OrderLatest, api.OrderSuggested} {
		if name, ok := strings.CutPrefix(f.from, order+":"); ok {
			return s.feed(v, name, order)
		}
	}
	if f.from == fromValue {
		return s.segment(v, f.Index, f.with)
	}
	users := []string{f.User}
	if f.from != fromPerson {
		others := slices.DeleteFunc(slices.Clone(people), func(u someone) bool { return u.token == f.User })
		n := min(samplePeople-1, len(others))
		for i := range n {
			users = append(users, others[(2*i+1)*len(others)/(2*n)].token)
		}
	}
	var lists [][]string
	for _, user := range users {
		if user == "" {
			continue
		}
		touched, of, err := s.touched(v, user, cmp.Or(f.Index, index))
		if err != nil {
			return nil, "", err
		}
		index = cmp.Or(index, of)
		lists = append(lists, touched)
	}
	if ids = mixed(lists, sampleObjects); len(ids) == 0 && f.from != "" {
		s.Missing.Fill = "No event that counts names an object here, so the list stays as it was."
	}
	return ids, index, nil
}

// feed returns the first objects of a feed.
func (s *simulation) feed(v *visit, name, order string) (ids []string, index string, err error) {
	definition, err := v.engine.Feeds().Get(v.Context(), name)
	if err == nil {
		var page api.FeedPage
		page, err = v.engine.Feeds().Page(v.Context(), name, order, api.FeedQuery{Limit: maxCards, Format: api.FormatIDs})
		for _, item := range page.Items {
			var id string
			if json.Unmarshal(item, &id) == nil {
				ids = append(ids, id)
			}
		}
	}
	switch {
	case isRefusal(err):
		s.Missing.Fill = "The feed cannot be read: " + refusalText(err)
	case err != nil:
		return nil, "", fmt.Errorf("read a feed: %w", err)
	case len(ids) == 0:
		s.Missing.Fill = "The feed is empty, so the list stays as it was."
	}
	return ids, definition.Index, nil
}

// segment returns the first objects of an index that have a value, or any if it is empty.
func (s *simulation) segment(v *visit, index, with string) (ids []string, of string, err error) {
	if index == "" {
		s.Missing.Fill = "Type the index of the objects."
		return nil, "", nil
	}
	objects, err := v.engine.Catalog().List(v.Context(), index, api.ObjectsQuery{Filter: with, Limit: maxCards})
	switch {
	case isRefusal(err):
		s.Missing.Fill = "The objects cannot be listed: " + refusalText(err)
	case err != nil:
		return nil, "", fmt.Errorf("list objects: %w", err)
	case len(objects.ObjectIDs) == 0 && objects.Cursor != "":
		s.Missing.Fill = fmt.Sprintf("None of the first %s objects has this value, so the list stays as it was.",
			number(api.MaxObjectsRead))
	case len(objects.ObjectIDs) == 0:
		s.Missing.Fill = "No object of the index has this value, so the list stays as it was."
	}
	return objects.ObjectIDs, index, nil
}

// touched returns objects of an index that a user's events name, the last ones first: those that
// gave the user's strongest affinity. Without an index it is that of the last event.
func (s *simulation) touched(v *visit, user, index string) (ids []string, of string, err error) {
	profile, err := v.engine.Profiles().Get(v.Context(), user, api.ProfileQuery{Limit: 1})
	if err != nil || len(profile.Affinities) == 0 {
		return nil, "", unlessRefused(err)
	}
	top := profile.Affinities[0]
	why, err := v.engine.Profiles().Explain(v.Context(), user,
		api.ExplainQuery{Facet: top.Facet, Value: top.Value, Limit: 4 * sampleObjects})
	if err != nil || why.ScoreExplanation == nil {
		return nil, "", unlessRefused(err)
	}
	for _, c := range slices.Backward(why.Contributions) {
		if c.ContributedEvent == nil || index != "" && c.Index != index || len(c.ObjectIDs) == 0 {
			continue
		}
		index = c.Index
		ids = append(ids, c.ObjectIDs...)
	}
	return ids, index, nil
}

// unlessRefused returns an error that the page cannot do without.
func unlessRefused(err error) error {
	if err == nil || isRefusal(err) {
		return nil
	}
	return fmt.Errorf("find objects: %w", err)
}

// mixed takes turns among lists, those of others before the first list.
func mixed(lists [][]string, most int) []string {
	if len(lists) > 1 {
		lists = append(slices.Clone(lists[1:]), lists[0])
	}
	var all []string
	for i := range lists {
		lists[i] = once(lists[i])
	}
	for turn, more := 0, true; more && len(all) < most; turn++ {
		more = false
		for _, list := range lists {
			if turn < len(list) {
				all, more = append(all, list[turn]), true
			}
		}
		all = once(all)
	}
	return all[:min(most, len(all))]
}
