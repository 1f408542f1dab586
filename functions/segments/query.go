package segments

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/backend/answers"
	"github.com/affinityengine/affinity/shared/fault"
	"github.com/affinityengine/affinity/shared/rank/segment"
	"github.com/affinityengine/affinity/shared/score/strategy"
	"github.com/affinityengine/affinity/shared/web/auth"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// requestBody is the body of a query or of a saved segment.
type requestBody struct {
	where  segment.Condition
	limit  int
	cursor string
}

func decodeQuery(body []byte) (requestBody, error) { return decodeBody(body, true) }
func decodeSaved(body []byte) (requestBody, error) { return decodeBody(body, false) }

// decodeBody decodes a body that has where and, of a query, limit and cursor.
func decodeBody(body []byte, isQuery bool) (requestBody, error) {
	b := requestBody{limit: api.DefaultSegmentUsers}
	var keys map[string]jsontext.Value
	if err := jsonv2.Unmarshal(body, &keys); err != nil || keys == nil {
		if !json.Valid(body) {
			return b, httpapi.Errorf(http.StatusBadRequest, "Bad Request: the body is not valid JSON")
		}
		return b, fault.New(fault.Invalid, "The body must be an object with the key where, each key once")
	}
	if keys["where"] == nil {
		return b, fault.New(fault.Invalid, "where is missing: the condition")
	}
	var err error
	for key, value := range keys {
		switch {
		case key == "where":
		case isQuery && key == "limit":
			if b.limit, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil || b.limit < 0 ||
				b.limit > api.MaxSegmentUsers {
				return b, fault.New(fault.Invalid, "limit must be an integer from 0 to %d", api.MaxSegmentUsers)
			}
		case isQuery && key == "cursor":
			if err := json.Unmarshal(value, &b.cursor); err != nil {
				return b, fault.New(fault.Invalid, "cursor must be a string")
			}
		default:
			return b, fault.New(fault.Invalid, "Unknown field %q", key)
		}
	}
	b.where, err = segment.Parse(keys["where"])
	return b, err
}

// query answers a page of users, or their number alone.
func (h handler) query(w http.ResponseWriter, r *http.Request, app config.App, by caller) error {
	asked, err := httpapi.Decode(w, r, api.MaxSegmentBody, decodeQuery)
	if err != nil {
		return err
	}
	if asked.limit > 0 && !by.admin {
		return fmt.Errorf("query users: %w", auth.ErrForbidden)
	}
	page, err := h.Query.Page(r.Context(), app, asked.where, asked.limit, asked.cursor)
	if err != nil {
		return answers.Segments(w, err)
	}
	answer := api.SegmentPage{Total: countView(page.Total, by.admin), AsOf: api.AtMillis(page.AsOf), Cursor: page.Cursor}
	answer.Users = make([]api.SegmentUser, len(page.Users))
	for i, u := range page.Users {
		answer.Users[i] = api.SegmentUser{UserToken: u.Token, Score: u.Score}
	}
	return httpapi.WriteJSON(w, http.StatusOK, answer)
}

// histogram answers how the scores of a value are distributed.
func (h handler) histogram(w http.ResponseWriter, r *http.Request, app config.App, by caller) error {
	var filter segment.Filter
	filter.Facet, filter.Value = r.URL.Query().Get("facet"), r.URL.Query().Get("value")
	if filter.Facet == "" || filter.Value == "" {
		return fault.New(fault.Invalid, "facet and value are required: the value whose scores the histogram shows")
	}
	if text := r.URL.Query().Get("halfLife"); text != "" {
		var err error
		if filter.HalfLife, err = strategy.ParseHalfLife(text); err != nil {
			return httpapi.Errorf(http.StatusUnprocessableEntity, "halfLife %v", err)
		}
	}
	s, asOf, err := h.Query.Histogram(r.Context(), app, filter)
	if err != nil {
		return answers.Segments(w, err)
	}
	answer := api.SegmentHistogram{Users: countView(s.Users, by.admin), AsOf: api.AtMillis(asOf)}
	if s.Users > 0 && !answer.Users.Fewer {
		answer.Mean, answer.Quantiles = s.Mean, &api.SegmentQuantiles{P10: s.P10, P50: s.P50, P90: s.P90, P99: s.P99}
		for _, b := range s.Buckets {
			answer.Buckets = append(answer.Buckets, api.SegmentBucket{From: b.From, To: b.To, Users: int64(b.Users)})
		}
	}
	return httpapi.WriteJSON(w, http.StatusOK, answer)
}
