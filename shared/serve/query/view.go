package query

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/rank/segment"
	"github.com/affinityengine/affinity/shared/store"
)

// view is a manifest with what a process has learned about its parts. If each user of the app has a region of their
// own, it is of the manifests of all regions: the parts of one follow those of another.
type view struct {
	appID   string
	readAt  time.Time
	builtAt int64 // ms
	rooms   []room
	parts   []segment.Part
	setOut  [][]uint16 // by part: the users whom a newer part has
	// since is such that no part lacks a change of an earlier slot.
	since store.ChangeSlot

	order   sync.Once // an update of the lists is ordered once
	ordered bool      // behind order: it is

	mu     sync.Mutex
	places map[string][]position // of tokens, in all parts
}

// position is a user of a part.
type position struct {
	part    int
	ordinal uint16
}

// maxPlaces bounds the tokens whose places a view keeps.
const maxPlaces = 2 * maxScanChanges

// view returns what the manifest in force says. The error is ErrOff or a *NotReadyError
// if no query can be answered.
func (r *Reader) view(ctx context.Context, app config.App) (*view, error) {
	if !app.Segments.On() {
		return nil, ErrOff
	}
	now := r.now()
	r.mu.Lock()
	v := r.views[app.ID]
	r.mu.Unlock()
	if v != nil && now.Sub(v.readAt) < manifestAge && now.Sub(v.readAt) >= 0 {
		return v, r.checkReach(ctx, app, v, now)
	}
	rooms, err := r.readRooms(ctx, app)
	if err != nil {
		return nil, err
	}
	if v != nil && slices.EqualFunc(v.rooms, rooms, room.same) {
		// What is known of the parts stays known.
		next := &view{appID: v.appID, readAt: now, builtAt: v.builtAt, rooms: v.rooms, parts: v.parts, since: v.since,
			setOut: v.setOut}
		v.mu.Lock()
		next.places = v.places
		v.mu.Unlock()
		return r.keep(next), r.checkReach(ctx, app, next, now)
	}
	v = &view{appID: app.ID, readAt: now, rooms: rooms, places: map[string][]position{}}
	if err := v.load(ctx); err != nil {
		return nil, err
	}
	return r.keep(v), r.checkReach(ctx, app, v, now)
}

// checkReach returns the error that no query can be answered because the list of changes
// has lost entries that the parts lack. It orders an update.
func (r *Reader) checkReach(ctx context.Context, app config.App, v *view, now time.Time) error {
	if !slices.ContainsFunc(v.rooms, func(of room) bool { return !store.ChangesReach(of.since, of.latest, now) }) {
		return nil
	}
	r.update(ctx, v)
	return r.notReady(ctx, app, fmt.Sprintf(
		"The lists of the app's segments are more than %d days old, or of a clock that was ahead, so they are built again. ", store.ChangeDays-1)+later)
}

func (r *Reader) keep(v *view) *view {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.views[v.appID] = v
	return v
}

// load reads which users the deltas set out of older parts.
func (v *view) load(ctx context.Context) error {
	v.builtAt = math.MaxInt64
	for i := range v.rooms {
		of := &v.rooms[i]
		if of.begins == 0 {
			v.builtAt = min(v.builtAt, of.manifest.BuiltAt)
		}
		of.begin(len(v.parts))
		if i == 0 {
			v.parts = slices.Clip(of.manifest.Parts)
		} else {
			v.parts = append(v.parts, of.manifest.Parts...)
		}
		v.since = max(v.since, of.since)
	}
	v.setOut = make([][]uint16, len(v.parts))
	deltas := slices.DeleteFunc(slices.Clone(v.parts), func(p segment.Part) bool { return !p.Delta })
	if len(deltas) == 0 {
		return nil
	}
	out, err := fromRooms(ctx, v, deltas, func(p segment.Part) segment.PartID { return p.ID },
		func(ctx context.Context, s *store.Store, of []segment.Part) (map[segment.PartID]map[segment.PartID][]uint16, error) {
			ids := make([]segment.PartID, len(of))
			for i, p := range of {
				ids[i] = p.ID
			}
			return s.Segments.ReadSetOuts(ctx, v.appID, ids)
		})
	if err != nil {
		return err
	}
	for i, p := range v.parts {
		for _, delta := range deltas {
			v.setOut[i] = append(v.setOut[i], out[delta.ID][p.ID]...)
		}
		slices.Sort(v.setOut[i])
		v.setOut[i] = slices.Compact(v.setOut[i])
	}
	return nil
}

const (
	later          = "Send the request again later: "
	scoringChanged = "The scoring strategy or the retention has changed, so the lists of the app's segments are " +
		"built again. " + later
	othersHeldOut = "The app holds out other users, so the lists of its segments are built again. " + later
)

// notReady returns the error that answers why, with the progress of the build.
func (r *Reader) notReady(ctx context.Context, app config.App, why string) error {
	progress, err := r.builds.Progress(ctx, app.ID)
	if err == nil && app.Moving() {
		progress += "; builds wait until the app has arrived in its new region"
	}
	if err != nil {
		r.log.LogAttrs(ctx, slog.LevelWarn, "progress of a build of segments is unknown", slog.String("app", app.ID),
			slog.Any("error", err))
		progress = "the progress of their build is unknown"
	}
	return &NotReadyError{why + progress}
}

// update orders an update of the lists, once for a view.
func (r *Reader) update(ctx context.Context, v *view) {
	v.order.Do(func() {
		var err error
		if v.ordered, err = r.builds.Order(ctx, v.appID); err != nil {
			r.log.LogAttrs(ctx, slog.LevelWarn, "an update of segments is not ordered", slog.String("app", v.appID),
				slog.Any("error", err))
		}
	})
}

// tooMany orders an update of the lists, and returns the error of a query that would read
// too many profiles.
func (e *evaluation) tooMany(ctx context.Context, most int) error {
	e.update(ctx, e.view)
	then := "An update of the lists is ordered: send the request again in some seconds"
	switch {
	case e.ordered:
	case e.app.Moving():
		then = "The app is moving to another region, and the lists are being copied: they are updated afterwards. " +
			"Send the request again later"
	default:
		then = "An update of the lists cannot be ordered at the moment: send the request again later"
	}
	return &NotReadyError{fmt.Sprintf("More than %d users have changed since the lists of the app's segments "+
		"were built. %s", most, then)}
}

// IsNotReady returns the message of an error that says that a query cannot be answered
// at the moment.
func IsNotReady(err error) (message string, is bool) {
	var e *NotReadyError
	if errors.As(err, &e) {
		return e.Message, true
	}
	return "", false
}
