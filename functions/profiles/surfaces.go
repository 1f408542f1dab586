package profiles

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/consent"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// setSurface makes the reads of this request those of a surface, if one is given.
func setSurface(app *config.App, given []string) error {
	if len(given) == 0 {
		return nil
	}
	on := consent.Surface(given[0])
	if !slices.Contains(consent.Surfaces(), on) {
		return httpapi.Errorf(http.StatusUnprocessableEntity, "surface %.50q must be one of %v", on, consent.Surfaces())
	}
	*app = app.For(on)
	return nil
}

// memberOf reads what counts of a user for segments.
func (h handler) memberOf(ctx context.Context, app config.App, user string, q asOf) (profile.Result, error) {
	member, err := h.read(ctx, app.For(consent.Segments), user, q, 0)
	if status, _ := httpapi.Status(err); err != nil && status == http.StatusNotFound {
		return profile.Result{}, nil
	}
	return member, err
}

// membersOf returns the names of the segments to which the users of a batch belong, by what counts for segments; nil if
// that is what the batch reads anyhow.
func (h handler) membersOf(ctx context.Context, app config.App, asked batch,
	saved []config.SavedSegment) (map[string][]string, error) {
	if !asked.segments || !app.Purposes.On() || app.Surface == consent.Segments {
		return nil, nil
	}
	members := make(map[string][]string, len(asked.users))
	for _, user := range asked.users {
		members[user] = []string{}
	}
	err := h.Profiles.ReadEach(ctx, app.For(consent.Segments), asked.users, 0,
		func(user string, r profile.Result) (err error) {
			members[user], err = h.members.of(saved, r)
			return err
		})
	if _, faulty := errors.AsType[profile.Faulty](err); faulty {
		return members, nil // the other read says so
	}
	return members, err
}
