package console

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/strategy"
)

// reviewPage shows what the publication of a draft changes, and asks for it.
type reviewPage struct {
	Active  activeStrategy
	Began   int64 // the version that the draft began with
	JSON    string
	Faults  []string
	Changes []string
	Effect  string
	Rescore bool
	Same    bool
	Raced   bool // another version was published since the draft began
	Note    string
	Problem string
	Ago     string
}

// reviewDraft shows what a draft changes.
func reviewDraft(v *visit) (any, error) {
	f := readForm(v.PostForm)
	_, text, err := f.draft()
	if err != nil {
		_, faults := checkStrategy(text)
		v.title = "Publish the strategy"
		return &reviewPage{JSON: text, Faults: faults}, nil
	}
	r, err := newReview(v, text, f.Get("version"))
	return r, err
}

// newReview compares a draft with the active strategy.
func newReview(v *visit, text, began string) (*reviewPage, error) {
	v.title, v.command = "Publish the strategy", "affinity strategy diff "+"ACTIVE draft.json && affinity strategy set draft.json"
	active, _, err := readActive(v)
	if err != nil {
		return nil, err
	}
	v.command = fmt.Sprintf("affinity strategy diff %d draft.json && affinity strategy set draft.json --note WHY", active.Version)
	r := &reviewPage{Active: active, JSON: text, Ago: ago(v.now(), active.SetAt)}
	var wanted strategy.Strategy
	if wanted, r.Faults = checkStrategy(text); len(r.Faults) > 0 {
		return r, nil
	}
	r.Changes, r.Effect = changeWords(active.Strategy, wanted), effectWords(active.Strategy, wanted)
	r.Same, r.Rescore = active.Strategy.Equal(wanted), !active.Strategy.SameScoring(wanted)
	if n, ok := versionOf(began); ok {
		r.Began, r.Raced = n, n != active.Version
	}
	return r, nil
}

// publishDraft makes a draft the active strategy, unless another has been published since the person
// saw the difference.
func publishDraft(v *visit) (any, error) {
	text := strings.TrimSpace(strings.ReplaceAll(v.PostForm.Get("json"), "\r\n", "\n"))
	r, err := newReview(v, text, v.PostForm.Get("version"))
	if err != nil {
		return nil, err
	}
	r.Note = strings.TrimSpace(v.PostForm.Get("note"))
	if utf8.RuneCountInString(r.Note) > api.MaxStrategyNote {
		r.Problem = fmt.Sprintf("A note has at most %d characters", api.MaxStrategyNote)
	}
	if len(r.Faults) > 0 || r.Raced || r.Problem != "" {
		return r, nil
	}
	if r.Same {
		return nil, done("/console/strategy", "strategy-same")
	}
	if err := v.engine.SetNotedStrategyJSON(v.Context(), []byte(text), r.Note); err != nil {
		return nil, err
	}
	return nil, done("/console/strategy", "strategy-"+published(v, r.Active.Version, "published"))
}

// published tells what a notice says after a publication: another may have come between the look at
// the active version and it.
func published(v *visit, before int64, what string) string {
	list, err := v.engine.StrategyVersions(v.Context())
	if err == nil && before > 0 && len(list.Versions) > 0 && list.Versions[0].Version > before+1 {
		return "raced"
	}
	return what
}

// versionPath is the address of a version's page.
func versionPath(version int64) string {
	return "/console/strategy/versions/" + strconv.FormatInt(version, 10)
}
