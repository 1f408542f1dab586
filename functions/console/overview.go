package console

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/checkup"
	"github.com/affinityengine/affinity/shared/web/auth"
)

func init() {
	pages = append(pages,
		page{pattern: "GET /{$}", section: "overview", template: "overview", load: loadOverview},
		page{pattern: "POST /console/audit", section: "overview", template: "audit", fragment: "content", load: runAudit},
	)
}

// overview is what the first page shows.
type overview struct {
	Now       time.Time
	Attention []attention
	Unchecked []string // what could not be looked at, so that something there may need attention
	Usage     part[api.Usage]
	Days      []int64 // events of the last thirty days, today last
	Today     api.UsageDay
	Before    api.UsageDay // a week ago
	Refused   part[api.RefusedEvents]
	Reasons   []reason
	Strategy  part[api.StrategyVersions]
	Active    *api.StrategyVersion
	Crowd     part[api.Crowd]
	Recompute part[api.Recomputes]
	Scores    part[api.Strategy]
	Seen      part[api.SeenEvents]
	Settings  part[api.AppSettings] // for keys that end
	Tests     part[api.Backtests]
	Recent    part[api.RecentEvents]
	Running   []jobLine
	Missing   string // why some jobs are not in the list; empty: all are
	Lift      *lift
}

// attention is something that a person should look at.
type attention struct {
	Level string // good or bad
	Text  string
	Path  string
	Link  string
}

// reason is why events were refused, with an example.
type reason struct {
	Text    string
	Count   int64
	At      time.Time
	Field   string // whose value has the wrong type, of the example; may be empty
	Hint    string // what to do, by the example; may be empty
	Example string
}

const (
	overviewDays = 30
	shownReasons = 5
)

func loadOverview(v *visit) (any, error) {
	v.title, v.command = "Overview", "affinity usage\naffinity events refused\naffinity recompute list"
	o := &overview{Now: v.now()}
	ctx, a := v.Context(), &asks{}
	day := o.Now.UTC()
	ask(a, &o.Usage, func() (api.Usage, error) {
		return v.engine.Usage(ctx, day.AddDate(0, 0, 1-overviewDays).Format(time.DateOnly), day.Format(time.DateOnly))
	})
	ask(a, &o.Refused, func() (api.RefusedEvents, error) { return v.engine.Events().Refused(ctx) })
	ask(a, &o.Strategy, func() (api.StrategyVersions, error) { return v.engine.Strategies().Versions(ctx) })
	ask(a, &o.Scores, func() (api.Strategy, error) { return v.engine.Strategies().Get(ctx) })
	ask(a, &o.Seen, func() (api.SeenEvents, error) { return v.engine.Events().Seen(ctx, api.DefaultSeenDays) })
	ask(a, &o.Crowd, func() (api.Crowd, error) { return v.engine.Jobs().Crowd(ctx) })
	ask(a, &o.Recompute, func() (api.Recomputes, error) { return v.engine.Jobs().Recomputes(ctx) })
	if v.may(auth.Admin) {
		ask(a, &o.Settings, func() (api.AppSettings, error) {
			return v.engine.AppSettings(ctx, api.AppSettingsQuery{Limit: api.MaxKeys})
		})
		ask(a, &o.Tests, func() (api.Backtests, error) { return v.engine.Jobs().Backtests(ctx) })
		ask(a, &o.Recent, func() (api.RecentEvents, error) {
			return v.engine.Events().Recent(ctx, api.RecentEventsQuery{Limit: 1})
		})
	}
	a.wait()
	o.count()
	o.list()
	o.Lift = o.lastBacktest(v)
	o.judge(v.may)
	return o, nil
}

// count takes what the cards show from the usage.
func (o *overview) count() {
	days := o.Usage.Got.Days
	for _, d := range days {
		o.Days = append(o.Days, d.Events)
	}
	if n := len(days); n > 7 {
		o.Today, o.Before = days[n-1], days[n-8]
	}
}

// list takes what the tables show from the other answers.
func (o *overview) list() {
	for text, n := range o.Refused.Got.Counts {
		o.Reasons = append(o.Reasons, reason{Text: text, Count: n})
	}
	slices.SortFunc(o.Reasons, func(a, b reason) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Text, b.Text))
	})
	o.Reasons = o.Reasons[:min(len(o.Reasons), shownReasons)]
	for i := range o.Reasons {
		for _, r := range o.Refused.Got.Refused { // the newest first
			if r.Reason == o.Reasons[i].Text {
				o.Reasons[i].At, o.Reasons[i].Example = r.At, string(r.Event)
				o.Reasons[i].Field, o.Reasons[i].Hint = r.Field, r.Hint
				break
			}
		}
	}
	if versions := o.Strategy.Got.Versions; len(versions) > 0 {
		o.Active = &versions[0]
	}
	o.Missing, _ = firstMissing(o.Recompute, o.Crowd)
	for _, j := range slices.Concat(o.jobs()...) {
		if j.Running() {
			o.Running = append(o.Running, j)
		}
	}
}

// jobs returns the recomputes, and the builds of statistics.
func (o *overview) jobs() [][]jobLine {
	return [][]jobLine{jobLines(o.Recompute.Got.Recomputes, recomputeJob), jobLines(o.Crowd.Got.Builds, crowdJob)}
}

// remedies are where a page helps with the fault of a check. An operator has the others.
var remedies = map[string]attention{
	checkup.Strategy:   {Path: "/console/strategy", Link: "Look at the strategy"},
	checkup.Events:     {Path: "/console/data", Link: "Look at what comes in"},
	checkup.Refused:    {Path: "#refused", Link: "See why"},
	checkup.Statistics: {Path: "/console/jobs", Link: "See the jobs"},
	checkup.Folds:      {Path: "/console/jobs", Link: "See the jobs"},
	checkup.Keys:       {Path: appPath + "#keys", Link: "See the keys"},
}

// judge finds what needs attention.
func (o *overview) judge(may func(anyOf ...string) bool) {
	answers := checkup.Answers{Now: o.Now, Usage: o.Usage.got(), Versions: o.Strategy.got(),
		Active: o.Scores.got(), Seen: o.Seen.got(),
		Crowd: o.Crowd.got(), Recomputes: o.Recompute.got(), Settings: o.Settings.got()}
	for _, c := range checkup.Find(answers) {
		at := remedies[c.Name]
		switch {
		case c.Name == checkup.Keys && !may(auth.Admin): // not the session's business
		case c.State == checkup.Unknown:
			o.Unchecked = append(o.Unchecked, c.Name)
		case c.State == checkup.Fault:
			at.Level, at.Text = "bad", capitalized(c.Text)
			if at.Path == "" {
				at.Text += ": " + c.Remedy
			}
			o.Attention = append(o.Attention, at)
		}
	}
	if len(o.Attention) == 0 && len(o.Unchecked) == 0 {
		o.Attention = append(o.Attention, attention{Level: "good", Text: "Nothing needs attention"})
	}
}

// Last says when the newest event came; "" if none came lately, or the session may not know.
func (o *overview) Last() string {
	if len(o.Recent.Got.Events) == 0 {
		return ""
	}
	return ago(o.Now, o.Recent.Got.Events[0].ReceivedAt.Time)
}

// Urgent reports whether something needs attention, or may.
func (o *overview) Urgent() bool {
	return len(o.Unchecked) > 0 || slices.ContainsFunc(o.Attention, func(a attention) bool { return a.Level != "good" })
}

// Most is the number of events of the busiest day.
func (o *overview) Most() int64 { return slices.Max(append([]int64{0}, o.Days...)) }

// Links reports whether the app is known to link tokens.
func (o *overview) Links() bool {
	mode := o.Settings.Got.Identity.Mode
	return o.Settings.OK && mode != "" && mode != "off"
}

// Change says how many events there are against a week ago.
func (o *overview) Change() string {
	switch {
	case o.Before.Events == 0 && o.Today.Events == 0:
		return "as a week ago"
	case o.Before.Events == 0:
		return "none a week ago"
	}
	return fmt.Sprintf("%s on the whole day a week ago", number(o.Before.Events))
}

// checkedUsers is how many users an audit from the page compares.
const checkedUsers = 50

func runAudit(v *visit) (any, error) {
	v.title, v.command = "Audit", fmt.Sprintf("affinity audit --sample %d", checkedUsers)
	if !v.may(auth.Admin) {
		return nil, &api.Error{Status: http.StatusForbidden, Message: "An audit needs a key with the permission admin"}
	}
	return v.engine.Jobs().Audit(v.Context(), api.AuditRequest{Sample: new(checkedUsers)})
}
