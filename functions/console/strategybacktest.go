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
	Done    float64 // 0 to 100
	Lines   []backtestLine
	Words   []string
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

// judge makes the lines of the results, and says what they mean.
func (b *draftBacktest) judge() {
	var draft, active, popularity *api.BacktestResult
	highest := 0.0
	for i := range b.Job.Results {
		r := &b.Job.Results[i]
		switch {
		case r.Name == draftResult:
			draft = r
		case strings.HasPrefix(r.Name, "version "):
			active = r
		case r.Name == "popularity":
			popularity = r
		default:
			continue
		}
		highest = max(highest, r.NDCGHigh, r.NDCG)
	}
	add := func(title string, r *api.BacktestResult, strong bool) {
		if r == nil {
			return
		}
		place := func(x float64) float64 { return 100 * x / max(highest, 1e-9) }
		b.Lines = append(b.Lines, backtestLine{title, r.NDCG, r.NDCGLow, r.NDCGHigh, place(r.NDCG), place(r.NDCGLow),
			place(r.NDCGHigh), strong})
	}
	add("This draft", draft, true)
	if active != nil {
		add("Active, "+active.Name, active, false)
	}
	add("Popularity", popularity, false)
	if draft == nil {
		return
	}
	if active != nil {
		b.Words = append(b.Words, compareWords(*draft, *active, "the active strategy"))
	}
	if popularity != nil {
		b.Words = append(b.Words, compareWords(*draft, *popularity, "the order by popularity"))
	}
}

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
