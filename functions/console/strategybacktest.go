package console

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/affinityengine/affinity/shared/api"
)

// draftBacktest is how far a backtest of a draft is, and what it found.
type draftBacktest struct {
	Path    string // empty: none was started
	Report  string // the page of the whole report
	Problem string
	Job     api.BacktestJob
	Done    float64      // 0 to 100
	Tables  []draftTable // within the category first
	Words   []string
}

// draftTable are the results of one set of candidates.
type draftTable struct {
	Title string
	Cases int
	Lines []backtestLine
}

// backtestLine is the result of an order, with its interval as places of 0 to 100.
type backtestLine struct {
	Title            string
	NDCG, Low, High  float64
	AtNDCG, From, To float64
	Strong           bool
}

// Width is the width of the interval.
func (l backtestLine) Width() float64 { return max(l.To-l.From, 0.5) }

// Running reports whether the page asks again.
func (b *draftBacktest) Running() bool { return b.Path != "" && !b.Job.State.Ended() }

// draftResult is how the engine names the strategy that a request gives first.
const draftResult = "strategy 1"

// backtestDraft starts a backtest of a draft and of the active strategy.
func backtestDraft(v *visit) (any, error) {
	v.title = "Backtest of a draft"
	f := readForm(v.PostForm)
	_, text, err := f.draft()
	_, faults := checkStrategy(text)
	index := strings.TrimSpace(f.Get("index"))
	switch {
	case err != nil || len(faults) > 0:
		return &draftBacktest{Problem: "The engine does not take the draft: " + strings.Join(faults, "; ")}, nil
	case index == "":
		return &draftBacktest{Problem: "Type the index whose objects are ranked."}, nil
	}
	active, _, err := readActive(v)
	if err != nil {
		return nil, err
	}
	request := api.BacktestRequest{Index: index, Strategies: []json.RawMessage{json.RawMessage(text)}}
	if active.Version > 0 {
		request.Strategies = append(request.Strategies, strconv.AppendInt(nil, active.Version, 10))
	}
	job, err := v.engine.Jobs().StartBacktest(v.Context(), request)
	if refused, ok := errors.AsType[*api.Error](err); ok && refused.Status < http.StatusInternalServerError &&
		refused.Status != http.StatusForbidden {
		return &draftBacktest{Problem: refused.Message}, nil
	}
	if err != nil {
		return nil, err
	}
	b := newDraftBacktest(job)
	if v.Header.Get("Hx-Request") == "" {
		return nil, redirect{b.Path}
	}
	return b, nil
}

func loadDraftBacktest(v *visit) (any, error) {
	v.title = "Backtest of a draft"
	job, err := v.engine.Jobs().Backtest(v.Context(), v.PathValue("id"))
	if err != nil {
		return nil, err
	}
	return newDraftBacktest(job), nil
}

func newDraftBacktest(job api.BacktestJob) *draftBacktest {
	id := url.PathEscape(job.ID)
	b := &draftBacktest{Path: "/console/strategy/backtests/" + id, Report: "/console/backtests/" + id, Job: job}
	if job.PlannedUsers > 0 {
		b.Done = min(100*float64(job.Users)/float64(job.PlannedUsers), 100)
	}
	if job.Backtest != nil {
		b.judge()
	}
	return b
}

// judge makes the lines of the results, and says what they mean: within the category
// first.
func (b *draftBacktest) judge() {
	for _, l := range b.Job.Lifts() {
		b.Words = append(b.Words, "This draft: "+long(l.Words())+".")
	}
	if caveat := b.Job.Caveat(); caveat != "" {
		b.Words = append(b.Words, long(caveat))
	}
	for i, t := range tablesOf(*b.Job.Backtest) {
		table := draftTable{Title: t.Title, Cases: t.Cases}
		var draft, active *api.BacktestResult
		for at := range t.Results {
			r := &t.Results[at]
			title := r.Title
			switch {
			case r.Name == draftResult:
				draft, title = &r.BacktestResult, "This draft"
			case strings.HasPrefix(r.Name, "version "):
				active, title = &r.BacktestResult, "Active, "+r.Name
			case !r.SameForAll():
				continue
			}
			table.Lines = append(table.Lines, backtestLine{title, r.NDCG, r.NDCGLow, r.NDCGHigh, 100 * r.Share, 100 * r.From,
				100 * r.To, r.Name == draftResult})
		}
		if i == 0 && draft != nil && active != nil {
			b.Words = append(b.Words, compareWords(*draft, *active, "the active strategy"))
		}
		b.Tables = append(b.Tables, table)
	}
}

// Limits say what a lift is not.
func (*draftBacktest) Limits() []string { return api.LiftLimits }

// Guide is the page about what a lift means.
func (*draftBacktest) Guide() string { return api.LiftGuide }

// compareWords says whether a result is better than another by more than chance. Intervals that do
// not overlap say so; those that do may still hide a small difference.
func compareWords(of, than api.BacktestResult, name string) string {
	text := "The draft ranks what users turned to next like " + name
	switch ratio := of.NDCG / max(than.NDCG, 1e-12); {
	case of.NDCG == than.NDCG:
		return text + ": the nDCG is the same."
	case than.NDCG == 0:
		text = "The draft ranks better than " + name + ", which never hits"
	case ratio >= 2:
		text = fmt.Sprintf("The draft ranks %.1f times as well as %s", ratio, name)
	case ratio > 1:
		text = fmt.Sprintf("The draft ranks %.1f %% better than %s", 100*(ratio-1), name)
	default:
		text = fmt.Sprintf("The draft ranks %.1f %% worse than %s", 100*(1-ratio), name)
	}
	if of.NDCGLow > than.NDCGHigh || of.NDCGHigh < than.NDCGLow {
		return text + ": the intervals do not overlap, so it is more than chance."
	}
	return text + ": the intervals overlap, so it may be chance."
}
