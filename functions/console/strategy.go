package console

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/score/strategy"
	"github.com/affinityengine/affinity/shared/web/auth"
)

func init() {
	const section = "strategy"
	pages = append(pages,
		page{pattern: "GET /console/strategy", section: section, template: "strategy", load: loadStrategy},
		page{pattern: "POST /console/strategy", section: section, draft: true, template: "strategy", load: changeDraft},
		page{pattern: "POST /console/strategy/preview", section: section, draft: true, template: "strategy",
			fragment: "preview", load: changeDraft},
		page{pattern: "POST /console/strategy/review", section: section, draft: true, template: "strategyreview",
			load: reviewDraft},
		page{pattern: "POST /console/strategy/publish", section: section, draft: true, template: "strategyreview",
			load: publishDraft},
		page{pattern: "POST /console/strategy/backtest", section: section, draft: true, template: "strategybacktest",
			fragment: "progress", load: backtestDraft},
		page{pattern: "GET /console/strategy/backtests/{id}", section: section, template: "strategybacktest",
			fragment: "progress", poll: true, load: loadDraftBacktest},
		page{pattern: "GET /console/strategy/versions", section: section, template: "strategyversions", load: loadVersions},
		page{pattern: "GET /console/strategy/versions/{version}", section: section, template: "strategyversion",
			load: loadVersion},
		page{pattern: "POST /console/strategy/versions/{version}/restore", section: section,
			template: "strategyversion", load: restoreVersion},
	)
	notices["strategy-published"] = "The strategy is published. Every read uses it within five seconds."
	notices["strategy-restored"] = "The strategy is restored as a new version. Every read uses it within five seconds."
	notices["strategy-is"] = "This draft is published: it is the active strategy."
	notices["strategy-same-version"] = "The strategy of this version is the active one."
	notices["strategy-same"] = "Nothing was published: the draft is the active strategy."
}

// activeStrategy is the strategy of the app now.
type activeStrategy struct {
	Version  int64 // 0: none was set
	SetAt    time.Time
	Strategy strategy.Strategy
	raw      string // as the engine stores it
}

// readActive returns the active strategy, and the kept versions.
func readActive(v *visit) (activeStrategy, []api.StrategyVersion, error) {
	list, err := v.engine.Strategies().Versions(v.Context())
	if err != nil {
		return activeStrategy{}, nil, err
	}
	var a activeStrategy
	if len(list.Versions) > 0 {
		a.Version, a.SetAt = list.Versions[0].Version, list.Versions[0].SetAt.Time
	}
	a.Strategy, a.raw, err = readVersion(v, a.Version)
	return a, list.Versions, err
}

// readVersion returns a version of the strategy, and its JSON. Version 0 is what an app has before
// any is set.
func readVersion(v *visit, version int64) (s strategy.Strategy, raw string, err error) {
	var body []byte
	ctx := client.WithRawAnswer(v.Context(), &body)
	if version == 0 {
		s, err = v.engine.Strategies().Get(ctx)
	} else {
		s, err = v.engine.Strategies().Version(ctx, version)
	}
	return s, string(body), err
}

// seen is what the events of the last days contained.
type seen struct {
	Days      int
	Known     bool // the engine counts it
	Truncated bool
	Why       string           // it is not known
	events    map[string]int64 // by type and name
	facets    map[string]int64
	order     []string // of the events' names, those of the most events first
	facetsBy  []string
}

// readSeen asks what events contained. A deployment may not count it yet.
func readSeen(v *visit) seen {
	s := seen{Days: api.DefaultSeenDays, events: map[string]int64{}, facets: map[string]int64{}}
	answer, err := v.engine.Events().Seen(v.Context(), s.Days)
	if err != nil {
		s.Why = "What events contain cannot be read now."
		if refused, ok := errors.AsType[*api.Error](err); ok &&
			(refused.Status == http.StatusNotFound || refused.Status == http.StatusServiceUnavailable) {
			s.Why = "This engine does not count what events contain."
		}
		return s
	}
	s.Known, s.Days, s.Truncated = true, answer.Days, answer.Truncated
	for _, e := range answer.Events {
		name := e.EventType + "/" + e.EventName
		s.events[name], s.order = e.Count, append(s.order, name)
	}
	for _, f := range answer.Facets {
		s.facets[f.Facet], s.facetsBy = f.Count, append(s.facetsBy, f.Facet)
	}
	return s
}

// loadStrategy shows the active strategy as a draft, or the version that the address names.
func loadStrategy(v *visit) (any, error) {
	p, err := newStrategyPage(v)
	if err != nil {
		return nil, err
	}
	text := p.Active.raw
	if from, ok := versionOf(v.URL.Query().Get("from")); ok && from != p.Active.Version {
		if _, text, err = readVersion(v, from); err != nil {
			return nil, err
		}
		p.From = from
	}
	d, err := parseDraft(text)
	if err != nil {
		return nil, err
	}
	p.Began = p.Active.Version
	p.show(d, d.JSON(), false)
	p.Experiment, err = readExperiment(v)
	return p, err
}

// newStrategyPage returns a page without a draft.
func newStrategyPage(v *visit) (*strategyPage, error) {
	v.title, v.command = "Strategy", "affinity strategy get > draft.json && affinity strategy preview draft.json --sample 200 && affinity strategy set draft.json"
	p := &strategyPage{Now: v.now(), Sample: previewSample}
	var wait sync.WaitGroup
	wait.Go(func() { p.Seen = readSeen(v) })
	if v.may(auth.Admin) {
		wait.Go(func() { p.Indexes = readIndexes(v) })
	}
	var err error
	p.Active, p.Versions, err = readActive(v)
	wait.Wait()
	if len(p.Indexes) > 0 {
		p.Index = p.Indexes[0]
	}
	return p, err
}

// readIndexes returns the indexes whose objects have statistics, for a backtest. None is no fault.
func readIndexes(v *visit) (names []string) {
	crowd, err := v.engine.Jobs().Crowd(v.Context())
	if err != nil {
		return nil
	}
	for _, g := range crowd.Generations {
		names = append(names, g.Index)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// changeDraft shows the draft of a form, after the change that a button asks for, and what it would
// change.
func changeDraft(v *visit) (any, error) {
	f := readForm(v.PostForm)
	if v.Header.Get("Hx-Request") != "" && f.Get("do") == "" {
		return livePreview(v, f)
	}
	p, err := newStrategyPage(v)
	if err != nil {
		return nil, err
	}
	p.Began = p.Active.Version
	if f.Has("version") { // else the draft begins now
		var ok bool
		if p.Began, ok = versionOf(f.Get("version")); !ok {
			return nil, errNoVersion
		}
	}
	d, text, err := f.draft()
	if err != nil {
		p.Problem = err.Error()
		p.show(d, text, true)
		_, p.Faults = checkStrategy(text)
		return p, nil
	}
	if p.Problem = f.change(d); p.Problem == "" && f.Get("do") != "" {
		text = d.JSON()
	}
	switch f.Get("do") {
	case "suggest":
		p.Suggestions = suggest(v, d)
	case "begin":
		first, suggested, err := begin(v)
		if err != nil {
			return nil, err
		}
		if p.Beginning = first; first.Why == "" {
			d, text = suggested, suggested.JSON()
		}
	}
	p.keep(f)
	p.show(d, text, false)
	p.Preview = preview(v, p.Active, text, f.sample())
	p.Index = cmp.Or(p.Index, p.Preview.Index)
	return p, nil
}
