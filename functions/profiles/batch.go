package profiles

import (
	"errors"
	"net/http"

	"github.com/go-json-experiment/json"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// batch is a decoded request for many profiles.
type batch struct {
	users       []string // each once
	limit       int
	consistency *string // nil: the app's
	segments    bool    // answer with the names of segments
	surface     []string
	holdout     string // "": profiles of users who are held out have no affinities
}

// decodeBatch reads {"userTokens":[...],"limit":N,"consistency":"...","segments":B}, and drops
// repeated tokens.
func decodeBatch(body []byte) (batch, error) {
	var in *api.ProfilesRequest
	switch err := json.Unmarshal(body, &in, json.RejectUnknownMembers(true)); {
	case errors.Is(err, json.ErrUnknownName):
		return batch{}, httpapi.Errorf(http.StatusUnprocessableEntity,
			"Unknown key: the body takes userTokens, limit, consistency, segments, surface and holdout")
	case err != nil || in == nil:
		return batch{}, httpapi.Errorf(http.StatusBadRequest, `Bad Request: want {"userTokens":["..."],"limit":N}`)
	}
	if len(in.UserTokens) == 0 || len(in.UserTokens) > api.MaxProfiles {
		return batch{}, httpapi.Errorf(http.StatusUnprocessableEntity, "userTokens must hold 1 to %d tokens", api.MaxProfiles)
	}
	limit := api.DefaultAffinities
	if in.Limit != nil {
		limit = *in.Limit
	}
	if limit < 1 {
		return batch{}, httpapi.Errorf(http.StatusUnprocessableEntity, "limit must be a positive integer")
	}
	users, seen := make([]string, 0, len(in.UserTokens)), make(map[string]bool, len(in.UserTokens))
	for _, user := range in.UserTokens {
		if !event.ValidUserToken(user) {
			return batch{}, httpapi.Errorf(http.StatusUnprocessableEntity, "userTokens holds a malformed token: %q", user)
		}
		if !seen[user] {
			seen[user] = true
			users = append(users, user)
		}
	}
	asked := batch{users, limit, in.Consistency, in.Segments, nil, in.Holdout}
	if in.Surface != nil {
		asked.surface = []string{*in.Surface}
	}
	return asked, nil
}
