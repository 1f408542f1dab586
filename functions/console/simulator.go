package console

import (
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/web/auth"
)

func init() {
	pages = append(pages,
		page{pattern: "GET /console/simulator", section: "simulator", template: "simulator", fragment: "live",
			load: simulate},
		// What a form asks for can be longer than an address: a list of objects.
		page{pattern: "POST /console/simulator", section: "simulator", draft: true, template: "simulator",
			fragment: "live", load: simulate})
}

// maxCards is how many objects of an order are shown.
const maxCards = 20

// simulation is what the page shows: one list of objects in the order of today, and as one
// person would see it.
type simulation struct {
	Form     simulatorForm
	Strategy api.Strategy
	Versions []api.StrategyVersion
	Feeds    []api.FeedDefinition
	People   []string // tokens to choose from
	Person   simPerson
	Columns  []simColumn
	Boost    *boosted
	Link     string // opens the same comparison
	Said     string // what changed, in a sentence
	Problem  string // what the engine refused
	Missing  missing
}

// missing is what the page can do without, and says so.
type missing struct {
	Permission bool   // to order objects at all
	Objects    bool   // there is nothing to order
	Catalog    bool   // the catalog holds none of the objects
	Records    bool   // the key may not read records
	Statistics bool   // the index has no statistics
	Fill       string // why the list of objects was not filled
	People     string // why nobody was chosen
}

// simulate compares the order of a list of objects with the one for a person.
func simulate(v *visit) (any, error) {
	v.title = "Simulator"
	s := &simulation{}
	if !v.may(auth.Recommendation) {
		s.Missing.Permission = true
		return s, nil
	}
	withPictures(v.w.Header())
	var err error
	if s.Strategy, err = v.engine.Strategies().Get(v.Context()); err != nil {
		return nil, err
	}
	s.Form = readSimulator(v, s.Strategy)
	if err := s.offer(v); err != nil {
		return nil, err
	}
	if s.Problem = s.Form.userFault(); s.Problem != "" {
		return s, nil
	}
	if err := s.choose(v); err != nil {
		return nil, err
	}
	if s.Problem = s.Form.fault(); s.Problem != "" {
		return s, nil
	}
	if len(s.Form.IDs) == 0 {
		s.Missing.Objects = true
		return s, nil
	}
	if err := s.compare(v); err != nil {
		return s, s.refused(err)
	}
	v.command, s.Link = s.command(), s.Form.link()
	return s, nil
}

// offer lists what the form lets a person choose from. What htmx asks for has no form.
func (s *simulation) offer(v *visit) error {
	if v.Header.Get("Hx-Request") != "" {
		return nil
	}
	versions, err := v.engine.Strategies().Versions(v.Context())
	if err != nil {
		return fmt.Errorf("list versions: %w", err)
	}
	for _, version := range versions.Versions[:min(len(versions.Versions), 50)] {
		if !version.Active {
			s.Versions = append(s.Versions, version)
		}
	}
	if v.may(auth.Settings) {
		feeds, err := v.engine.Feeds().List(v.Context())
		if err != nil && !isRefusal(err) {
			return fmt.Errorf("list feeds: %w", err)
		}
		s.Feeds = feeds.Feeds
	}
	return nil
}

// compare orders the objects, and adds what the page says of them and of the person.
func (s *simulation) compare(v *visit) error {
	v.made.keep(func(call) bool { return false }) // what chose the objects is no part of how to order them
	mine, err := s.rank(v, ranker{by: s.Strategy})
	if err != nil {
		return err
	}
	orders := []api.RankAnswer{mine}
	other, err := s.other(v)
	if err != nil {
		return err
	}
	if other != nil {
		order, err := s.rank(v, *other)
		if err != nil {
			return err
		}
		orders = append(orders, order)
	}
	if err := s.describe(v); err != nil {
		return err
	}
	if err := s.boost(v); err != nil {
		return err
	}
	shown, err := s.records(v, orders)
	if err != nil {
		return err
	}
	s.Missing.Statistics = mine.CrowdAsOf == nil
	s.Columns = s.columns(orders, other, shown)
	s.Said = s.summary(mine)
	return nil
}

// summary says in a sentence what the person's order changes.
func (s *simulation) summary(mine api.RankAnswer) string {
	given := places(s.Form.IDs)
	moved, most, first := 0, 0, ""
	for i, item := range mine.Items {
		by := given[item.ObjectID] - i
		if by != 0 {
			moved++
		}
		if by > most {
			most = by
		}
	}
	switch {
	case len(mine.Items) == 0:
		return "Nothing is left to show: the person has seen all of these objects."
	case moved == 0:
		return "The order is that of today: nothing moves."
	case given[mine.Items[0].ObjectID] > 0:
		first = " Another object comes first."
	}
	return fmt.Sprintf("%s of %s objects stand at another place; the largest rise is by %s.%s",
		number(moved), number(len(mine.Items)), number(most), first)
}

// places are the places of objects in a list, from 0.
func places(ids []string) map[string]int {
	at := make(map[string]int, len(ids))
	for i, id := range ids {
		at[id] = i
	}
	return at
}

// refused keeps what a person can correct on the page; other errors end it.
func (s *simulation) refused(err error) error {
	var refusal *api.Error
	correctable := []int{http.StatusBadRequest, http.StatusNotFound, http.StatusRequestEntityTooLarge,
		http.StatusUnprocessableEntity}
	if errors.As(err, &refusal) && slices.Contains(correctable, refusal.Status) {
		s.Problem = refusalText(err)
		return nil
	}
	return err
}

// keep leaves out requests so far from what the page shows of itself.
func (c *calls) keep(those func(call) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.made = slices.DeleteFunc(c.made, func(one call) bool { return !those(one) })
}

// isRefusal reports whether the engine refused a request that a page can do without: for want of
// a permission, or because there is nothing.
func isRefusal(err error) bool {
	var refusal *api.Error
	return errors.As(err, &refusal) && refusal.Status >= 400 && refusal.Status < 500 && !refusal.Temporary()
}
