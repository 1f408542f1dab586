package query_test

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/fault"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/rank/segment"
	"github.com/affinityengine/affinity/shared/score/strategy"
	"github.com/affinityengine/affinity/shared/serve/query"
)

var conditions = []string{
	`{"filter":"brand:v1"}`,
	`{"filter":"brand:v0","above":60}`,
	`{"filter":"color:v2","above":10}`,
	`{"and":[{"filter":"brand:v0","above":30},{"filter":"color:v1"}]}`,
	`{"or":[{"filter":"brand:v3","above":90},{"filter":"color:v0","above":20}]}`,
	`{"and":[{"not":{"filter":"brand:v2"}},{"or":[{"filter":"brand:v1","above":31},{"filter":"color:v3"}]}]}`,
	`{"filter":"brand:nobody"}`,
}

func filters(r *rand.Rand) []string {
	return []string{fmt.Sprint("brand:v", r.IntN(5)), fmt.Sprint("color:v", r.IntN(4))}
}

// Answers equal what all profiles say, whatever happens between builds, updates and
// queries.
func TestAnswersEqualAScan(t *testing.T) {
	for name, halfLives := range map[string][]int{"sums": nil, "one half-life": {2}, "two half-lives": {30, 3}} {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(uint64(len(halfLives)), 7))
			b := newBench(t, halfLives...)
			for range 250 {
				b.see(fmt.Sprintf("u%03d", r.IntN(120)), b.clock-r.Int64N(95*day), filters(r)...)
			}
			b.buildLater()
			checkAll := func(what string) {
				t.Helper()
				for _, where := range conditions {
					b.check(what, where)
				}
				b.checkHistogram(what, "brand:v1")
			}
			checkAll("after a build")
			for step := range 12 {
				what := fmt.Sprint("step ", step)
				switch r.IntN(6) {
				case 0: // a new user, and a late event
					b.see(fmt.Sprintf("n%03d", r.IntN(100)), b.clock-r.Int64N(90*day), filters(r)...)
				case 1:
					for range 5 {
						b.see(fmt.Sprintf("u%03d", r.IntN(120)), b.clock, filters(r)...)
					}
				case 2:
					user := fmt.Sprintf("u%03d", r.IntN(120))
					if _, err := b.engine.Delete(t.Context(), appID, user); err != nil {
						t.Fatal(err)
					}
					b.change(user)
				case 3: // profiles expire
					b.clock += 3 * day
				case 4:
					b.clock += hour
					b.update(b.everybody()[r.IntN(40)])
				case 5: // ahead of the clock
					b.see(fmt.Sprintf("u%03d", r.IntN(120)), b.clock+4*60_000, filters(r)...)
					b.clock += 60_000
					b.build()
				}
				b.clock += r.Int64N(30_000)
				checkAll(what)
			}
			b.buildLater()
			checkAll("after the last build")
		})
	}
}

// checkHistogram compares a histogram with the scores in all profiles.
func (b *bench) checkHistogram(what, filter string) {
	b.Helper()
	c := b.condition(fmt.Sprintf(`{"filter":%q}`, filter))
	q, err := c.Compile(b.app().Strategy)
	must.Succeed(b, err)
	want := segment.Reference(q, b.profiles(b.everybody()), b.clock)
	s, asOf, err := b.reader.Histogram(b.Context(), b.app(), *c.Filter)
	must.Succeed(b, err)
	sum, counted := 0.0, 0
	for _, u := range want {
		sum += q.Score(u.Order, b.clock)
	}
	for _, bucket := range s.Buckets {
		counted += bucket.Users
	}
	if s.Users != len(want) || counted != len(want) || asOf != b.clock {
		b.Errorf("%s: histogram of %d users, %d in buckets, want %d", what, s.Users, counted, len(want))
	}
	if n := len(want); n > 0 && (!near(s.Mean, sum/float64(n)) || !near(s.P50, q.Score(want[n-(n+1)/2].Order, b.clock))) {
		b.Errorf("%s: mean %v, median %v; want %v and %v", what, s.Mean, s.P50, sum/float64(n), q.Score(want[n-(n+1)/2].Order, b.clock))
	}
}

// wantNotReady checks that users of brand:v1 cannot be listed, for a reason that it returns.
func (b *bench) wantNotReady(app config.App, reason string) string {
	b.Helper()
	_, err := b.reader.Page(b.Context(), app, b.condition(`{"filter":"brand:v1"}`), 10, "")
	message, is := query.IsNotReady(err)
	if !is || !strings.Contains(message, reason) {
		b.Errorf("error %v, want %q", err, reason)
	}
	return message
}

func TestNotReady(t *testing.T) {
	b := newBench(t)
	c := b.condition(`{"filter":"brand:v1"}`)
	ask := func(what string, messages ...string) {
		t.Helper()
		_, err := b.reader.Page(t.Context(), b.app(), c, 10, "")
		message, is := query.IsNotReady(err)
		if is != (len(messages) > 0) || err != nil && !is {
			t.Errorf("%s: error %v", what, err)
		}
		for _, m := range messages {
			if !strings.Contains(message, m) {
				t.Errorf("%s: %q lacks %q", what, message, m)
			}
		}
	}
	b.see("u", b.clock, "brand:v1")
	ask("before the first build", "not built yet", "it is half done")
	b.buildLater()
	ask("after it")
	b.score(20)
	b.newReader()
	ask("after another strategy", "strategy or the retention has changed", "it is half done")
	b.buildLater()
	ask("after its build")
	must.Succeed(t, b.config.SetRetention(t.Context(), appID, 30))
	b.newReader()
	ask("after another retention", "strategy or the retention has changed")
	must.Succeed(t, b.config.SetSegments(t.Context(), appID, false))
	if _, err := b.reader.Page(t.Context(), b.app(), c, 10, ""); !errors.Is(err, query.ErrOff) {
		t.Errorf("switched off: %v", err)
	}
}

// A query that meets many changed users orders an update, once; one that would read too
// many profiles fails.
func TestUpdatesAreOrdered(t *testing.T) {
	b := newBenchOf(t, "u", "brand:v1")
	var users []string
	for i := range query.UpdateFrom + 1 {
		users = append(users, fmt.Sprint("x", i))
	}
	c := b.condition(`{"filter":"brand:v1"}`)
	add := func() {
		t.Helper()
		must.Succeed(t, b.store.Changes.Add(t.Context(), appID, b.slot(), users))
	}
	add()
	for range 2 {
		if page, err := b.reader.Page(t.Context(), b.app(), c, 10, ""); err != nil || page.Total != 1 || b.builds.ordered != 1 {
			t.Errorf("total %d, %v; %d updates were ordered, want 1", page.Total, err, b.builds.ordered)
		}
	}
	for i := range query.MaxPageChanges {
		users = append(users, fmt.Sprint("y", i))
	}
	add()
	b.wantNotReady(b.app(), "More than 5000 users have changed")
	if _, _, err := b.reader.Histogram(t.Context(), b.app(), *c.Filter); err != nil {
		t.Errorf("a histogram: %v", err)
	}
	b.builds.waiting = true
	moving := b.app()
	moving.Move.Phase = config.MoveSwitched
	for want, app := range map[string]config.App{"The app is moving to another region": moving, "cannot be ordered at the moment": b.app()} {
		b.newReader()
		if message := b.wantNotReady(app, want); strings.Contains(message, "is ordered") {
			t.Errorf("error %q, want %q alone", message, want)
		}
	}
}

func TestRefusals(t *testing.T) {
	b := newBench(t, 30)
	for i := range 9 {
		b.see(fmt.Sprint("u", i), b.clock, "brand:v1")
	}
	b.buildLater()
	c := b.condition(`{"filter":"brand:v1"}`)
	page, err := b.reader.Page(t.Context(), b.app(), c, 3, "")
	if err != nil || page.Cursor == "" {
		t.Fatalf("page %+v, %v", page, err)
	}
	refused := func(what string, c segment.Condition, cursor, message string) {
		t.Helper()
		_, err := b.reader.Page(t.Context(), b.app(), c, 3, cursor)
		var f *fault.Error
		if !errors.As(err, &f) || f.Kind != fault.Invalid || !strings.Contains(f.Message, message) {
			t.Errorf("%s: %v, want %q", what, err, message)
		}
	}
	refused("a damaged cursor", c, page.Cursor[1:], "cursor")
	refused("of another condition", b.condition(`{"filter":"brand:v2"}`), page.Cursor, "cursor")
	other := c
	filter := *c.Filter
	filter.HalfLife = strategy.Days(31)
	other.Filter = &filter
	refused("an unknown half-life", other, "", "halfLife")
	b.clock += 25 * hour
	refused("an expired cursor", c, page.Cursor, "cursor")
}

func TestValues(t *testing.T) {
	b := newBench(t)
	b.perPart = 2
	for i := range 6 {
		b.see(fmt.Sprint("u", i), b.clock, fmt.Sprint("brand:v", i%2), "brand:all", "color:red")
	}
	b.buildLater()
	v, err := b.reader.Values(t.Context(), b.app(), "brand", 2)
	if err != nil || v.Total != 3 || len(v.Values) != 2 || v.Values[0] != (query.Value{Value: "all", Users: 6, Events: -1}) || v.Values[1] != (query.Value{Value: "v0", Users: 3, Events: -1}) || v.AsOf != b.clock {
		t.Errorf("%+v, %v", v, err)
	}
}

// The events of a sample are those of all users if it has them all, and otherwise an
// estimate for the values that enough of them have.
func TestEventsOfValues(t *testing.T) {
	b := newBench(t)
	users := make([]string, 12)
	for i := range users {
		users[i] = fmt.Sprintf("u%02d", i)
		for n := range 1 + i%3 {
			b.see(users[i], b.clock+int64(n), "brand:all", fmt.Sprint("brand:v", i))
		}
	}
	b.buildLater()
	for _, tt := range []struct {
		users []string
		all   bool
		want  int64 // of the value all
		rare  int64 // of v1
	}{
		{users, true, 24, 2},
		{users[:6], false, 24, -1}, // 2 each, 12 users
		{users[:4], false, -1, -1},
		{nil, true, 0, 0},
	} {
		v, err := b.reader.Values(t.Context(), b.app(), "brand", 100)
		if err == nil {
			err = b.reader.CountEvents(t.Context(), b.app(), "brand", v.Values, tt.users, tt.all)
		}
		must.Succeed(t, err)
		got := map[string]int64{}
		for _, value := range v.Values {
			got[value.Value] = value.Events
		}
		if got["all"] != tt.want || got["v1"] != tt.rare {
			t.Errorf("%d users, all %v: %v, want %d and %d", len(tt.users), tt.all, got, tt.want, tt.rare)
		}
	}
}

// A value that a strategy does not ignore is counted even if others do.
func TestEventsOfValuesThatOthersIgnore(t *testing.T) {
	b := newBench(t)
	s := b.app().Strategy
	s.IgnoredValues = []string{"all"}
	s.AllowedValues = map[string]strategy.ValueSet{"brand": strategy.SetOf("N/A", "all")}
	_, _, err := b.config.SetStrategy(t.Context(), appID, s)
	must.Succeed(t, err)
	b.see("ann", b.clock, "brand:N/A", "brand:all", "brand:v1")
	b.buildLater()
	v, err := b.reader.Values(t.Context(), b.app(), "brand", 10)
	must.Succeed(t, err)
	must.Succeed(t, b.reader.CountEvents(t.Context(), b.app(), "brand", v.Values, []string{"ann"}, true))
	if len(v.Values) != 1 || v.Values[0] != (query.Value{Value: "N/A", Users: 1, Events: 1}) {
		t.Errorf("values %+v", v.Values)
	}
}

// The slot of a listed user does not say how often they have changed in it, so the ticket
// of their row decides if the profile that the process knows still holds.
func TestKnownProfileThatChangesInTheSameSlot(t *testing.T) {
	b := newBenchOf(t, "other", "brand:v2")
	where := `{"filter":"brand:v1","above":70}`
	for range 4 { // of which some are above
		b.see("u", b.clock, "brand:v1")
		b.check("changed", where)
		b.check("unchanged", where)
	}
	if _, err := b.engine.Delete(t.Context(), appID, "u"); err != nil {
		t.Fatal(err)
	}
	b.check("deleted", where)
}

// Nobody lists changes while segments are off, so the lists of before say nothing after.
func TestListsOfBeforeTheSwitchAreNotRead(t *testing.T) {
	b := newBenchOf(t, "u", "brand:v1")
	for _, on := range []bool{false, true} {
		must.Succeed(t, b.config.SetSegments(t.Context(), b.app().ID, on))
	}
	b.clock += hour
	b.wantNotReady(b.app(), "not built yet")
}

// The list of changes forgets, so lists that are older are not read: not by a process that
// knows them either.
func TestListsOlderThanTheChangesAreNotRead(t *testing.T) {
	b := newBenchOf(t, "u", "brand:v1")
	where := `{"filter":"brand:v1"}`
	b.clock += 8 * day
	b.check("old", where)
	for _, pass := range []int64{day, 1} {
		b.clock += pass
		b.wantNotReady(b.app(), "more than 8 days old")
	}
}

// A profile that the process knows is not used where the list was not read from its
// cut on: a delta counts what changed in between.
func TestKnownProfilesOlderThanTheList(t *testing.T) {
	b := newBenchOf(t, "u", "brand:v1")
	b.see("u", b.clock, "brand:v1")
	b.clock += 60_000
	where := `{"filter":"brand:v1","above":70}`
	b.check("known", where)
	b.see("u", b.clock, "brand:v1")
	b.see("u", b.clock-89*day, "brand:v1") // expires in a day
	b.clock += 60_000
	reader := b.reader
	b.update()
	b.reader = reader
	b.clock += 2 * day
	b.check("expired in the delta", where)
}

// Profiles may be computed after the instant of an answer: another process computes one
// while the answer is under way, or its clock is ahead. The answer has scores of its instant.
func TestScoresAreAsOfTheAnswer(t *testing.T) {
	b := newBench(t, 1, 30)
	b.see("eve", b.clock, "brand:v2")
	b.build()
	seen, early := b.clock-day, int64(3_000)
	b.see("ann", seen, "brand:v1")
	b.see("bob", b.clock+60_000, "brand:v1") // ahead: their profile does not decay until then
	asked := b.clock - early
	reader := query.New(b.store, b.engine, b.builds, func() time.Time { return time.UnixMilli(asked) }, slog.New(slog.DiscardHandler))
	for range 2 { // the second time the reader knows the profiles
		page, err := reader.Page(t.Context(), b.app(), b.condition(`{"filter":"brand:v1"}`), 10, "")
		must.Succeed(t, err)
		want := map[string]float64{"ann": 30 * math.Exp2(-float64(asked-seen)/float64(day)), "bob": 30}
		if len(page.Users) != len(want) || page.AsOf != asked {
			t.Fatalf("%+v, want the users %v as of %d", page, want, asked)
		}
		for _, u := range page.Users {
			if math.Abs(u.Score/want[u.Token]-1) > 1e-10 {
				t.Errorf("score of %s = %v, want %v as of the answer", u.Token, u.Score, want[u.Token])
			}
		}
		above := fmt.Sprintf(`{"filter":"brand:v1","above":%v}`, want["ann"]*(1-1e-9))
		if page, err := reader.Page(t.Context(), b.app(), b.condition(above), 10, ""); err != nil || page.Total != 2 {
			t.Errorf("above a little less than the score of ann: %d users, %v; want 2", page.Total, err)
		}
		asked++
	}
}
