package profiles

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/limit"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/web/auth"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// usersQuery is what a request for a page of users asks for.
type usersQuery struct {
	prefix, after string
	limit         int
}

func readUsersQuery(r *http.Request) (usersQuery, error) {
	values := r.URL.Query()
	q := usersQuery{prefix: values.Get("prefix"), after: values.Get("cursor")}
	if q.prefix != "" && !event.ValidUserToken(q.prefix) {
		return q, httpapi.Errorf(http.StatusUnprocessableEntity, "prefix must be the beginning of a user token: letters, digits and = + / - _")
	}
	if q.after != "" && !event.ValidUserToken(q.after) {
		return q, httpapi.Errorf(http.StatusUnprocessableEntity, "cursor must be the cursor of another answer of this route")
	}
	var err error
	if q.limit, err = positive(r, "limit", api.DefaultUsers); err == nil && q.limit > api.MaxProfiles {
		err = httpapi.Errorf(http.StatusUnprocessableEntity, "limit must be an integer from 1 to %d", api.MaxProfiles)
	}
	return q, err
}

// users answers a page of the users who have an event within the retention. It reads the
// profile of each: rows remain of deleted users and of those whose events have expired.
func (h handler) users(w http.ResponseWriter, r *http.Request) error {
	app, err := h.Auth.Tenant(r, auth.Admin)
	if err != nil {
		return err
	}
	q, err := readUsersQuery(r)
	if err != nil {
		return err
	}
	tokens, err := h.Store.Users.ListUsers(r.Context(), app.ID, q.prefix, q.after, q.limit)
	if err != nil {
		return err
	}
	if err := h.Charge(r.Context(), app.ID, limit.Reads, max(len(tokens)-1, 0)); err != nil {
		return err
	}
	h.Usage.Reads(app.ID, len(tokens))
	known := make(map[string]api.ListedUser, len(tokens))
	err = h.Profiles.ReadEach(r.Context(), app, tokens, 1, func(user string, result profile.Result) error {
		if result.Known {
			known[user] = api.ListedUser{UserToken: user, LastEventAt: api.AtMillis(result.LastEventAt), Total: result.Total}
		}
		return nil
	})
	var faulty profile.Faulty
	if err != nil && !errors.As(err, &faulty) {
		return fmt.Errorf("read profiles: %w", err)
	}
	answer := api.Users{Users: make([]api.ListedUser, 0, len(known))}
	for _, token := range tokens {
		if user, is := known[token]; is {
			answer.Users = append(answer.Users, user)
		} else if faulty[token] != nil {
			answer.Faulty = append(answer.Faulty, token)
		}
	}
	if len(tokens) == q.limit {
		answer.Cursor = tokens[len(tokens)-1]
	}
	return httpapi.WriteJSON(w, http.StatusOK, answer)
}
