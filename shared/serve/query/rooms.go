package query

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/rank/segment"
	"github.com/affinityengine/affinity/shared/store"
)

// room is the manifest of one region of an app whose users have regions of their own, or the one of an app.
//
// A user who moves is listed as changed in the regions of both rooms before the row in the new one counts. So a query
// takes a user whom the list of any room names out of the parts of all rooms, and reads the profile once, wherever the
// user is. Of anybody else one room has parts that say where and what they are.
type room struct {
	store    *store.Store
	region   string
	manifest segment.Manifest
	to       int              // the end of its parts among those of the view
	since    store.ChangeSlot // no part lacks a change of an earlier slot
	begins   store.ChangeSlot // of a room without a manifest: nobody lived there before
	newest   store.ChangeSlot // the cut of the newest delta, 0 without one
	latest   store.ChangeSlot // the latest cut of any part
}

// same reports whether two rooms have the same manifest.
func (of room) same(other room) bool {
	return of.region == other.region && of.manifest.Version == other.manifest.Version && of.begins == other.begins
}

// readRooms reads the manifests in force. The error is a *NotReadyError if one does not answer queries. Before users
// may live in other regions than that of the app, these need no manifest. Afterwards one without a manifest has no
// parts, and all who live there are in its list of changes, while that reaches back to a time before residency. Of the clock
// that has set it, nobody knows more than the day.
func (r *Reader) readRooms(ctx context.Context, app config.App) ([]room, error) {
	regions := app.UserRegions()
	rooms := make([]room, len(regions))
	err := atOnce(ctx, len(rooms), func(ctx context.Context, i int) (err error) {
		s := r.store.In(regions[i])
		rooms[i] = room{store: s, region: regions[i]}
		rooms[i].manifest, err = s.Segments.ReadSegmentManifest(ctx, app.ID)
		return err
	})
	if err != nil {
		return nil, err
	}
	var all []room
	for i, of := range rooms {
		switch m := of.manifest; {
		case m.Version == 0 || m.Generation == "" || m.Since != app.Segments.Since.UnixMilli():
			if i > 0 && app.Residency.Mode == config.ResidencyPrepare {
				continue
			}
			if i > 0 && m.Version == 0 && !app.Segments.Since.After(app.Residency.Since) {
				reached := r.now().AddDate(0, 0, 1-store.ChangeDays).Truncate(12 * time.Hour)
				if app.Residency.Since.AddDate(0, 0, -1).After(reached) {
					of.begins = store.SlotOf(reached)
					break
				}
				if _, err := r.builds.Order(ctx, app.ID); err != nil {
					return nil, err
				}
			}
			return nil, r.notReady(ctx, app, "The lists of the app's segments are not built yet. "+later)
		case !app.ScoresAs(m.ScoringVersion) || m.RetentionDays != app.RetentionDays:
			return nil, r.notReady(ctx, app, scoringChanged)
		case m.Holdout != app.Holdout.ID():
			if _, err := r.builds.Order(ctx, app.ID); err != nil {
				return nil, err
			}
			return nil, r.notReady(ctx, app, othersHeldOut)
		}
		all = append(all, of)
	}
	return all, nil
}

// begin sets what the parts of a room say, which begin at a place among those of the view.
func (of *room) begin(at int) {
	of.to, of.since = at+len(of.manifest.Parts), -1
	for _, p := range of.manifest.Parts {
		of.latest = max(of.latest, store.ChangeSlot(p.Cut))
		if p.Delta {
			of.newest = max(of.newest, store.ChangeSlot(p.Cut))
		} else if of.since < 0 || store.ChangeSlot(p.Cut) < of.since {
			of.since = store.ChangeSlot(p.Cut)
		}
	}
	of.since = max(of.since, of.newest, of.begins)
}

// cut returns the slot from which the parts of a room lack changes of a user. A delta has all
// users whose changes the parts before it lacked, so its cut is that of all users.
func (of *room) cut(user string) store.ChangeSlot {
	for _, p := range of.manifest.Parts {
		if !p.Delta && p.Covers(user) {
			return max(store.ChangeSlot(p.Cut), of.newest)
		}
	}
	return of.since
}

// roomOf returns the room of a part.
func (v *view) roomOf(part int) int {
	return slices.IndexFunc(v.rooms, func(of room) bool { return part < of.to })
}

// maxLooks is how many locations of users are read at a time.
const maxLooks = 32

// regions returns the regions in which users live.
func (r *Reader) regions(ctx context.Context, app config.App, users []segment.User) ([]string, error) {
	lives, residents := make([]string, len(users)), profile.ResidentsOf(r.profiles)
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(maxLooks)
	for i, u := range users {
		g.Go(func() (err error) {
			lives[i], err = residents.Region(ctx, app, u.Token)
			return err
		})
	}
	return lives, g.Wait()
}

// atOnce calls do with the numbers below n, all at a time.
func atOnce(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	if n == 1 {
		return do(ctx, 0)
	}
	g, ctx := errgroup.WithContext(ctx)
	for i := range n {
		g.Go(func() error { return do(ctx, i) })
	}
	return g.Wait()
}

// fromRooms reads what belongs to parts from the stores of their rooms.
func fromRooms[T any, K comparable, V any](ctx context.Context, v *view, wanted []T, part func(T) segment.PartID,
	read func(ctx context.Context, s *store.Store, wanted []T) (map[K]V, error)) (map[K]V, error) {
	if len(v.rooms) == 1 {
		return read(ctx, v.rooms[0].store, wanted)
	}
	rooms := make(map[segment.PartID]int, len(v.parts))
	for i, p := range v.parts {
		rooms[p.ID] = v.roomOf(i)
	}
	byRoom := make([][]T, len(v.rooms))
	for _, w := range wanted {
		i := rooms[part(w)]
		byRoom[i] = append(byRoom[i], w)
	}
	var mu sync.Mutex
	all := make(map[K]V, len(wanted))
	err := atOnce(ctx, len(byRoom), func(ctx context.Context, i int) error {
		if len(byRoom[i]) == 0 {
			return nil
		}
		found, err := read(ctx, v.rooms[i].store, byRoom[i])
		mu.Lock()
		defer mu.Unlock()
		maps.Copy(all, found)
		return err
	})
	return all, err
}
