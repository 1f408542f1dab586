package profiles

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/auditlog"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/job/tasks/relocate"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// relocateTime is how long a request moves a user before a task goes on.
const relocateTime = 10 * time.Second

// getRegion answers in which region a user lives.
func (h handler) getRegion(w http.ResponseWriter, r *http.Request, c auditlog.Change) error {
	app, err := h.Config.App(r.Context(), c.App)
	if err != nil {
		return err
	}
	answer, err := h.regionOf(r.Context(), app, c.User)
	if err != nil {
		return err
	}
	return httpapi.WriteJSON(w, http.StatusOK, answer)
}

func (h handler) regionOf(ctx context.Context, app config.App, user string) (api.UserRegion, error) {
	region, since, err := profile.ResidentsOf(h.Profiles).Lives(ctx, app, user)
	if region == "" {
		region = h.Regions.First()
	}
	answer := api.UserRegion{UserToken: user, Region: region}
	if !since.IsZero() {
		at := api.At(since)
		answer.Since = &at
	}
	return answer, err
}

// setRegion moves a user to another region. A user with a long history arrives after the answer.
func (h handler) setRegion(w http.ResponseWriter, r *http.Request, c auditlog.Change) error {
	to, err := httpapi.Decode(w, r, api.MaxAdminBody, decodeRegion)
	if err != nil {
		return err
	}
	app, err := h.Config.App(r.Context(), c.App)
	if err != nil {
		return err
	}
	status, begun := http.StatusOK, h.Now()
	c.Action, c.Detail = auditlog.UserRegion, "to "+to
	err = auditlog.New(h.AuditLog()).Do(r.Context(), c, func() (end auditlog.End, err error) {
		err = profile.ResidentsOf(h.Profiles).Move(r.Context(), app, c.User, to, begun.Add(relocateTime))
		request, delay := relocate.Request{App: app.ID, User: c.User, Begun: begun.UnixMilli()}, 2*h.Settle()
		if errors.Is(err, profile.ErrUnfinished) {
			status, request.To, delay, err = http.StatusAccepted, to, 0, nil
		}
		if err != nil {
			return end, err
		}
		lives, err := profile.ResidentsOf(h.Profiles).Region(r.Context(), app, c.User)
		if err != nil {
			return end, err
		}
		return end, relocate.Enqueue(r.Context(), h.Queue, lives, request, delay)
	})
	if refused, ok := errors.AsType[profile.ResidenceRefused](err); ok {
		return httpapi.Errorf(http.StatusUnprocessableEntity, "%s", refused)
	}
	if errors.Is(err, profile.ErrLeft) {
		return httpapi.Errorf(http.StatusConflict, "The user has lived in %s lately, and what they left there is not "+
			"removed yet: try again in %s", to, 2*h.Settle())
	}
	if err != nil {
		return err
	}
	answer, err := h.regionOf(r.Context(), app, c.User)
	if err != nil {
		return err
	}
	if status == http.StatusAccepted {
		answer.MovingTo = to
	}
	return httpapi.WriteJSON(w, status, answer)
}

// decodeRegion reads {"region":"us"}.
func decodeRegion(body []byte) (string, error) {
	var in *api.UserRegionRequest
	switch err := json.Unmarshal(body, &in, json.RejectUnknownMembers(true)); {
	case errors.Is(err, json.ErrUnknownName):
		return "", httpapi.Errorf(http.StatusUnprocessableEntity, "Unknown key: the body takes region")
	case err != nil || in == nil || in.Region == "":
		return "", httpapi.Errorf(http.StatusBadRequest, `Bad Request: want {"region":"us"}`)
	}
	return in.Region, nil
}
