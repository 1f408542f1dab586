package rank

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/affinityengine/affinity/shared/admission"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/catalog/where"
	"github.com/affinityengine/affinity/shared/rank/recommend"
	"github.com/affinityengine/affinity/shared/score/consent"
	"github.com/affinityengine/affinity/shared/serve/ranker"
	"github.com/affinityengine/affinity/shared/web/auth"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// recommend answers objects that a model brings in, in the user's order.
func (h handler) recommend(w http.ResponseWriter, r *http.Request) error {
	began := time.Now()
	app, grant, body, err := h.admit(w, r, api.MaxRecommendBody)
	if err != nil {
		return err
	}
	in, err := decodeRecommend(body, r.Header.Values(userHeader))
	if err != nil {
		return err
	}
	access, err := allowed(app, grant, in.Request, in.weighs)
	if err != nil {
		return err
	}
	if err := admission.Take(r.Context(), draftWeight*int64(in.draftBytes)); err != nil {
		return err
	}
	h.Usage.Reads(app.ID, 1)
	answer, err := h.Orderer.Recommend(r.Context(), app, in.Recommendation)
	if err != nil {
		return fmt.Errorf("recommend: %w", err)
	}
	id := cmp.Or(in.id, newID())
	if access == auth.OrderOnly {
		order := api.RankOrder{ID: id, Items: make([]api.OrderedItem, len(answer.Items))}
		for i, item := range answer.Items {
			order.Items[i].ObjectID = item.ObjectID
		}
		return httpapi.WriteJSON(w, http.StatusOK, order)
	}
	ranked := render(answer.Answer, in.Explain)
	view := api.RecommendAnswer{ID: id, Model: string(in.Model), StrategyVersion: ranked.StrategyVersion,
		ScoringVersion: ranked.ScoringVersion, CrowdAsOf: ranked.CrowdAsOf, Fallback: ranked.Fallback, Person: ranked.Person,
		Experiment: ranked.Experiment,
		Items:      make([]api.RecommendedItem, len(ranked.Items)), Took: time.Since(began).Milliseconds()}
	if in.Explain && in.Model.OfObjects() {
		view.Given = make([]api.GivenObject, len(answer.Links))
		for i, of := range answer.Links {
			view.Given[i] = api.GivenObject{ObjectID: of.ObjectID, Events: int64(of.Events)}
		}
	}
	for i, item := range ranked.Items {
		view.Items[i] = api.RecommendedItem{ObjectID: item.ObjectID, Source: answer.Sources[i], Score: item.Score,
			Features: item.Features}
	}
	return httpapi.WriteJSON(w, http.StatusOK, view)
}

// recommendation is a body whose fields are checked.
type recommendation struct {
	id, weighs string // as in request
	draftBytes int
	ranker.Recommendation
}

// decodeRecommend reads a body. Its errors are those of decode.
func decodeRecommend(body []byte, users []string) (recommendation, error) {
	if !utf8.Valid(body) {
		return recommendation{}, malformed("the body is not valid UTF-8")
	}
	var out recommendation
	d := newDecoder(string(body), &candidateList{})
	if err := d.read(func(name string) error { return d.recommendField(&out, name) }); err != nil {
		return recommendation{}, err
	}
	if err := errors.Join(d.completeUser(users), d.completeStrategy()); err != nil {
		return recommendation{}, err
	}
	out.id, out.weighs, out.draftBytes, out.Request = d.out.id, d.out.weighs, d.out.draftBytes, d.out.Request
	out.Exclude = d.out.exclude
	out.Limit, out.Surface = cmp.Or(out.Limit, api.DefaultRecommended), consent.Recommend
	return out, out.check()
}

// check checks what the request must have.
func (r *recommendation) check() error {
	switch {
	case r.Model == "":
		return invalid("model is required: one of %s", models)
	case r.Index == "":
		return invalid("index is required")
	case r.Model.OfObjects() && len(r.ObjectIDs) == 0:
		return invalid("objectIDs is required: the objects for which %s recommends others", r.Model)
	case !r.Model.OfObjects() && len(r.ObjectIDs) > 0:
		return invalid("objectIDs is not for the model %s: leave it out, or name in exclude what the answer must not have",
			r.Model)
	case r.Limit > api.MaxRecommended:
		return invalid("limit must be at most %d, got %d", api.MaxRecommended, r.Limit)
	}
	return nil
}

// models lists recommend.Models in messages.
const models = "related, together, next, trending, for-you"

// recommendField reads the value of a key.
func (d *decoder) recommendField(out *recommendation, name string) error {
	switch name {
	case "model", "objectIDs", "where":
		if d.json.PeekKind() == jsontext.KindNull {
			return d.json.SkipValue()
		}
	case "items":
		return invalid("Unknown field %s", quote(name))
	}
	switch name {
	case "model":
		text, err := d.string()
		for _, m := range recommend.Models {
			if text == string(m) {
				out.Model = m
				return err
			}
		}
		if err == nil {
			err = invalid("model must be one of %s, got %s", models, quote(text))
		}
		return err
	case "objectIDs":
		return d.ids(&out.ObjectIDs, api.MaxRecommendObjects)
	case "where":
		value, err := d.json.ReadValue()
		if err != nil {
			return err
		}
		out.Where, err = where.Decode(value)
		return err
	}
	return d.field(name)
}

// ids reads a list of objectIDs.
func (d *decoder) ids(into *[]string, most int) error {
	if kind := d.json.PeekKind(); kind != jsontext.KindBeginArray {
		return d.wrong("a list", kind)
	}
	name := path(d.json.StackPointer())
	return d.array(func() error {
		id, err := d.objectID()
		if err == nil && len(*into) == most {
			err = invalid("%s has more than %d objectIDs", name, most)
		}
		*into = append(*into, id)
		return err
	})
}
