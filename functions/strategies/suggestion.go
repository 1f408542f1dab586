package strategies

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/affinityengine/affinity/shared/admission"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/limit"
	"github.com/affinityengine/affinity/shared/app/usage"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/judge/suggest"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// maxSuggestionFilters bounds the memory that the objects of a suggestion take.
const maxSuggestionFilters = 200_000

// suggestion answers a first strategy by what was seen, and changes nothing.
func (h handler) suggestion(w http.ResponseWriter, r *http.Request, app string) error {
	days, err := httpapi.CountOption(r, "days", api.MaxSeenDays, api.MaxSeenDays)
	if err != nil {
		return err
	}
	leave, err := h.Limits.Enter(app, limit.Preview)
	if err != nil {
		return err
	}
	defer leave()
	ctx := r.Context()
	if err := admission.AwaitTurn(ctx, admission.TurnWait); err != nil {
		return err
	}
	today := usage.DayOf(h.Now())
	names, err := h.Store.Usage.Names(ctx, app, today-usage.Day(days)+1, today)
	if err != nil {
		return fmt.Errorf("suggest a strategy: %w", err)
	}
	kinds := make([]suggest.Kind, 0, len(names.Events))
	for k, n := range names.Events {
		kinds = append(kinds, suggest.Kind{Type: event.Type(k.Type), Name: k.Name, Count: n})
	}
	objects, bands, err := h.suggestionObjects(ctx, app)
	if err != nil {
		return fmt.Errorf("suggest a strategy: %w", err)
	}
	found, err := suggest.Find(kinds, objects, names.Facets)
	if err != nil {
		return err
	}
	answer := found.API()
	answer.Days, answer.Objects, answer.NumericBands = days, objects.Len(), bands
	return httpapi.WriteJSON(w, http.StatusOK, answer)
}

// suggestionObjects returns some objects of an app, and the bands that prices need, by index.
func (h handler) suggestionObjects(ctx context.Context, app string) (*suggest.Objects,
	map[string]map[string][]float64, error) {
	indexes, err := h.Store.Catalog.FirstCatalogIndexes(ctx, app, api.MaxSuggestionIndexes)
	if err != nil {
		return nil, nil, err
	}
	all, bands := &suggest.Objects{}, map[string]map[string][]float64{}
	filters, enough := 0, errors.New("enough objects")
	for i, index := range indexes {
		var of suggest.Objects
		most := (api.MaxSuggestionObjects - all.Len()) / (len(indexes) - i)
		err := h.Store.Catalog.ScanFiltersAfter(ctx, app, index, "", func(_ string, f []event.Filter) error {
			if of.Len() == most || filters+len(f) > maxSuggestionFilters {
				return enough
			}
			filters += len(f)
			of.Add(f)
			all.Add(f)
			return nil
		})
		if err != nil && !errors.Is(err, enough) {
			return nil, nil, err
		}
		if b := of.Bands(); len(b) > 0 {
			bands[index] = b
		}
	}
	return all, bands, nil
}
