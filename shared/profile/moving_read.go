package profile

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/affinityengine/affinity/shared/admission"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/consent"
	"github.com/affinityengine/affinity/shared/store"
)

// Reads of users whose app moves, or has users with regions of their own. They read the cluster that is written,
// because a replica may lack what makes a row count.

// place is where a user is, with the row that counts. Without at there is no such user.
type place struct {
	at  *Engine
	row store.User
	// departed means that the row of the region to which the user has moved does not count
	// yet. Until it does, this one has everything that was acknowledged. Nothing is stored.
	departed bool
}

// locate finds the row of a user that counts, from that of the entry on. e is the engine of
// the entry.
func (e *Engine) locate(ctx context.Context, app config.App, token string, parts store.UserParts) (place, error) {
	if app.Residency.On() {
		return e.locateResident(ctx, app, token, parts)
	}
	row, err := e.env.store.Users.ReadPrimary(ctx, app.ID, token, parts)
	if err != nil {
		return place{}, err
	}
	if row.Owner.State == store.Nobodys {
		return e.locateNew(ctx, app, token, place{at: e, row: row}, parts)
	}
	return follow(ctx, app, token, place{at: e, row: row}, parts)
}

// locateNew finds the row of a user whom the entry does not know. They may have been born
// in the region that another process takes for the entry.
func (e *Engine) locateNew(ctx context.Context, app config.App, token string, entry place,
	parts store.UserParts) (place, error) {
	if app.Unmarked() {
		return entry, nil
	}
	births, err := e.env.in(app.Births())
	if err != nil || births == e {
		return place{row: entry.row}, err
	}
	row, err := births.env.store.Users.ReadPrimary(ctx, app.ID, token, parts)
	if err != nil || row.Owner.State == store.Nobodys {
		return place{row: entry.row}, err
	}
	return follow(ctx, app, token, place{at: births, row: row}, parts)
}

// follow goes where rows point to.
func follow(ctx context.Context, app config.App, token string, from place, parts store.UserParts) (place, error) {
	for range maxHops {
		if from.row.Owner.State != store.Moved {
			return from, nil
		}
		to, err := from.at.env.in(from.row.Owner.Region)
		if err != nil {
			return place{}, err
		}
		row, err := to.env.store.Users.ReadPrimary(ctx, app.ID, token, parts)
		if err != nil {
			return place{}, err
		}
		if row.Owner.Epoch < needed(app, from.row.Owner) {
			from.departed = true
			return from, nil
		}
		from = place{at: to, row: row}
	}
	return place{}, errHops
}

// read reads a user. With UserHistory as the parts it ignores the stored profile.
func (e enRoute) read(ctx context.Context, app config.App, token string, parts store.UserParts,
	limit int) (Result, error) {
	return e.staying(ctx, app, token, parts, func(found place) (Result, error) {
		return found.at.reader.readAt(ctx, app, token, found, parts, limit)
	})
}

// staying calls read with where a user is, until the user was there to the end of what it read.
func (e enRoute) staying(ctx context.Context, app config.App, token string, parts store.UserParts,
	read func(place) (Result, error)) (Result, error) {
	for range maxHops {
		found, err := e.locate(ctx, app, token, parts)
		if err != nil {
			return Result{}, err
		}
		if found.at == nil {
			return unknown(app, token, e.env.now().UnixMilli()), nil
		}
		result, err := read(found)
		if err != nil || result.Stored {
			return result, err
		}
		// The log may have been dropped while it was read.
		now, err := found.at.env.store.Users.ReadPrimary(ctx, app.ID, token, store.UserState)
		if err != nil {
			return Result{}, err
		}
		if now.Owner == found.row.Owner {
			return result, nil
		}
	}
	return Result{}, errHops
}

func (e enRoute) computeStored(ctx context.Context, app config.App, token string) (Result, error) {
	return e.read(ctx, app, token, store.UserHistory, 0)
}

func (e enRoute) refreshMarked(ctx context.Context, app config.App, token string) (bool, error) {
	result, err := e.read(ctx, app, token, store.UserProfile, 0)
	return !result.Stored, err
}

// readAt answers from a row that counts.
func (r *reader) readAt(ctx context.Context, app config.App, token string, found place, parts store.UserParts,
	limit int) (Result, error) {
	row := found.row
	if parts != store.UserHistory {
		if err := r.admit(ctx, row, limit); err != nil {
			return Result{}, err
		}
		result, ok, err := r.serve(ctx, &app, token, row, limit)
		if ok && parts == store.UserSession && !row.Gone() {
			ok = r.serveSession(ctx, &result, row)
		}
		if ok || err != nil {
			return result, err
		}
	}
	if found.departed {
		row.Ticket = 0 // at which nothing is stored
	}
	row.Profile, row.Session = nil, nil // the computation does not need them
	var result Result
	faulty, err := r.computeAndStore(ctx, app, []string{token}, map[string]store.User{token: row},
		func(_ string, computed Result) error {
			result = computed
			return admission.Take(ctx, affinityBytes*int64(len(computed.Affinities)))
		})
	if err == nil {
		err = faulty.orNil()
	}
	return result, err
}

// unknown is the profile of a user without events.
func unknown(app config.App, token string, now int64) Result {
	return Result{App: app, Profile: affinity.Profile{
		StrategyVersion: app.ScoringVersion, RetentionDays: app.RetentionDays, HalfLives: app.Strategy.HalfLives,
		Anchor: now, Until: math.MaxInt64,
	}}.placed(token, store.User{}, time.UnixMilli(now))
}

// maxMovingReads is how many users of an app that moves a request reads at a time.
const maxMovingReads = 16

// each calls read for each of some users, and pass with what it returned, one at a time.
// Users whose read fails alone are in the error of type Faulty.
func each[T any](ctx context.Context, tokens []string,
	read func(ctx context.Context, token string) (T, error), pass func(token string, v T) error) error {
	var mu sync.Mutex
	failed := Faulty{}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(maxMovingReads)
	for _, token := range distinct(tokens) {
		g.Go(func() error {
			ctx, end := admission.Part(ctx)
			defer end()
			v, err := read(ctx, token)
			mu.Lock()
			defer mu.Unlock()
			if faulty, ok := errors.AsType[Faulty](err); ok {
				maps.Copy(failed, faulty)
				return nil
			}
			if err != nil {
				return err
			}
			return pass(token, v)
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return failed.orNil()
}

func (e enRoute) readEach(ctx context.Context, app config.App, tokens []string, limit int,
	fn func(string, Result) error) error {
	read := func(ctx context.Context, token string) (Result, error) {
		result, err := e.read(ctx, app, token, store.UserProfile, limit)
		result.Session = affinity.Session{} // nobody asked for it
		return result, err
	}
	return each(ctx, tokens, read, fn)
}

// storedForm is the stored form of a profile; nil if there is no such user.
type storedForm struct {
	profile []byte
	ticket  int64 // of the row
	same    bool  // the row still has the ticket that the caller knows
}

// readStored passes users in order, so it holds the profiles of those that it reads at a time.
func (e enRoute) readStored(ctx context.Context, app config.App, tokens []string,
	fn func(string, []byte, int64) error) error {
	failed, rest := Faulty{}, distinct(tokens)
	slices.SortFunc(rest, store.UserOrder)
	for group := range slices.Chunk(rest, maxMovingReads) {
		err := e.passStored(ctx, app, group, fn)
		faulty, ok := errors.AsType[Faulty](err)
		if err != nil && !ok {
			return err
		}
		maps.Copy(failed, faulty)
	}
	return failed.orNil()
}

func (e enRoute) passStored(ctx context.Context, app config.App, group []string,
	fn func(string, []byte, int64) error) error {
	part, end := admission.Part(ctx)
	defer end()
	found := make(map[string]storedForm, len(group))
	read := func(ctx context.Context, token string) (storedForm, error) {
		if here, err := e.holds(ctx, app, token); err != nil || !here {
			return storedForm{}, err
		}
		return e.stored(ctx, app, token, 0)
	}
	err := each(part, group, read, func(token string, v storedForm) error {
		found[token] = v
		return admission.Take(part, int64(len(v.profile)))
	})
	if _, faulty := errors.AsType[Faulty](err); err != nil && !faulty {
		return err
	}
	for _, token := range group {
		if v := found[token]; len(v.profile) > 0 {
			if err := fn(token, v.profile, v.ticket); err != nil {
				return err
			}
		}
	}
	return err
}

func (e enRoute) readChanged(ctx context.Context, app config.App, known map[string]int64,
	fn func(string, []byte, int64) error) error {
	read := func(ctx context.Context, token string) (storedForm, error) {
		return e.stored(ctx, app, token, known[token])
	}
	return each(ctx, slices.Collect(maps.Keys(known)), read, func(token string, v storedForm) error {
		if len(v.profile) == 0 && !v.same {
			return nil
		}
		return fn(token, v.profile, v.ticket)
	})
}

func (e enRoute) stored(ctx context.Context, app config.App, token string, known int64) (storedForm, error) {
	found, err := e.locate(ctx, app, token, store.UserProfile)
	if err != nil || found.at == nil || found.row.Gone() || found.row.Ticket == 0 ||
		absorbed(app, token, found.row) {
		return storedForm{}, err
	}
	if app.Identity.Counts() { // a change of a token's links does not change its ticket
		known = 0
	}
	v := storedForm{ticket: found.row.Ticket, same: known > 0 && known == found.row.Ticket}
	if v.same {
		return v, nil
	}
	use, err := found.at.reader.useOf(app, token, found.row)
	if err != nil || use == consent.None {
		return storedForm{}, err
	}
	if _, ok := e.env.validAtTicket(found.row, app, e.env.now().UnixMilli()); ok && use == consent.All {
		v.profile = found.row.Profile
		return v, nil
	}
	result, err := e.read(ctx, app, token, store.UserHistory, 0)
	if err == nil {
		v.profile = result.AppendBinary(nil)
	}
	return v, err
}

// compute is compute, in the regions where the users are.
func (e enRoute) compute(ctx context.Context, app config.App, tokens []string, strategies []*affinity.Compiled,
	read *Reading) (map[string][]affinity.Profile, error) {
	places := map[*Engine][]string{}
	find := func(ctx context.Context, token string) (place, error) {
		return e.locate(ctx, app, token, store.UserState)
	}
	err := each(ctx, tokens, find, func(token string, found place) error {
		if found.at == nil {
			found.at = e.Engine // nobody's
		}
		places[found.at] = append(places[found.at], token)
		return nil
	})
	if err != nil {
		return nil, err
	}
	all, failed := make(map[string][]affinity.Profile, len(tokens)), Faulty{}
	for at, tokens := range places {
		profiles, err := at.reader.compute(ctx, app, tokens, strategies, read)
		faulty, ok := errors.AsType[Faulty](err)
		if err != nil && !ok {
			return nil, err
		}
		maps.Copy(failed, faulty)
		maps.Copy(all, profiles)
	}
	return all, failed.orNil()
}
