package console

import (
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/web/auth"
)

func init() {
	pages = append(pages, page{pattern: "GET /console/object", section: "simulator", template: "object", load: loadObject})
}

// objectPage is what goes with an object.
type objectPage struct {
	Now       time.Time
	Index, ID string
	Object    product
	AsOf      *api.Time // of the statistics; nil: the index has none
	Known     bool      // to the statistics
	Events    int64     // that they count for the object
	Columns   []simColumn
	Denied    bool   // the key may not recommend
	Records   bool   // the key may not read records
	Problem   string // what the engine refused
}

// objectModels are the models whose links the page shows.
var objectModels = []struct{ model, title, hint, none string }{
	{api.RecommendRelated, "Related", "What users turned to a few steps after it, and what the same users turn to.",
		"Nobody who turned to it turned to anything else."},
	{api.RecommendTogether, "Together", "What stands in baskets with it: conversions of one instant of a user.",
		"No basket holds it beside something else."},
	{api.RecommendNext, "Next", "What users turned to a few steps after it.", "Nobody went on from it."},
}

// objectPath is the address of the page of an object.
func objectPath(index, id string) string {
	return "/console/object?" + url.Values{"index": {index}, "id": {id}}.Encode()
}

func loadObject(v *visit) (any, error) {
	v.title = "Object"
	q := v.URL.Query()
	o := &objectPage{Now: v.now(), Index: strings.TrimSpace(q.Get("index")), ID: q.Get("id")}
	if o.Denied = !v.may(auth.Recommendation); o.Denied || o.ID == "" {
		return o, nil
	}
	withPictures(v.w.Header())
	answers, a := make([]part[api.RecommendAnswer], len(objectModels)), &asks{}
	for i, m := range objectModels {
		ask(a, &answers[i], func() (api.RecommendAnswer, error) {
			return v.engine.Recommend(v.Context(), api.RecommendRequest{
				Model: m.model, Index: o.Index, ObjectIDs: []string{o.ID}, Limit: maxCards, Explain: true})
		})
	}
	a.wait()
	for _, answer := range answers {
		if refused, ok := asRefusal(answer.err); ok {
			o.Problem = refusalText(refused)
			return o, nil
		}
		if answer.err != nil {
			return nil, answer.err
		}
	}
	first := answers[0].Got
	o.AsOf, o.Known = first.CrowdAsOf, len(first.Given) > 0
	if o.Known {
		o.Events = first.Given[0].Events
	}
	v.command = "affinity recommend related --explain --index " + shellArg(o.Index) + " --object " + shellArg(o.ID)
	return o, o.show(v, answers)
}

// show makes the columns of what the models bring in, without what fills up their answers.
func (o *objectPage) show(v *visit, answers []part[api.RecommendAnswer]) error {
	ids := []string{o.ID}
	for i := range answers {
		got := &answers[i].Got
		got.Items = slices.DeleteFunc(got.Items, func(item api.RecommendedItem) bool {
			return objectSources[item.Source] == ""
		})
		for _, item := range got.Items {
			ids = append(ids, item.ObjectID)
		}
	}
	o.Records = !v.may(mayReadRecords)
	shown, err := readProducts(v, o.Index, once(ids), !o.Records)
	if err != nil {
		return err
	}
	o.Object = shown[o.ID]
	for i, m := range objectModels {
		c := simColumn{Title: m.title, Hint: m.hint}
		for place, item := range answers[i].Got.Items {
			card := simCard{product: shown[item.ObjectID], ID: item.ObjectID, Place: place + 1, Score: item.Score,
				Terms: termsOf(item.Features, shown)}
			for j, f := range item.Features {
				if f.Name == api.FieldRelevancy { // of candidates it is their place today
					card.Terms[j].Name = "Links"
					card.Reasons = []simReason{{objectSources[item.Source], "", f.Value}}
				}
			}
			c.Cards = append(c.Cards, card)
		}
		if len(c.Cards) == 0 {
			c.Hint = m.none
		}
		o.Columns = append(o.Columns, c)
	}
	return nil
}

// objectSources say in words what brings an object in.
var objectSources = map[string]string{
	"sequence": "users went on to it", "neighbours": "the same users turn to it", "bought": "bought together",
}
