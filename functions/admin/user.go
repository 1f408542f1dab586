package admin

import (
	"fmt"
	"net/http"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/auditlog"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/limit"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/profile/view"
	"github.com/affinityengine/affinity/shared/score/strategy"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// refreshUser computes and stores the profile of one user, and answers it.
func (h handler) refreshUser(w http.ResponseWriter, r *http.Request, app config.App, key string, request api.RecomputeRequest) error {
	if request.UserToken == nil {
		return httpapi.Errorf(http.StatusUnprocessableEntity, "userToken must be a text")
	}
	user := *request.UserToken
	if request != (api.RecomputeRequest{UserToken: request.UserToken}) {
		return httpapi.Errorf(http.StatusUnprocessableEntity, "userToken must be the only key of the body: the others are about all users")
	}
	if !event.ValidUserToken(user) {
		return httpapi.Errorf(http.StatusUnprocessableEntity, "userToken must contain only alphanumeric, equal, plus, slash, "+
			"hyphen, or underscore characters, and be between 1 and 129 characters long")
	}
	var result profile.Result
	change := auditlog.Change{App: app.ID, Actor: key, Action: auditlog.RecomputeStart, User: user, Detail: "one user"}
	err := h.Recorder().Do(r.Context(), change, func() (end auditlog.End, err error) {
		result, err = h.Profiles.Refresh(r.Context(), app, user)
		return end, err
	})
	if err != nil {
		return fmt.Errorf("refresh one user: %w", err)
	}
	if !result.Known {
		return httpapi.Errorf(http.StatusNotFound, "No profile: user token %q has no event within the retention", user)
	}
	// It is a read, and no job.
	limit.GiveBack(r.Context())
	if err := h.Charge(r.Context(), app.ID, limit.Reads, 1); err != nil {
		return err
	}
	h.Usage.Reads(app.ID, 1)
	return httpapi.WriteAppended(w, http.StatusOK, func(b []byte) ([]byte, error) {
		return view.Append(b, user, result, api.DefaultAffinities, strategy.HalfLife{})
	})
}
