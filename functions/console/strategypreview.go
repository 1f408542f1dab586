package console

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

const (
	// previewSample is how many users a preview compares.
	previewSample = 200
	// leastSample is how many it compares where that takes too long.
	leastSample = 20
	// resentBytes bounds the JSON that each step of a slider sends again. A strategy of many aliases
	// has more.
	resentBytes = 16 << 10
	// previewTime is how long a preview while a slider moves may take.
	previewTime = 250 * time.Millisecond
)

// sample returns how many users to compare.
func (f draftForm) sample() int {
	n, err := strconv.Atoi(f.Get("sample"))
	if err != nil || n < leastSample || n > previewSample {
		return previewSample
	}
	return n
}

// previewView is what a draft would change.
type previewView struct {
	Edited   bool     // the JSON of the page is the draft
	Faults   []string // the engine refuses the draft
	Warnings []string // what of the draft has no effect
	Message  string   // the engine did not answer
	Same     bool     // the draft is the active strategy
	Rescore  bool     // scores change
	Changes  []string // what the draft changes, in words
	Got      *api.Preview
	Facets   []facetMoves
	Users    []userMoves
	Faded    bool // events are too old for the half-life

	// What stands outside of the preview and follows it.
	Sample    int // of the next preview
	Index     string
	HalfLives string
	JSON      string // empty: the text of the page stays
	Hash      string
}

type facetMoves struct {
	Facet  string
	Movers []moverRow
}

// moverRow is a value whose share changes, with the widths of its bars.
type moverRow struct {
	api.Mover
	Before, After float64
	Rises         bool
}

// Points is the change of the share in percent of the profile.
func (m moverRow) Points() string {
	text := strconv.FormatFloat(100*(m.ShareAfter-m.ShareBefore), 'f', 1, 64)
	if m.Rises {
		return "+" + text
	}
	return "−" + text[1:]
}

type userMoves struct {
	Token, Path   string
	Tau           float64
	Words         string
	Before, After []api.Affinity
}

// shownAffinities is how many values of a profile an example lists.
const shownAffinities = 4

// livePreview answers a slider that moves: what the draft would change, without the page around it.
func livePreview(v *visit, f draftForm) (any, error) {
	d, text, err := f.draft()
	shown := &previewView{Edited: f.Edited}
	if err == nil {
		active, _, err := readActive(v)
		if err != nil {
			return nil, err
		}
		shown = preview(v, active, text, f.sample())
		shown.Edited = f.Edited
	} else {
		_, shown.Faults = checkStrategy(text)
	}
	shown.HalfLives, shown.Sample = draftHalfLives(d), cmp.Or(shown.Sample, f.sample())
	if !f.Edited && len(text) < resentBytes {
		shown.JSON, shown.Hash = text, jsonHash(text)
	}
	page := &strategyPage{Now: v.now(), Preview: shown, Sample: shown.Sample}
	if f.Get("index") == "" {
		page.Index = shown.Index
	}
	return page, nil
}

// preview asks the engine what a draft would change.
func preview(v *visit, active activeStrategy, text string, sample int) *previewView {
	p := &previewView{Sample: sample}
	wanted, faults := checkStrategy(text)
	if len(faults) > 0 {
		p.Faults = faults
		return p
	}
	p.Warnings = wanted.Warnings()
	p.Changes, p.Rescore = changeWords(active.Strategy, wanted), !active.Strategy.SameScoring(wanted)
	if p.Same = active.Strategy.Equal(wanted); p.Same {
		return p
	}
	got, took, err := askPreview(v, text, sample)
	if err != nil {
		if refused, ok := errors.AsType[*api.Error](err); ok {
			p.Message = refused.Message
		} else {
			p.Message = "The engine did not answer."
		}
		return p
	}
	p.fill(got, wanted)
	p.Sample = nextSample(sample, got.Sampled, took)
	return p
}

// askPreview asks for a preview. An app can have one at a time: that of a slider's last step may not
// have ended yet.
func askPreview(v *visit, text string, sample int) (got api.Preview, took time.Duration, err error) {
	const attempts, pause = 8, 60 * time.Millisecond
	request := api.PreviewRequest{Strategy: json.RawMessage(text), Sample: &sample}
	for i := range attempts {
		begun := time.Now()
		got, err = v.engine.Strategies().Preview(v.Context(), request)
		took = time.Since(begun)
		var refused *api.Error
		if !errors.As(err, &refused) || refused.Status != http.StatusTooManyRequests || i == attempts-1 {
			return got, took, err
		}
		select {
		case <-v.Context().Done():
			return got, took, v.Context().Err()
		case <-time.After(pause):
		}
	}
	return got, took, err
}

// nextSample returns how many users the next preview compares, so that a slider that moves is
// followed at once.
func nextSample(asked, sampled int, took time.Duration) int {
	if sampled < asked { // these are all
		return asked
	}
	most := int(float64(asked) * float64(previewTime) / float64(max(took, time.Millisecond)))
	return min(max(most/10*10, leastSample), previewSample)
}

// fill takes over an answer.
func (p *previewView) fill(got api.Preview, wanted strategy.Strategy) {
	p.Got = &got
	p.Faded = got.Scale != nil && *got.Scale < 1e-3 && len(wanted.HalfLives) > 0
	if got.Objects != nil {
		p.Index = got.Objects.Index
	}
	widest := 0.0
	for _, f := range got.Facets {
		for _, m := range f.Movers {
			widest = max(widest, m.ShareBefore, m.ShareAfter)
		}
	}
	for _, f := range got.Facets {
		moves := facetMoves{Facet: f.Facet}
		for _, m := range f.Movers {
			moves.Movers = append(moves.Movers, moverRow{m, m.ShareBefore / widest * 100, m.ShareAfter / widest * 100,
				m.ShareAfter >= m.ShareBefore})
		}
		p.Facets = append(p.Facets, moves)
	}
	for _, e := range got.Examples {
		p.Users = append(p.Users, userMoves{
			Token: e.UserToken, Path: "/console/users/" + url.PathEscape(e.UserToken), Tau: e.RankCorrelation,
			Words:  tauWords(e.RankCorrelation),
			Before: e.Before[:min(len(e.Before), shownAffinities)], After: e.After[:min(len(e.After), shownAffinities)],
		})
	}
}

// Tau says how alike the orders of users are.
func (p *previewView) Tau() string {
	r := p.Got.RankCorrelation
	if r == nil {
		return ""
	}
	text := "On average a user gets " + tauWords(r.Mean)
	if worst := tauWords(r.P10); worst != tauWords(r.Mean) {
		text += "; a tenth of the users get " + worst + " or less"
	}
	return text + "."
}

// Headline counts users by what becomes of the objects that they see first, or, without a catalog, of what they
// like most. Nearly any change moves something at some place: these say whether people would notice.
func (p *previewView) Headline() api.PreviewOrders {
	if p.Got.Objects != nil {
		return p.Got.Objects.PreviewOrders
	}
	return p.Got.Values
}

// Shares returns for how many of the known users the order of values changes, as bars of 0 to 1.
func (p *previewView) Shares() []previewShare { return p.shares(p.Got.Values) }

// ObjectShares is Shares for the order of objects.
func (p *previewView) ObjectShares() []previewShare { return p.shares(p.Got.Objects.PreviewOrders) }

func (p *previewView) shares(o api.PreviewOrders) []previewShare {
	return []previewShare{
		p.share(o.TopChanged, "the first place changes"), p.share(o.TopFiveChanged, "the first five change"),
		p.share(o.Changed, "any place changes"),
	}
}

func (p *previewView) share(n int, says string) previewShare {
	return previewShare{n, float64(n) / float64(max(p.Got.Known, 1)), says}
}

// shownFacets is how many facets are shown at once.
const shownFacets = 2

// First are the facets that change most, and Rest the others.
func (p *previewView) First() []facetMoves { return p.Facets[:min(len(p.Facets), shownFacets)] }

func (p *previewView) Rest() []facetMoves { return p.Facets[min(len(p.Facets), shownFacets):] }

// previewShare is how many users are concerned.
type previewShare struct {
	N     int
	Share float64
	Says  string
}

// BarWidth is the width of the bar, of 100.
func (s previewShare) BarWidth() float64 { return slices.Max([]float64{0, min(100*s.Share, 100)}) }
