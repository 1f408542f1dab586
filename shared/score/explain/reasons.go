package explain

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/score/affinity"
)

// reasons returns sentences for a merchandiser about the user, the strategy,
// the events, and the score of the question. It returns at least one.
func (x *Explanation) reasons(score *Score, now map[Object][]string) []string {
	var list []string
	say := func(when bool, format string, args ...any) {
		if when {
			list = append(list, fmt.Sprintf(format, args...))
		}
	}
	e, w := x.events, x.q.Window
	say(e.Accepted == 0, "no event of this user is in the log: none was ever accepted, or all have been removed")
	say(x.seen.linked > 0, "%s of anonymous tokens under which the user has signed in: %s",
		x.share(x.seen.linked, "is", "are"), &x.seen.tokens)
	out := x.q.OptedOut
	say(out == event.AllTypes, "the user has opted out: none of their events count")
	say(out != 0 && out != event.AllTypes, "the user has opted out of some types of events, which do not count: %s", out)
	say(w.DeletedUntil != 0, "the user was deleted: events received up to %s do not count",
		event.FormatTime(max(w.ReceivedUntil, w.DeletedUntil)))
	say(w.Ahead > 0 && w.DeletedUntil > w.Now+w.Ahead,
		"this deletion is ahead of now: the clock of the machine that made it was wrong. Once the next event of the "+
			"user has ended it, later ones count")
	switch s := x.q.Strategy; {
	case x.q.StrategyVersion == 0:
		say(true, "no strategy is set: nothing scores until one is")
	default:
		say(len(x.points) == 0, "the strategy scores no type and name of event")
		say(len(x.facets) == 0, "the strategy scores no facet")
		say(len(s.HalfLives) > 0 && x.vanished(),
			"all scores have decayed to zero: the last event that counts is of %s", event.FormatTime(x.seen.lastCounted))
	}
	say(e.Counted > 0, "%s towards the profile", x.share(e.Counted, "counts", "count"))
	why := "deleted with the user"
	if out != 0 {
		why = "deleted with the user, or of a type that they have opted out of,"
	}
	say(e.Deleted > 0, "%s %s and about to be removed", x.share(e.Deleted, "is", "are"), why)
	say(e.OutsideWindow > 0, "%s older than the retention of %s: the last of them is of %s",
		x.share(e.OutsideWindow, "is", "are"), days(w.RetentionDays), event.FormatTime(x.seen.latestOld))
	say(e.Ahead > 0, "%s ahead of now, by the clock of the server that received it: the first will count from %s on",
		x.share(e.Ahead, "is", "are"), event.FormatTime(x.seen.firstAhead-w.Ahead))
	x.strategyReasons(say)
	x.catalogReasons(say, now)
	if score != nil {
		x.scoreReasons(say, *score)
	}
	if x.q.Profile != nil {
		x.boundReasons(say, *x.q.Profile)
	}
	return list
}

// boundReasons are about values that the profile leaves out.
func (x *Explanation) boundReasons(say func(bool, string, ...any), p affinity.Profile) {
	b := affinity.StandardBounds()
	facets := make([]string, len(p.LeftOut))
	for i, a := range p.LeftOut {
		facets[i] = strconv.Quote(a.Facet)
	}
	say(p.Truncated(), "the profile lists %d of %d values and leaves out some of %s: it holds the %d values of a "+
		"facet that score most"+
		" under a half-life, and at most %d values and %d bytes of names",
		len(p.Affinities), p.Total, strings.Join(facets, ", "), b.FacetValues, b.Values, b.NameBytes)
	listed := slices.ContainsFunc(p.Affinities, func(a affinity.Affinity) bool {
		return a.Facet == x.q.Facet && a.Value == x.q.Value
	})
	left := slices.ContainsFunc(p.LeftOut, func(a affinity.Affinity) bool { return a.Facet == x.q.Facet })
	say(left && !listed, "the profile does not list %q of %q: other values score more", x.q.Value, x.q.Facet)
}

// share returns how many of all events a reason is about, with the verb in the
// right number.
func (x *Explanation) share(n int, one, more string) string {
	return fmt.Sprintf("%d of %s %s", n, counted(x.events.Accepted, "event", "events"), plural(n, one, more))
}

func plural(n int, one, more string) string {
	if n == 1 {
		return one
	}
	return more
}

// strategyReasons are about events, facets and values that the strategy does not score.
// Without a strategy these are all of them.
func (x *Explanation) strategyReasons(say func(bool, string, ...any)) {
	kinds := x.events.NotInStrategy - x.seen.unscored
	say(kinds > 0, "%s of types and names that the strategy does not score: %s",
		x.share(kinds, "is", "are"), &x.seen.kinds)
	say(x.seen.unscored > 0, "%s only facets that the strategy does not score", x.share(x.seen.unscored, "has", "have"))
	say(len(x.seen.facets.counts) > 0,
		"facets that the strategy does not score, in events of types and names that it scores: %s", &x.seen.facets)
	say(x.events.Ignored > 0, "%s only values that score nothing, in facets that the strategy scores",
		x.share(x.events.Ignored, "has", "have"))
	say(len(x.seen.ignored.counts) > 0, "values that the strategy ignores in every facet: %s",
		&x.seen.ignored)
	say(len(x.seen.notAllowed.counts) > 0, "values that are not among those that the strategy allows of their facet: %s",
		&x.seen.notAllowed)
}

func (x *Explanation) catalogReasons(say func(bool, string, ...any), now map[Object][]string) {
	indexes := x.seen.indexes.most()
	for _, index := range indexes {
		say(true, "%s objects that index %s %s", x.share(x.seen.indexes.counts[index], "names", "name"), index,
			x.unknown(index, now))
	}
	more := len(x.seen.indexes.counts) - len(indexes)
	say(more > 0, "the same is true of %s", counted(more, "other index", "other indexes"))
	say(x.seen.bare > 0, "%s no filters: the objects have no values of facets",
		x.share(x.seen.bare, "has", "have"))
	say(x.seen.crowded > 0, "%s %s that %s not count beside the others: an event counts at most %d filters of "+
		"its objects, with %d bytes of names",
		x.share(x.seen.crowded, "names", "name"), counted(x.seen.leftOut, "object", "objects"),
		plural(x.seen.leftOut, "does", "do"),
		event.MaxCounted, event.MaxCountedBytes)
	say(x.seen.unreadable > 0, "the original of %s can no longer be read", counted(x.seen.unreadable, "event", "events"))
}

// unknown says of objects that an index did not know when events came whether it knows them
// now, by the example of one.
func (x *Explanation) unknown(index string, now map[Object][]string) string {
	id, noted := x.seen.unknown[index]
	holders := now[Object{index, id}]
	switch {
	case !noted:
		return "did not hold when the events came"
	case now == nil:
		return "did not hold when the events came (such as " + id + ")"
	case slices.Contains(holders, index):
		return "did not hold when the events came, and holds now (such as " + id + "): a re-enrichment adds their filters"
	case len(holders) > 0:
		return "does not hold (such as " + id + "; index " + holders[0] + " holds it)"
	}
	return "does not hold (such as " + id + ")"
}

func (x *Explanation) scoreReasons(say func(bool, string, ...any), score Score) {
	s, facet, value := x.q.Strategy, x.q.Facet, x.q.Value
	to := s.Alias(facet, value)
	switch {
	case x.q.StrategyVersion == 0:
	case x.facets[facet] == 0:
		say(true, "the strategy does not score the facet %q", facet)
	case to != value:
		say(true, "the strategy counts the value %q of %q as %q: ask for the score of that value", value, facet, to)
	case s.Ignores(value):
		say(true, "the strategy ignores the value %q in every facet (ignoredValues)", value)
	case !s.Allows(facet, value):
		say(true, "the strategy allows %s of %q, and %q is not among them (allowedValues)",
			counted(len(s.AllowedValues[facet]), "value", "values"), facet, value)
	case len(score.Contributions) == 0:
		say(true, "no event that counts has the value %q of %q or a value that counts as it", value, facet)
	}
}

func counted(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}

func days(n int) string { return counted(n, "day", "days") }
