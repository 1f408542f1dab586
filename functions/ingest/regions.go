package ingest

import (
	"context"
	"math/rand/v2"
	"slices"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/event/bus"
)

// In an app whose users have regions of their own, the events of a user go to the topics of the region in which they
// live. A user whom nobody knows begins in a region before anything of them is published.

// publishAll publishes the events of a request: in one message, or in one for each region of their users.
func (h handler) publishAll(ctx context.Context, in request, m bus.Message, events []event.Event) error {
	app, resident, err := h.resident(ctx, in)
	if err != nil {
		return err
	}
	if !resident {
		return h.publish(ctx, m, events)
	}
	events = slices.DeleteFunc(slices.Clone(events), func(e event.Event) bool { return e.Type == event.InstantSearch })
	at, err := byRegion(ctx, h, in, app, events, func(e event.Event) (string, string) {
		return e.UserToken, e.AuthenticatedUserToken
	})
	if err != nil {
		return err
	}
	for region, there := range at {
		// An event without a time has an ID by its place in its request. So each message is a request of its own.
		part := m.Part(there, 0)
		part.Region, part.Request = region, rand.Uint64()
		if err := h.publish(ctx, part, there); err != nil {
			return err
		}
	}
	return nil
}

// resident returns the app of a request, and whether each of its users has a region of their own.
func (h handler) resident(ctx context.Context, in request) (config.App, bool, error) {
	if !in.mayReside {
		return config.App{}, false, nil
	}
	return h.CachedConfig.Resident(ctx, in.app())
}

// signInsByRegion divides sign-ins as publishAll does events. Those of an app whose users all live in its region have
// none.
func (h handler) signInsByRegion(ctx context.Context, in request, all []bus.SignIn) (map[string][]bus.SignIn, error) {
	app, resident, err := h.resident(ctx, in)
	if err != nil || !resident {
		return map[string][]bus.SignIn{"": all}, err
	}
	return byRegion(ctx, h, in, app, all, func(s bus.SignIn) (string, string) { return s.User, s.Known })
}

// byRegion divides what names users by the regions in which they live. An event that names a known user goes to the
// region of that user, if the app links tokens: process moves the token there.
func byRegion[T any](ctx context.Context, h handler, in request, app config.App, all []T,
	tokens func(T) (user, known string)) (map[string][]T, error) {
	birth := app.Residency.Birth(in.grant.Region, in.header.Get)
	at := map[string][]T{}
	for _, one := range all {
		user, known := tokens(one)
		if known != "" && app.Identity.On() {
			user = known
		}
		region, err := h.Locations.Region(ctx, app, user, birth)
		if err != nil {
			return nil, err
		}
		at[region] = append(at[region], one)
	}
	return at, nil
}
