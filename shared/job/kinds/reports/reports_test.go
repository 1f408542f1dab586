package reports_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/kinds/reports"
	"github.com/affinityengine/affinity/shared/judge/lift"
	"github.com/affinityengine/affinity/shared/local/jobtest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/experiment"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/store"
)

const (
	app = jobtest.App
	day = 24 * time.Hour
)

// harness has an engine whose requests pass the gate of the harness of jobs, and a runner of reports.
type harness struct {
	*jobtest.Harness
	store  *store.Store
	engine *profile.Engine
	runner *reports.Runner
	// experiment is that of the app.
	experiment experiment.Experiment
	shardUsers int
	n          int
	log        []logged
	exposures  []exposure
}

// exposure is an answer of an arm to the user of a token.
type exposure struct {
	user, arm string
	at        time.Time
}

// logged is an event that was sent.
type logged struct {
	user, known string
	at          time.Time
	typ         event.Type
	price       float64
	currency    string
	query       string // the answer that led to it
	position    int64  // of a click in that
}

func newHarness(t testing.TB, shardUsers int) *harness {
	h := &harness{Harness: jobtest.New(t, reports.Collection, 0, settings), shardUsers: shardUsers}
	h.on(storetest.New(t, h.Dial()...))
	return h
}

var settings = job.Settings{Budget: time.Minute, Attempts: 100}

// on makes the engine of a store.
func (h *harness) on(s *store.Store) {
	h.store = s
	h.engine = profile.New(s, h.Config, config.NewCached(h.Config, 0), func() time.Time { return h.Now }, slog.New(slog.DiscardHandler))
	parts := h.Parts(settings)
	parts.Users, parts.Config = s.Users, configured{parts.Config, h}
	parts.UsersIn = func(region string) job.Users { return s.In(region).Users }
	h.runner = reports.New(parts, reports.Work{Profiles: h.engine, Reports: config.ReportsOf(h.Config), ShardUsers: h.shardUsers})
	h.Runner = h.runner.Runner
}

// configured are the apps of the harness with its experiment.
type configured struct {
	job.Config
	h *harness
}

func (c configured) App(ctx context.Context, id string) (config.App, error) {
	a, err := c.Config.App(ctx, id)
	a.Experiment = c.h.experiment
	return a, err
}

func (h *harness) app() config.App {
	h.T.Helper()
	a, err := h.Config.App(h.T.Context(), app)
	must.Succeed(h.T, err)
	return a
}

// half is an experiment of two equal arms that began some days ago.
func (h *harness) half(days int) experiment.Experiment {
	return experiment.Experiment{Name: "checkout", Seed: "s", Coverage: 0.8, Metric: "revenue", StartAt: h.Now.Add(-time.Duration(days) * day),
		Arms: []experiment.Arm{{Name: "old", Strategy: 1, Weight: 0.5}, {Name: "new", Strategy: 2, Weight: 0.5}}}
}

// apply sends events.
func (h *harness) apply(all ...logged) {
	h.T.Helper()
	_, err := h.engine.Apply(h.T.Context(), h.app(), h.events(all...))
	must.Succeed(h.T, err)
	h.log = append(h.log, all...)
}

// events are those of the log.
func (h *harness) events(all ...logged) (events []store.LogEvent) {
	h.T.Helper()
	for _, l := range all {
		h.n++
		text := map[string]any{"eventType": l.typ, "eventName": "Did", "userToken": l.user, "timestamp": l.at.UnixMilli(), "objectIDs": []string{"o1"}}
		if l.price != 0 {
			text["objectData"] = []any{map[string]any{"price": l.price / 2, "quantity": 2}}
			text["currency"] = l.currency
		}
		if l.query != "" {
			text["queryID"] = l.query
		}
		if l.position > 0 {
			text["positions"] = []int64{l.position}
		}
		body, err := json.Marshal(text)
		must.Succeed(h.T, err)
		events = append(events, store.LogEvent{User: l.user, Time: l.at.UnixMilli(), ID: fmt.Sprintf("%011d", h.n), Type: l.typ, Name: "Did",
			Index: "products", ObjectIDs: []string{"o1"}, Known: l.known, Strong: true, Receipt: h.Now.UnixMilli(),
			Original: schema.Original{ReceivedAt: h.Now.UnixMilli(), Index: "products", Event: body}.Append(nil)})
	}
	return events
}

// expose stores exposures to the experiment of the app.
func (h *harness) expose(e experiment.Experiment, all ...exposure) {
	h.T.Helper()
	for _, x := range all {
		row, err := h.store.Users.ReadPrimary(h.T.Context(), app, x.user, store.UserExposures)
		must.Succeed(h.T, err)
		_, err = h.store.Users.Expose(h.T.Context(), app, x.user, row,
			store.Exposure{Experiment: e.Name, Since: e.StartAt.UnixMilli(), Arm: x.arm, At: x.at.UnixMilli()})
		must.Succeed(h.T, err)
	}
	h.exposures = append(h.exposures, all...)
}

// someExposed are exposures of some users in the last days, of whom a fourth has seen both arms.
func (h *harness) someExposed(r *rand.Rand, users, days int) (all []exposure) {
	for u := range users {
		for _, arm := range []string{"old", "new"}[:r.IntN(3)] {
			at := h.Now.Add(-time.Duration(r.Int64N(int64(days) * int64(day)))).Truncate(time.Millisecond)
			all = append(all, exposure{fmt.Sprint("u", u), arm, at})
		}
	}
	return all
}

// some sends random events of some users in the last days.
func (h *harness) some(r *rand.Rand, users, events, days int) {
	h.T.Helper()
	var all []logged
	for range events {
		l := logged{user: fmt.Sprint("u", r.IntN(users)), at: h.Now.Add(-time.Duration(r.Int64N(int64(days) * int64(day)))).Truncate(time.Millisecond),
			typ: []event.Type{event.View, event.Click, event.Conversion}[r.IntN(3)]}
		if l.typ == event.Conversion && r.IntN(2) == 0 {
			l.price, l.currency = float64(2*(1+r.IntN(50))), []string{"EUR", "usd", ""}[r.IntN(3)]
		}
		if l.typ != event.View && r.IntN(2) == 0 {
			l.query = fmt.Sprintf("%032x", r.IntN(2))
		}
		if l.typ == event.Click && l.query != "" {
			l.position = 1 + r.Int64N(40)
		}
		all = append(all, l)
	}
	h.apply(all...)
}

// report runs a report to its end and returns what is kept.
func (h *harness) report(q reports.Request) (config.KeptReport, reports.Body) {
	h.T.Helper()
	j, err := h.runner.Start(h.T.Context(), app, q)
	must.Succeed(h.T, err)
	h.Drain()
	h.WantState(j.ID, job.Done, "")
	return h.kept(q.Experiment, "")
}

func (h *harness) kept(name, month string) (config.KeptReport, reports.Body) {
	h.T.Helper()
	kept, err := config.ReportsOf(h.Config).Kept(h.T.Context(), app, name, month)
	must.Succeed(h.T, err)
	var body reports.Body
	must.Succeed(h.T, json.Unmarshal([]byte(kept.Body), &body))
	return kept, body
}

// want makes the reports of an experiment from what was sent. person says who a token is, and unit by which token they
// are divided; "" leaves the event out.
func (h *harness) want(e experiment.Experiment, holdout experiment.Holdout, from, to lift.Day,
	person func(logged) (user, unit string)) reports.Body {
	h.T.Helper()
	armOf := func(unit string) string {
		if i, ok := e.Arm(unit); ok && !holdout.Has(unit) {
			return e.Arms[i].Name
		}
		return ""
	}
	people, others := map[string]*lift.Person{}, map[string]bool{}
	of := func(user, unit string) *lift.Person {
		p := people[user]
		if p == nil {
			p = &lift.Person{Arm: armOf(unit), Days: map[lift.Day]lift.Sums{}}
			people[user] = p
		}
		return p
	}
	for _, x := range h.exposures {
		if user, unit := person(logged{user: x.user, at: x.at, typ: event.View}); user != "" {
			p := of(user, unit)
			p.Exposures = append(p.Exposures, lift.Exposure{At: x.at, Arm: x.arm})
		}
	}
	for _, l := range h.log {
		user, unit := person(l)
		if user == "" {
			continue
		}
		p := of(user, unit)
		at := lift.DayOf(l.at)
		s := p.Days[at]
		if s.Revenue == nil {
			s.Revenue = map[string]lift.Money{}
		}
		switch l.typ {
		case event.Click:
			s.Clicks++
		case event.Conversion:
			s.Conversions++
			s.Revenue[strings.ToUpper(l.currency)] += lift.MoneyOf(l.price)
		}
		p.Days[at] = s
		if key := user + " " + l.user; from <= at && at <= to && l.user != unit && !others[key] {
			others[key] = true
			p.Others = append(p.Others, armOf(l.user))
		}
	}
	for _, l := range h.log {
		user, unit := person(l)
		if user == "" || l.typ != event.Conversion || l.query == "" || lift.DayOf(l.at) < from {
			continue
		}
		o, clicked := lift.Order{Day: lift.DayOf(l.at), Revenue: lift.MoneyOf(l.price), Currency: strings.ToUpper(l.currency)}, time.Time{}
		for _, click := range h.log {
			by, _ := person(click)
			if click.typ != event.Click || by != user || click.query != l.query || click.at.After(l.at) || click.at.Before(clicked) {
				continue
			}
			if click.at.After(clicked) || click.position < o.Position {
				o.Position, clicked = click.position, click.at
			}
		}
		p := of(user, unit)
		p.Orders = append(p.Orders, o)
	}
	report := func(population lift.Population, m lift.Metric) lift.Report {
		q := lift.Question{Experiment: e.Name, Start: lift.DayOf(e.StartAt), From: from, To: to, Metric: m, Population: population}
		for _, a := range e.Arms {
			q.Arms = append(q.Arms, lift.Arm{Name: a.Name, Weight: a.Weight})
		}
		tally, err := lift.NewTally(q)
		must.Succeed(h.T, err)
		series, err := lift.NewSeries(q, 11)
		must.Succeed(h.T, err)
		for _, p := range people {
			for currency, money := range p.Days { // no amount is no revenue
				maps.DeleteFunc(money.Revenue, func(_ string, m lift.Money) bool { return m == 0 })
				p.Days[currency] = money
			}
			tally.Add(*p)
			series.Add(*p)
		}
		r := tally.Report()
		series.Into(&r)
		return r
	}
	all := reports.Body{Reports: map[lift.Metric]lift.Report{}, Exposed: map[lift.Metric]lift.Report{}}
	for _, m := range []lift.Metric{lift.Clicks, lift.Conversions, lift.Revenue} {
		all.Reports[m], all.Exposed[m] = report(lift.Active, m), report(lift.Exposed, m)
	}
	return all
}

func themselves(l logged) (user, unit string) { return l.user, l.user }

func compare(t testing.TB, want, got reports.Body) {
	t.Helper()
	want.Metric = got.Metric
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
}

// A report equals what was sent, added up by hand: people of several tokens once, the deleted and those who have opted
// out not at all, and whichever request its process dies at.
func TestReportEqualsWhatWasSent(t *testing.T) {
	for _, f := range []jobtest.Fault{jobtest.FailBefore, jobtest.FailAfter} {
		for at := -1; ; at += 2 + at {
			h := newHarness(t, 3)
			_, err := h.Config.SetHoldout(t.Context(), app, experiment.Holdout{Share: 0.1, Seed: "q"})
			must.Succeed(t, err)
			for _, mode := range []config.IdentityMode{config.IdentityCollect, config.IdentityLink} {
				_, err := h.Config.SetIdentity(t.Context(), app, config.Identity{Mode: mode, Lookback: 3 * day}, 0)
				must.Succeed(t, err)
			}
			e := h.half(20)
			h.experiment = e
			h.some(rand.New(rand.NewPCG(3, 1)), 12, 300, 50)
			// k signs in under a0, and then under a1: both count for k, who is in the arm of a0.
			h.apply(logged{user: "a0", at: h.Now.Add(-9 * day), typ: event.Click}, logged{user: "a0", known: "k", at: h.Now.Add(-8 * day), typ: event.Click})
			h.Now = h.Now.Add(time.Second)
			h.apply(logged{user: "a1", known: "k", at: h.Now.Add(-7 * day), typ: event.Conversion, price: 8, currency: "EUR"},
				logged{user: "k", at: h.Now.Add(-30 * day), typ: event.Conversion, price: 4, currency: "EUR"}, logged{user: "a1", at: h.Now.Add(-6 * day), typ: event.View})
			// k has met one arm as a visitor, and the other one later. v has met one, and done nothing.
			h.expose(e, append(h.someExposed(rand.New(rand.NewPCG(3, 2)), 12, 15), exposure{"a0", "new", h.Now.Add(-9 * day)},
				exposure{"k", "old", h.Now.Add(-5 * day)}, exposure{"v", "old", h.Now.Add(-5 * day)})...)
			for _, user := range []string{"u0", "u1"} {
				_, err := h.engine.Delete(t.Context(), app, user)
				must.Succeed(t, err)
			}
			_, err = h.engine.OptOut(t.Context(), app, "u2")
			must.Succeed(t, err)
			_, err = h.engine.OptOut(t.Context(), app, "u3", event.Click)
			must.Succeed(t, err)
			h.Now = h.Now.Add(time.Hour)
			h.apply(logged{user: "u1", at: h.Now.Add(-time.Minute), typ: event.Click}, logged{user: "u3", at: h.Now.Add(-time.Minute), typ: event.Click},
				logged{user: "u3", at: h.Now.Add(-time.Minute), typ: event.Conversion, price: 3})
			h.expose(e, exposure{"u1", "new", h.Now.Add(-time.Minute)})
			today := lift.DayOf(h.Now)
			want := h.want(e, h.app().Holdout, today-20, today, func(l logged) (string, string) {
				switch {
				case slices.Contains([]string{"a0", "a1", "k"}, l.user):
					return "k", "a0"
				case l.user == "u2" || l.user == "u3" && l.typ == event.Click,
					slices.Contains([]string{"u0", "u1", "u3"}, l.user) && l.at.Before(h.Now.Add(-time.Hour)):
					return "", ""
				}
				return l.user, l.user
			})
			j, err := h.runner.Start(t.Context(), app, reports.Request{Experiment: "checkout", To: today.String()})
			must.Succeed(t, err)
			calls := h.DieAt(at, f)
			h.Drain()
			h.Gate = nil
			h.WantState(j.ID, job.Done, "")
			kept, body := h.kept("checkout", "")
			compare(t, want, body)
			if met := want.Exposed[lift.Revenue]; met.Crossed < 1 || met.People < 5 || met.Arms[0].Users == 0 || met.Arms[1].Users == 0 {
				t.Fatalf("of %d people who have met it %d have crossed: %+v", met.People, met.Crossed, met.Arms)
			}
			if a := want.Reports[lift.Revenue].Arms[0].Attributed; a.Conversions < 2 || a.Positioned == 0 || a.Positioned == a.Conversions {
				t.Fatalf("attributed: %+v", a)
			}
			if r := want.Reports[lift.Revenue]; body.Metric != lift.Revenue || kept.Job != j.ID || kept.Definition == "" || r.Crossed < 1 || r.People < 5 {
				t.Fatalf("%+v of %d people, %d have crossed", kept, r.People, r.Crossed)
			}
			if at >= calls() {
				break
			}
		}
	}
}

// Tasks whose time ends after each group of users, and shards of users of two regions, make the report of one task.
func TestReportInPartsAndRegions(t *testing.T) {
	h := newHarness(t, 3)
	eu, us := h.store, storetest.New(t, h.Dial()...)
	both, err := store.Regional("eu", "eu", map[string]*store.Store{"eu": eu, "us": us}, func(string) (store.Place, error) {
		return store.Place{Read: "eu", Write: []string{"eu"}, Users: []string{"eu", "us"}}, nil
	})
	must.Succeed(t, err)
	h.on(both)
	_, err = h.Config.UpdateMove(t.Context(), app, func(a *config.App) error { a.Region = "eu"; return nil })
	must.Succeed(t, err)
	for _, mode := range []config.ResidencyMode{config.ResidencyPrepare, config.ResidencyOn} {
		_, err := h.Config.SetResidency(t.Context(), app, config.Residency{Mode: mode, Regions: []string{"eu", "us"}}, 0)
		must.Succeed(t, err)
	}
	e := h.half(20)
	h.experiment = e
	h.some(rand.New(rand.NewPCG(5, 1)), 40, 400, 50)
	h.expose(e, h.someExposed(rand.New(rand.NewPCG(5, 2)), 40, 19)...)
	for i := range 20 {
		must.Succeed(t, profile.ResidentsOf(h.engine).Move(t.Context(), h.app(), fmt.Sprint("u", 2*i), "us", h.Now.AddDate(1, 0, 0)))
	}
	h.runner.Budget = time.Nanosecond
	_, body := h.report(reports.Request{Experiment: "checkout"})
	want := h.want(e, experiment.Holdout{}, lift.DayOf(h.Now)-20, lift.DayOf(h.Now)-1, themselves)
	compare(t, want, body)
	if n := want.Reports[lift.Clicks].People; n < 20 {
		t.Errorf("%d people: too few to show anything", n)
	}

	h = newHarness(t, 5_000) // of which a task reads 1,024 at least
	h.experiment = e
	h.runner.Budget = time.Nanosecond
	h.some(rand.New(rand.NewPCG(6, 1)), 1_500, 3_000, 30)
	h.expose(e, h.someExposed(rand.New(rand.NewPCG(6, 2)), 1_600, 19)...)
	_, body = h.report(reports.Request{Experiment: "checkout"})
	compare(t, h.want(e, experiment.Holdout{}, lift.DayOf(h.Now)-20, lift.DayOf(h.Now)-1, themselves), body)
}

// The holdout is the experiment of its name, from the day on which it began. Its arms are those of the setting.
func TestReportOfTheHoldout(t *testing.T) {
	h := newHarness(t, 3)
	h.Now = time.Now().UTC().Add(-time.Hour) // a holdout begins by the clock of the store
	app, err := h.Config.SetHoldout(t.Context(), app, experiment.Holdout{Share: 0.2, Seed: "q"})
	must.Succeed(t, err)
	h.Now = h.Now.Add(30 * day)
	h.some(rand.New(rand.NewPCG(8, 1)), 60, 400, 29)
	kept, body := h.report(reports.Request{Experiment: experiment.OfHoldout})
	start := lift.DayOf(app.HoldoutSince)
	e := experiment.Experiment{Name: experiment.OfHoldout, StartAt: app.HoldoutSince, Seed: "q", Coverage: 1,
		Arms: []experiment.Arm{{Name: experiment.HeldOut, Weight: 0.2}, {Name: experiment.Personalized, Weight: 0.8}}}
	compare(t, h.want(e, experiment.Holdout{}, start, lift.DayOf(h.Now)-1, themselves), body)
	h.Now = h.Now.Add(time.Hour)
	must.Succeed(t, h.turn(0.1))
	again, _ := h.report(reports.Request{Experiment: experiment.OfHoldout})
	if again.Definition == kept.Definition || again.Job == kept.Job {
		t.Errorf("another share: %+v after %+v", again, kept)
	}
	must.Succeed(t, h.turn(0))
	if _, err := h.runner.Start(t.Context(), app.ID, reports.Request{Experiment: experiment.OfHoldout}); !errors.Is(err, reports.ErrUnknown) {
		t.Errorf("nobody is held out: %v", err)
	}
}

func (h *harness) turn(share float64) error {
	_, err := h.Config.SetHoldout(h.T.Context(), app, experiment.Holdout{Share: share})
	return err
}

// Days that cannot be reported are refused in words.
func TestDaysOfReports(t *testing.T) {
	h := newHarness(t, 3)
	today := lift.DayOf(h.Now)
	for _, tt := range []struct {
		started, ended int // days ago
		q              reports.Request
		from, to       lift.Day
		refused        string
	}{
		{20, -1, reports.Request{}, today - 20, today - 1, ""},
		{0, -1, reports.Request{}, today, today, ""},
		{200, -1, reports.Request{}, today - 89, today - 1, ""},
		{20, 10, reports.Request{}, today - 20, today - 10, ""},
		{20, -1, reports.Request{From: (today - 5).String(), To: today.String()}, today - 5, today, ""},
		{20, -1, reports.Request{From: (today - 21).String()}, 0, 0, "is before the first day"},
		{200, -1, reports.Request{From: (today - 90).String()}, 0, 0, "has left the log"},
		{20, -1, reports.Request{To: (today + 1).String()}, 0, 0, "is after the last day"},
		{20, 10, reports.Request{To: (today - 9).String()}, 0, 0, "is after the last day"},
		{20, -1, reports.Request{From: (today - 5).String(), To: (today - 6).String()}, 0, 0, "is before from"},
		{20, -1, reports.Request{From: "yesterday"}, 0, 0, "must be written as 2026-11-30"},
		{-1, -1, reports.Request{}, 0, 0, "there is nothing to report yet"},
	} {
		h.experiment = h.half(tt.started)
		if tt.ended >= 0 {
			h.experiment.StoppedAt = h.Now.Add(-time.Duration(tt.ended) * day)
		}
		tt.q.Experiment = "checkout"
		j, err := h.runner.Start(t.Context(), app, tt.q)
		if tt.refused != "" {
			if err == nil || !strings.Contains(err.Error(), tt.refused) {
				t.Errorf("%+v: %v, want %q", tt, err, tt.refused)
			}
			continue
		}
		must.Succeed(t, err)
		if p := job.ParamsOf[reports.Params](j); p.From != tt.from.String() || p.To != tt.to.String() {
			t.Errorf("%+v: from %s to %s", tt, p.From, p.To)
		}
		if _, err := h.runner.Start(t.Context(), app, tt.q); !errors.Is(err, reports.ErrBusy) {
			t.Errorf("another one at the same time: %v", err)
		}
		h.Drain()
	}
	if _, err := h.runner.Start(t.Context(), app, reports.Request{Experiment: "other"}); !errors.Is(err, reports.ErrUnknown) {
		t.Errorf("an experiment that is not there: %v", err)
	}
}

// Each night makes a report of what runs, one of the month before, once it has settled, and the last one of what has ended.
func TestNightlyReports(t *testing.T) {
	h := newHarness(t, 3)
	h.Now = time.Date(2026, 10, 20, 2, 0, 0, 0, time.UTC)
	h.experiment = h.half(5)
	h.some(rand.New(rand.NewPCG(2, 1)), 9, 90, 5)
	ended := h.Now.AddDate(0, 0, 40)
	var nights []string
	for ; h.Now.Before(ended.AddDate(0, 0, 8)); h.Now = h.Now.Add(day) {
		if !h.Now.Before(ended) {
			h.experiment.StoppedAt = ended
		}
		for range 2 { // a night that is asked for twice
			must.Succeed(t, h.runner.Nightly(t.Context(), app, job.Night{Date: h.Now.Format(time.DateOnly)}))
		}
		h.Drain()
		jobs, err := h.runner.List(t.Context(), app, 2)
		must.Succeed(t, err)
		for _, j := range jobs {
			if strings.Contains(j.ID, h.Now.Format(time.DateOnly)) {
				p := job.ParamsOf[reports.Params](j)
				nights = append(nights, fmt.Sprint(h.Now.Format("0102"), " ", p.From[5:], "..", p.To[5:], p.Month))
				h.WantState(j.ID, job.Done, "")
			}
		}
	}
	for _, want := range []string{"1020 10-15..10-19", "1103 10-15..10-312026-10", "1129 10-15..11-28", "1201 10-15..11-29"} {
		if !slices.Contains(nights, want) {
			t.Errorf("no report %q", want)
		}
	}
	if last := nights[len(nights)-1]; last != "1201 10-15..11-29" || len(nights) != 44 {
		t.Errorf("%d reports, the last one %q: %q", len(nights), last, nights)
	}
	october, body := h.kept("checkout", "2026-10")
	if _, latest := h.kept("checkout", ""); body.Reports[lift.Clicks].People == 0 || !october.AsOf.Before(h.Now.AddDate(0, 0, -20)) ||
		latest.Reports[lift.Clicks].Days != 46 {
		t.Errorf("%+v", body)
	}
}
