package segments

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"

	"github.com/affinityengine/affinity/shared/admission"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/limit"
	"github.com/affinityengine/affinity/shared/backend/answers"
	"github.com/affinityengine/affinity/shared/fault"
	"github.com/affinityengine/affinity/shared/serve/query"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// maxSampledUsers is how many users the sample of a count is chosen from at most.
const maxSampledUsers = 50_000

// values answers the values of a facet that most users have.
func (h handler) values(w http.ResponseWriter, r *http.Request, app config.App, by caller) error {
	facet, limit := r.URL.Query().Get("facet"), api.DefaultValues
	if facet == "" {
		return fault.New(fault.Invalid, "facet is required: the facet whose values to count")
	}
	var err error
	if text := r.URL.Query().Get("limit"); text != "" {
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > api.MaxValues {
			return fault.New(fault.Invalid, "limit must be an integer from 1 to %d", api.MaxValues)
		}
	}
	sample := 0
	if text := r.URL.Query().Get("sample"); text != "" {
		if sample, err = strconv.Atoi(text); err != nil || sample < 0 || sample > api.MaxValuesSample {
			return fault.New(fault.Invalid, "sample must be an integer from 0 to %d", api.MaxValuesSample)
		}
	}
	found, err := h.Query.Values(r.Context(), app, facet, limit)
	if err != nil {
		return answers.Segments(w, err)
	}
	from, err := h.countEvents(r.Context(), app, facet, found.Values, sample)
	if err != nil {
		return err
	}
	answer := api.Values{Facet: facet, Values: make([]api.Value, len(found.Values)), Total: found.Total,
		AsOf: api.AtMillis(found.AsOf), Sample: from}
	for i, v := range found.Values {
		answer.Values[i] = api.Value{Value: v.Value, Users: countView(v.Users, by.admin)}
		if v.Events >= 0 && !answer.Values[i].Users.Fewer {
			answer.Values[i].Events = &found.Values[i].Events
		}
	}
	return httpapi.WriteJSON(w, http.StatusOK, answer)
}

// countEvents sets the events of values from a sample of users, and says which. Without
// a sample it does nothing.
func (h handler) countEvents(ctx context.Context, app config.App, facet string, values []query.Value,
	sample int) (*api.ValuesSample, error) {
	if sample == 0 {
		return nil, nil
	}
	leave, err := h.Limits.Enter(app.ID, limit.Preview)
	if err != nil {
		return nil, err
	}
	defer leave()
	if err := admission.AwaitTurn(ctx, admission.TurnWait); err != nil {
		return nil, err
	}
	rnd := rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	chosen, err := h.Store.Users.SampleUsers(ctx, app.ID, sample, maxSampledUsers, rnd)
	if err != nil {
		return nil, fmt.Errorf("count events of values: %w", err)
	}
	from := &api.ValuesSample{Users: len(chosen.Users), All: chosen.All && chosen.Read == len(chosen.Users)}
	return from, h.Query.CountEvents(ctx, app, facet, values, chosen.Users, from.All)
}
