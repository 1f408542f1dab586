package profile

import (
	"context"
	"errors"
	"slices"

	"github.com/affinityengine/affinity/shared/admission"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/store"
)

const (
	// groupUsers is how many users a read of many users reads at a time, and fewer if
	// their profiles are large: see limits.groupBytes. A profile of some hundred
	// affinities has some kilobytes. The largest that the bounds permit has some
	// megabytes.
	groupUsers = 100
	// rowCopies is how many bytes a read holds for each byte of a row: the row, and
	// the message of the database that it came in.
	rowCopies = 2
	// affinityBytes is what an affinity holds, decoded and in the answer.
	affinityBytes = 512
	// minAffinity is the size of the smallest affinity in a stored profile: its facet,
	// the length of its value, a letter and a score.
	minAffinity = 11
)

// errGroupFull ends the reading of a group at groupBytes.
var errGroupFull = errors.New("the group is full")

// admit takes the memory of a row and its profile from the gate of the process, for
// the request that the context belongs to. limit is the number of affinities that
// the request asks for; 0: all.
func (r *reader) admit(ctx context.Context, row store.User, limit int) error {
	return admission.Take(ctx, rowBytes(row)+r.profileBytes(row, limit))
}

func rowBytes(row store.User) int64 {
	return rowCopies * int64(len(row.Profile)+len(row.Session)+len(row.Manifest))
}

// profileBytes bounds what the profile of a row holds once it is decoded.
func (r *reader) profileBytes(row store.User, limit int) int64 {
	n := len(row.Profile) / minAffinity
	for _, most := range []int{limit, r.limits.bounds.Values} {
		if most > 0 {
			n = min(n, most)
		}
	}
	return affinityBytes * int64(n)
}

// readEach reads users in groups, and passes each result to fn.
func (r *reader) readEach(ctx context.Context, app config.App, tokens []string, limit int,
	fn func(token string, result Result) error) error {
	failed, rest := Faulty{}, distinct(tokens)
	var err error
	if r.splits(app, len(rest)) {
		if app, rest, err = r.readEachSplit(ctx, app, rest, limit, fn); err != nil {
			return err
		}
	}
	for len(rest) > 0 {
		if app, rest, err = r.readGroup(ctx, app, rest, limit, failed, fn); err != nil {
			return err
		}
	}
	return failed.orNil()
}

// readGroup reads the first users of a list. It returns those that are left, and the
// configuration to read them with. What it takes from the gate of the process is for
// this group only.
func (r *reader) readGroup(ctx context.Context, app config.App, tokens []string, limit int, failed Faulty,
	fn func(token string, result Result) error) (config.App, []string, error) {
	ctx, end := admission.Part(ctx)
	defer end()
	scan, written := r.store.Users.ScanServing, r.store.ServingIsAuthoritative()
	if app.Consistency == config.Strong {
		scan, written = r.store.Users.ScanPrimary, true
	}
	rows, group, rest, err := r.scanGroup(ctx, app.ID, tokens, scan)
	if err != nil {
		return app, nil, err
	}
	if app, err = r.newestOf(ctx, app, rows); err != nil {
		return app, nil, err
	}
	stale, err := r.serveEach(ctx, &app, group, rows, limit, fn)
	if err != nil || len(stale) == 0 {
		return app, rest, err
	}
	for token, row := range rows {
		row.Profile, row.Session = nil, nil // computations do not need them
		rows[token] = row
	}
	if !written {
		// A read that leads to a write must see the cluster that is written.
		if rows, err = r.store.Users.ReadUserHistories(ctx, app.ID, stale); err != nil {
			return app, nil, err
		}
	}
	faulty, err := r.computeAndStore(ctx, app, stale, rows, func(token string, result Result) error {
		result.Session = affinity.Session{} // nobody asked for it
		return fn(token, result)
	})
	for token, err := range faulty {
		r.logFault(ctx, app.ID, token, err)
		failed[token] = err
	}
	return app, rest, err
}

// scanGroup reads the rows of the first users of a list by scan. It returns them, the
// users whose rows it has read, and those that are left.
func (r *reader) scanGroup(ctx context.Context, appID string, tokens []string,
	scan func(context.Context, string, []string,
		func(string, store.User) error) error) (rows map[string]store.User, group, rest []string, err error) {
	group, rest = tokens[:min(len(tokens), groupUsers)], tokens[min(len(tokens), groupUsers):]
	rows = make(map[string]store.User, len(group))
	bytes := 0
	err = scan(ctx, appID, group, func(token string, row store.User) error {
		rows[token] = row
		bytes += len(row.Profile)
		if err := admission.Take(ctx, rowBytes(row)); err != nil {
			return err
		}
		if bytes >= r.limits.groupBytes {
			return errGroupFull
		}
		return nil
	})
	if errors.Is(err, errGroupFull) {
		err = nil
		unread := slices.DeleteFunc(slices.Clone(group), func(token string) bool { _, ok := rows[token]; return ok })
		group = slices.DeleteFunc(slices.Clone(group), func(token string) bool { _, ok := rows[token]; return !ok })
		rest = append(unread, rest...)
	}
	return rows, group, rest, err
}

// newestOf returns the configuration for the rows of a group. Any row may show that the
// cached configuration is out of date. One group uses one strategy for all users.
func (r *reader) newestOf(ctx context.Context, app config.App, rows map[string]store.User) (config.App, error) {
	for _, row := range rows {
		if row.Version > app.StrategyVersion {
			return r.newer(ctx, app)
		}
	}
	return app, nil
}

// newer reads the configuration that is newer than that of a request. It keeps the
// consistency and the surface that the request asks for.
func (r *reader) newer(ctx context.Context, app config.App) (config.App, error) {
	fresh, err := r.logs.readFresh(ctx, app.ID)
	fresh.Consistency = app.Consistency
	return fresh.As(app), err
}

// serveEach passes the stored profiles that are valid to fn. It returns the other
// users.
func (r *reader) serveEach(ctx context.Context, app *config.App, group []string, rows map[string]store.User, limit int,
	fn func(token string, result Result) error) (stale []string, err error) {
	serve := func(token string) error {
		ctx, end := admission.Part(ctx) // it is decoded until fn returns
		defer end()
		if err := admission.Take(ctx, r.profileBytes(rows[token], limit)); err != nil {
			return err
		}
		result, ok, err := r.serve(ctx, app, token, rows[token], limit)
		if !ok && err == nil {
			stale = append(stale, token)
		} else if err == nil {
			err = fn(token, result)
		}
		return err
	}
	for _, token := range group {
		if err := serve(token); err != nil {
			return nil, err
		}
	}
	return stale, nil
}
