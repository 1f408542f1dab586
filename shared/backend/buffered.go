package backend

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/usage"
	"github.com/affinityengine/affinity/shared/profile/location"
	"github.com/affinityengine/affinity/shared/store"
)

// Buffered are the tables that a process writes some time after the requests: usage,
// refusals, recent events and rates. An idle instance may do so hours later. Of an app that has
// been deleted in the meantime it writes nothing.
//
// If each user of an app has a region of their own, what names a user goes to the region in which they live as of the
// write. What is left in a region that a user leaves goes with the rest of what they leave there.
type Buffered struct {
	store     *store.Store
	config    *config.Cached
	locations *location.Finder
}

// deletedTimeout is how long a write waits to learn whether its app still exists.
// Afterwards it is made, so that it does not depend on Firestore.
const deletedTimeout = time.Second

func (b Buffered) deleted(ctx context.Context, app string) bool {
	ctx, cancel := context.WithTimeout(ctx, deletedTimeout)
	defer cancel()
	_, err := b.config.App(ctx, app)
	return errors.Is(err, config.ErrNotFound)
}

// AddUsage is that of the Store.
func (b Buffered) AddUsage(ctx context.Context, batch usage.Batch) error {
	if b.deleted(ctx, batch.App) {
		return nil
	}
	return b.store.Usage.AddUsage(ctx, batch)
}

// KnownNames is that of the Store.
func (b Buffered) KnownNames(ctx context.Context, app string, day usage.Day, shard int) (usage.Names, error) {
	return b.store.Usage.KnownNames(ctx, app, day, shard)
}

// PutHotUsers is that of the Store. It writes the list of each region, also an empty one: the process may have counted
// a user there who has moved away.
func (b Buffered) PutHotUsers(ctx context.Context, app string, day usage.Day, shard int, process string,
	users []usage.User) error {
	if b.deleted(ctx, app) {
		return nil
	}
	return eachRegion(ctx, b, app, users, tokenOf, func(s *store.Store, users []usage.User) error {
		return s.Usage.PutHotUsers(ctx, app, day, shard, process, users)
	})
}

func tokenOf(u usage.User) []string { return []string{u.Token} }

// Deleted is that of the Store.
func (b Buffered) Deleted(ctx context.Context, app string, users []usage.User) (map[string]time.Time, error) {
	deleted := map[string]time.Time{}
	return deleted, eachRegion(ctx, b, app, users, tokenOf, func(s *store.Store, users []usage.User) error {
		there, err := s.Usage.Deleted(ctx, app, users)
		maps.Copy(deleted, there)
		return err
	})
}

// PutKeyDays is that of the Store.
func (b Buffered) PutKeyDays(ctx context.Context, app string, days map[string]usage.Day) error {
	if b.deleted(ctx, app) {
		return nil
	}
	return b.store.Usage.PutKeyDays(ctx, app, days)
}

// RecordRefused is that of the Store.
func (b Buffered) RecordRefused(ctx context.Context, app string, at time.Time, r store.Refusals) error {
	return b.record(ctx, app, r, func(s *store.Store, r store.Refusals) error {
		return s.Refused.RecordRefused(ctx, app, at, r)
	})
}

// RecordRefusedLinks is that of the Store.
func (b Buffered) RecordRefusedLinks(ctx context.Context, app string, at time.Time, r store.Refusals) error {
	return b.record(ctx, app, r, func(s *store.Store, r store.Refusals) error {
		return s.Refused.RecordRefusedLinks(ctx, app, at, r)
	})
}

// record writes refusals where the users live whom their events name. It leaves out an event that may name users of
// several regions. The counts name nobody: they are those of the app's region, and come last, because they count again
// after an error.
func (b Buffered) record(ctx context.Context, app string, r store.Refusals,
	write func(*store.Store, store.Refusals) error) error {
	if b.deleted(ctx, app) {
		return nil
	}
	resident, is, err := b.resident(ctx, app)
	if err != nil {
		return err
	}
	if !is {
		return write(b.store, r)
	}
	events := slices.Clone(r.Events)
	for i, e := range events {
		if _, whole := store.RefusedTokens(e.Event); !whole {
			events[i].Event = nil
		}
	}
	tokens := func(e store.Refused) []string {
		named, _ := store.RefusedTokens(e.Event)
		return named
	}
	at, several, err := byRegion(ctx, b.locations, resident, events, tokens)
	if err != nil {
		return err
	}
	for _, e := range several {
		e.Event = nil
		at[resident.Residency.Home] = append(at[resident.Residency.Home], e)
	}
	for _, region := range slices.Backward(resident.Everywhere()) {
		there := store.Refusals{Events: at[region]}
		if region == resident.Residency.Home {
			there.Counts = r.Counts
		}
		if err := write(b.store.In(region), there); err != nil {
			return err
		}
	}
	return nil
}

// AddRecent is that of the Store.
func (b Buffered) AddRecent(ctx context.Context, app string, events []store.RecentEvent) error {
	if b.deleted(ctx, app) {
		return nil
	}
	user := func(e store.RecentEvent) []string { return []string{e.User} }
	return eachRegion(ctx, b, app, events, user, func(s *store.Store, events []store.RecentEvent) error {
		return s.Recent.AddRecent(ctx, app, events)
	})
}

// DropRecent is that of the Store.
func (b Buffered) DropRecent(ctx context.Context, app string, now time.Time) error {
	nobody := func(struct{}) []string { return nil }
	return eachRegion(ctx, b, app, nil, nobody, func(s *store.Store, _ []struct{}) error {
		return s.Recent.DropRecent(ctx, app, now)
	})
}

// resident returns an app whose users have regions of their own.
func (b Buffered) resident(ctx context.Context, app string) (config.App, bool, error) {
	if regions, _ := b.store.Regions(); regions == nil {
		return config.App{}, false, nil
	}
	return b.config.Resident(ctx, app)
}

// eachRegion calls write with all that names users, or for each region of the users with what names those who live
// there.
func eachRegion[T any](ctx context.Context, b Buffered, appID string, all []T, tokens func(T) []string,
	write func(*store.Store, []T) error) error {
	app, resident, err := b.resident(ctx, appID)
	if err != nil {
		return err
	}
	if !resident {
		return write(b.store, all)
	}
	at, _, err := byRegion(ctx, b.locations, app, all, tokens)
	if err != nil {
		return err
	}
	for _, region := range app.Everywhere() {
		if err := write(b.store.In(region), append([]T{}, at[region]...)); err != nil {
			return err
		}
	}
	return nil
}

// byRegion divides what names users by the regions in which they live. What names nobody is in the region of the app,
// and several is what names users of more than one region.
func byRegion[T any](ctx context.Context, locations *location.Finder, app config.App, all []T,
	tokens func(T) []string) (at map[string][]T, several []T, err error) {
	at = map[string][]T{}
	for _, one := range all {
		var regions []string
		for _, token := range tokens(one) {
			l, err := locations.Find(ctx, app, token)
			if err != nil {
				return nil, nil, err
			}
			regions = append(regions, cmp.Or(l.Region, app.Residency.Home))
		}
		slices.Sort(regions)
		switch regions = slices.Compact(regions); len(regions) {
		case 0:
			at[app.Residency.Home] = append(at[app.Residency.Home], one)
		case 1:
			at[regions[0]] = append(at[regions[0]], one)
		default:
			several = append(several, one)
		}
	}
	return at, several, nil
}

// ExchangeRates is that of the Store.
func (b Buffered) ExchangeRates(ctx context.Context, app, process string, said []byte) (map[string][]byte, error) {
	if b.deleted(ctx, app) {
		return nil, nil
	}
	return b.store.Rates.ExchangeRates(ctx, app, process, said)
}
