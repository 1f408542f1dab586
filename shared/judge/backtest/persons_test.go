package backtest

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/local/affinitytest"
	"github.com/affinityengine/affinity/shared/local/must"
)

// drawLinks draws links of three of the users of drawEvents to the others, and to one without events.
// The intervals of a token are disjoint, as those of an engine.
func drawLinks(t *rapid.T) (all []Link) {
	at := rapid.Int64Range(-5, 50)
	for token := range 3 {
		since := int64(math.MinInt64)
		for range rapid.IntRange(1, 3).Draw(t, "links") {
			from := affinitytest.Now + at.Draw(t, "from")*minute
			to := from + rapid.Int64Range(0, 60).Draw(t, "length")*minute
			if from < since {
				continue
			}
			all = append(all, Link{
				User: fmt.Sprint("u", token), Known: rapid.SampledFrom([]string{"u3", "u4", "new"}).Draw(t, "known"), From: from, To: to,
				Since: max(since, from-rapid.Int64Range(0, 60).Draw(t, "lookback")*minute),
			})
			since = to
		}
	}
	return all
}

// The histories of persons are those that the links read, and the same cases have them.
func TestJudgesPersonsLikeTheReference(t *testing.T) {
	changes, same := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		objects, events, links := drawObjects(t), drawEvents(t), drawLinks(t)
		given, options := drawStrategy(t), drawOptions(t)
		c, err := load(t, objects, events).Cases(t.Context(), given, options)
		if err != nil {
			return // TestNothingToJudge
		}
		tokens := newReference("p", events, objects, given, options)
		persons := newReference("p", events, objects, given, options)
		persons.links = links
		linked, changed := c.linked(links)
		for i, in := range persons.cases() {
			differs := fmt.Sprint(tokens.past(in)) != fmt.Sprint(persons.past(in))
			if changed[i] != differs {
				t.Fatalf("case %d of %s: changes %t, want %t", i, in.user, changed[i], differs)
			}
			if differs {
				changes++
			} else {
				same++
			}
		}
		if _, err := linked.Judge(t.Context(), given); err == nil {
			compareScores(t, linked, persons, given)
			compareScores(t, c, tokens, given)
		}
	})
	enough := 20
	if testing.Short() {
		enough /= 5
	}
	if changes < enough || same < enough {
		t.Errorf("the history of %d cases changed and that of %d did not: too few to compare", changes, same)
	}
}

// Users look at objects of one brand on two devices. Half of what says so is on the other device, so
// links raise the figures, in the cases that change alone.
func TestReportOfLinks(t *testing.T) {
	l := shop(0, 0, 40)
	var links []Link
	for user := range 40 {
		known := fmt.Sprint("k", user)
		for device := range 2 {
			token := fmt.Sprint(known, "-", device)
			for n := range 4 {
				l.Add(Event{User: token, Time: int64(n*1000 + device*100 + user), ID: fmt.Sprint(n), Type: viewed.EventsScoring[0].EventType,
					Name: viewed.EventsScoring[0].EventName, Index: "products", ObjectIDs: []string{fmt.Sprint((user + 7*n + 3*device) % 40)}})
			}
			if user < 20 {
				links = append(links, Link{User: token, Known: known, Since: 0, From: 500, To: math.MaxInt64})
			}
		}
	}
	given := []Given{{"s", viewed}}
	report, err := l.Judge(t.Context(), given, Options{}, nil)
	must.Succeed(t, err)
	got, err := report.Linked(t.Context(), given, links, nil)
	must.Succeed(t, err)
	if got.Changed != 40 || got.Whole.All.Cases != 80 || got.Whole.Changed.Cases != 40 || got.Within == nil {
		t.Fatalf("%d cases change, %d of all: %+v", got.Changed, got.Whole.All.Cases, got)
	}
	find := func(p api.BacktestPair, name string) api.BacktestResult {
		for _, r := range p.Results {
			if r.Name == name {
				return r
			}
		}
		t.Fatalf("no result of %s in %+v", name, p)
		return api.BacktestResult{}
	}
	for _, name := range []string{"s", "plain:s"} {
		all, part := got.Whole.All, *got.Whole.Changed
		// The mean over all differs by what the part differs, for the others are as they were.
		difference := find(all, api.LinkedPrefix+name).NDCG - find(all, name).NDCG
		ofPart := find(part, api.LinkedPrefix+name).NDCG - find(part, name).NDCG
		if difference == 0 || !near(difference, ofPart/2) {
			t.Errorf("%s: links change the nDCG by %g over all cases, by %g over those that change", name, difference, ofPart)
		}
		if find(all, name).NDCG != report.Find(name).NDCG {
			t.Errorf("%s: by tokens %g, want %g", name, find(all, name).NDCG, report.Find(name).NDCG)
		}
	}
	none, err := report.Linked(t.Context(), given, nil, nil)
	must.Succeed(t, err)
	if none.Changed != 0 || none.Whole != nil || none.Within != nil {
		t.Errorf("without links: %+v", none)
	}
}
