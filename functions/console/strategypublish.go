package console

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/score/strategy"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// reviewPage shows what the publication of a draft changes, and asks for it.
type reviewPage struct {
	Active activeStrategy
	Began  int64 // the version that the draft began with
	JSON   string
	Faults []string
	// Warnings say what of the draft has no effect.
	Warnings []string
	Changes  []string
	Effect   string
	Rescore  bool
	Same     bool
	Raced    bool // another version was published since the draft began
	Note     string
	Problem  string
	Ago      string
	// Preview is what the draft would change for users, now; nil: it changes no order.
	Preview *previewView
}

// reviewDraft shows what a draft changes.
func reviewDraft(v *visit) (any, error) {
	f := readForm(v.PostForm)
	_, text, broken := f.draft()
	r, err := newReview(v, text, f.Get("version"))
	if err != nil {
		return nil, err
	}
	if broken != nil && len(r.Faults) == 0 {
		r.Faults = []string{broken.Error()}
	}
	r.preview(v, f.sample())
	return r, nil
}

// preview adds what the draft would change for users. Its reader is about to publish.
func (r *reviewPage) preview(v *visit, sample int) {
	if len(r.Faults) == 0 && !r.Same {
		r.Preview = preview(v, r.Active, r.JSON, sample)
	}
}

// errNoVersion refuses a form that does not say which version its author saw.
var errNoVersion = httpapi.Errorf(http.StatusUnprocessableEntity,
	"The form does not name the version that was active: open the page again")

// newReview compares a draft with the active strategy. began is the version that its author saw.
func newReview(v *visit, text, began string) (*reviewPage, error) {
	v.title = "Publish the strategy"
	active, _, err := readActive(v)
	if err != nil {
		return nil, err
	}
	v.command = fmt.Sprintf("affinity strategy diff %d draft.json && affinity strategy set draft.json --note WHY --if-version %d", active.Version, active.Version)
	r := &reviewPage{Active: active, JSON: text, Ago: ago(v.now(), active.SetAt)}
	var ok bool
	if r.Began, ok = versionOf(began); !ok {
		return nil, errNoVersion
	}
	r.Raced = r.Began != active.Version
	var wanted strategy.Strategy
	if wanted, r.Faults = checkStrategy(text); len(r.Faults) > 0 {
		return r, nil
	}
	r.Warnings = wanted.Warnings()
	r.Changes, r.Effect = changeWords(active.Strategy, wanted), effectWords(active.Strategy, wanted)
	r.Same, r.Rescore = active.Strategy.Equal(wanted), !active.Strategy.SameScoring(wanted)
	return r, nil
}

// publishDraft makes a draft the active strategy, unless another has been published since the person
// saw the difference.
func publishDraft(v *visit) (any, error) {
	text := typedJSON(v.PostForm)
	r, err := newReview(v, text, v.PostForm.Get("version"))
	if err != nil {
		return nil, err
	}
	r.Note = strings.TrimSpace(v.PostForm.Get("note"))
	if utf8.RuneCountInString(r.Note) > api.MaxStrategyNote {
		r.Problem = fmt.Sprintf("A note has at most %d characters", api.MaxStrategyNote)
	}
	if r.Same {
		return nil, r.alreadyActive()
	}
	if len(r.Faults) > 0 || r.Raced || r.Problem != "" {
		r.preview(v, previewSample)
		return r, nil
	}
	refused := v.engine.Strategies().SetJSON(v.Context(), []byte(text), client.SetOptions{Note: r.Note, If: &r.Began})
	if refused == nil {
		return nil, done("/console/strategy", "strategy-published")
	}
	if !isConflict(refused) {
		return nil, refused
	}
	// Another version came between the look at the active one and the request.
	again, err := newReview(v, text, v.PostForm.Get("version"))
	if err != nil {
		return nil, err
	}
	if again.Same {
		return nil, again.alreadyActive()
	}
	if !again.Raced { // the engine refuses changes for another reason
		return nil, refused
	}
	again.Note = r.Note
	again.preview(v, previewSample)
	return again, nil
}

// alreadyActive returns to the draft, which is the active strategy. If it was not when its author began,
// the form was sent twice, or another person published the same.
func (r *reviewPage) alreadyActive() error {
	if r.Raced {
		return done("/console/strategy", "strategy-is")
	}
	return done("/console/strategy", "strategy-same")
}

// isConflict reports whether the engine refuses a request as things are now.
func isConflict(err error) bool {
	refused, ok := errors.AsType[*api.Error](err)
	return ok && refused.Status == http.StatusConflict
}
