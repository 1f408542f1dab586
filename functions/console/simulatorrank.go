package console

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/web/auth"
)

// simPerson is whom the page is for.
type simPerson struct {
	Known bool
	Total int
	Likes []api.Affinity
	AsOf  api.Time
	Last  api.Time
}

// simColumn is a list of objects in an order.
type simColumn struct {
	Title    string
	Hint     string
	Against  string // which order the arrows compare with
	Fallback bool   // the engine knows nothing of the person
	Cards    []simCard
	More     int // objects below the last card
	LeftOut  int // objects that the person has seen
}

// simCard is an object at its place.
type simCard struct {
	product
	ID      string
	Place   int
	Moved   int // places, up above 0
	Score   float64
	Reasons []simReason
	Terms   []simTerm
}

// Up and Down are by how many places the object moved.
func (c simCard) Up() int   { return max(c.Moved, 0) }
func (c simCard) Down() int { return max(-c.Moved, 0) }

// ranker is a strategy that orders the objects: the active one, a version, or a draft.
type ranker struct {
	by      api.Strategy
	version int64           // 0: the active one, or a draft
	draft   json.RawMessage // empty: none
}

// other is the strategy beside the active one, nil if the form names none.
func (s *simulation) other(v *visit) (*ranker, error) {
	switch f := s.Form; {
	case f.Drafted:
		return &ranker{by: f.draft, draft: json.RawMessage(f.Draft)}, nil
	case f.Version > 0:
		by, err := v.engine.Strategies().Version(v.Context(), f.Version)
		return &ranker{by: by, version: f.Version}, err
	}
	return nil, nil
}

// rank orders the objects by a strategy. The place in the order of today is the relevancy of
// an object, so that the impact weighs the person against it.
func (s *simulation) rank(v *visit, r ranker) (api.RankAnswer, error) {
	f, impact := s.Form, s.Form.impact(s.Strategy, r.by)
	items := make([]api.RankItem, len(f.IDs))
	for i, id := range f.IDs {
		items[i] = api.RankItem{ID: id, Fields: []api.RankField{{Name: api.FieldRelevancy, Value: float64(len(f.IDs) - i)}}}
	}
	return v.engine.Rank(v.Context(), api.RankRequest{
		UserToken: f.Token(), Index: f.Index, Items: items, Impact: &impact, HalfLife: f.halfLife(r.by),
		Explain: len(items) <= explained,
		Seen:    f.Seen, Diversity: f.diversity(), Strategy: r.version, Draft: r.draft,
	})
}

// explained is how many objects an order has at most whose scores are explained: the engine
// refuses explanations that take too much memory.
const explained = 1000

// describe adds what the engine knows of the person.
func (s *simulation) describe(v *visit) error {
	if s.Form.User == "" {
		return nil
	}
	profile, err := v.engine.Profiles().Get(v.Context(), s.Form.User,
		api.ProfileQuery{Limit: 6, HalfLife: s.Form.halfLife(s.Strategy).String()})
	if isRefusal(err) {
		return nil // the engine knows nobody of this token
	}
	if err != nil {
		return fmt.Errorf("read the profile: %w", err)
	}
	s.Person = simPerson{Known: true, Total: profile.Total, Likes: profile.Affinities, AsOf: profile.AsOf,
		Last: profile.LastEventAt}
	return nil
}

// columns are the orders side by side: that of today, that of the active strategy and, if there is
// one, that of the other.
func (s *simulation) columns(orders []api.RankAnswer, other *ranker, shown map[string]product) []simColumn {
	today := simColumn{Title: "Today", Hint: "The same for everybody: the order in which you gave the objects."}
	for i, id := range s.Form.IDs[:min(len(s.Form.IDs), maxCards)] {
		today.Cards = append(today.Cards, simCard{product: shown[id], ID: id, Place: i + 1})
	}
	today.More = len(s.Form.IDs) - len(today.Cards)
	all, given := []simColumn{today}, places(s.Form.IDs)
	for i, order := range orders {
		c := simColumn{
			Title: "For this person", Hint: "Strategy version " + strconv.FormatInt(order.StrategyVersion, 10) +
				", the active one.",
			Against: "today", Fallback: order.Fallback != nil, LeftOut: len(s.Form.IDs) - len(order.Items),
		}
		if s.Form.User == "" {
			c.Title = "For a new person"
		}
		if i > 0 {
			c.Title, c.Hint, c.Against = "With the draft", "The same person, and your draft.", "the active strategy"
			if other.version > 0 {
				c.Title, c.Hint = fmt.Sprintf("With version %d", other.version), "The same person, another strategy."
			}
			if impact := s.Form.impact(s.Strategy, other.by); impact != s.Form.Impact {
				c.Hint += fmt.Sprintf(" Its impact is %d.", impact)
			}
		}
		for place, item := range order.Items[:min(len(order.Items), maxCards)] {
			terms := termsOf(item.Features, shown)
			c.Cards = append(c.Cards, simCard{
				product: shown[item.ObjectID], ID: item.ObjectID, Place: place + 1, Moved: given[item.ObjectID] - place,
				Score: item.Score, Reasons: reasonsOf(item.Features, shown), Terms: terms,
			})
		}
		byDifference(c.Cards)
		c.More = len(order.Items) - len(c.Cards)
		all = append(all, c)
		given = ordered(order)
	}
	return all
}

// ordered are the places of objects in an answer.
func ordered(a api.RankAnswer) map[string]int {
	ids := make([]string, len(a.Items))
	for i, item := range a.Items {
		ids[i] = item.ObjectID
	}
	return places(ids)
}

// command is the command line that orders the same objects.
func (s *simulation) command() string {
	f := s.Form
	words := []string{"affinity rank --user", shellArg(f.Token()), "--index", shellArg(f.Index), "--explain"}
	if f.HalfLife != "" {
		words = append(words, "--half-life", shellArg(f.HalfLife))
	}
	if f.Seen != api.SeenKeep {
		words = append(words, "--seen", f.Seen)
	}
	if d := f.diversity(); d != nil {
		words = append(words, "--lambda", strconv.FormatFloat(d.Lambda, 'g', -1, 64))
	}
	switch {
	case f.Drafted:
		words = append(words, "--draft", "draft.json")
	case f.Version > 0:
		words = append(words, "--strategy", strconv.FormatInt(f.Version, 10))
	}
	if len(f.IDs) > 20 {
		words = append(words, "- < ids.txt")
	} else {
		for _, id := range f.IDs {
			words = append(words, shellArg(id))
		}
	}
	return "# orders by the person alone, as at impact 100: the command knows no order of today\n" +
		strings.Join(words, " ") +
		fmt.Sprintf("\naffinity boosts %s --engine %s --impact %d", shellArg(f.Token()), f.Engine, f.Impact)
}

// mayReadRecords is the permission that reading a record needs.
const mayReadRecords = auth.AddObject
