package recomputes

import (
	"net/http"
	"strconv"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/fault"
	"github.com/affinityengine/affinity/shared/httpapi"
)

// values answers the values of a facet that most users have.
func (h handler) values(w http.ResponseWriter, r *http.Request) error {
	app, _, admin, err := h.counter(r)
	if err != nil {
		return err
	}
	facet, limit := r.URL.Query().Get("facet"), api.DefaultValues
	if facet == "" {
		return fault.New(fault.Invalid, "facet is required: the facet whose values to count")
	}
	if text := r.URL.Query().Get("limit"); text != "" {
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > api.MaxValues {
			return fault.New(fault.Invalid, "limit must be an integer from 1 to %d", api.MaxValues)
		}
	}
	found, err := h.Query.Values(r.Context(), app, facet, limit)
	if err != nil {
		return segmentsAnswer(w, err)
	}
	answer := api.Values{Facet: facet, Values: make([]api.Value, len(found.Values)), Total: found.Total, AsOf: api.AtMillis(found.AsOf)}
	for i, v := range found.Values {
		answer.Values[i] = api.Value{Value: v.Value, Users: countView(v.Users, admin)}
	}
	return httpapi.WriteJSON(w, http.StatusOK, answer)
}
