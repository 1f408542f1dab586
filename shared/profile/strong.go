package profile

import (
	"context"
	"log/slog"

	"golang.org/x/sync/errgroup"

	"github.com/affinityengine/affinity/shared/admission"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/store"
)

// A strong read answers as the cluster does that is written, the primary. Most of what it
// would read there, a replica already has. So a strong read of many users asks at once for
// the states of the rows in the primary and for the profiles in the replica. It serves a
// profile of the replica if its ticket is the counter in the primary or a later one: the
// process that computed it read the log after that ticket was drawn, so it counts every
// event that was acknowledged before the read. Tombstone, opt-out and marks are those of
// the primary. It does not matter which of the two answers is older, nor how far the
// replica lags. Users whose profile the replica does not have are then read from the
// primary.
//
// Bigtable's data API has no low watermark, a time up to which a replica is complete. It
// would not help either: it says nothing of a row that was written since.
//
// A read of few users reads their rows from the primary at once, because the second request
// costs more than it spares. BenchmarkStrongRead measures both.

// splitUsers is from how many users on a strong read asks two clusters.
const splitUsers = 10

// splits reports whether a read of so many users of an app asks two clusters.
func (r *reader) splits(app config.App, users int) bool {
	return app.Consistency == config.Strong && !r.store.ServingIsAuthoritative() && users >= r.limits.splitUsers
}

// current returns the state of a user row in the primary, with the profile of the same row
// in a replica. It returns false if that profile may lack what the state has.
func current(primary, replica store.User) (store.User, bool) {
	if primary.Gone() {
		return primary, true
	}
	// A row without a counter was dropped, and the replica may still have it.
	if primary.Ticket == 0 || replica.ProfileTicket < primary.Ticket {
		return store.User{}, false
	}
	primary.HasProfile, primary.Profile, primary.ProfileTicket, primary.Session = replica.HasProfile, replica.Profile,
		replica.ProfileTicket, replica.Session
	return primary, true
}

// readEachSplit is readEach of the users whose profiles the replica has. It returns the
// others, and the configuration to read them with.
func (r *reader) readEachSplit(ctx context.Context, app config.App, tokens []string, limit int,
	fn func(token string, result Result) error) (config.App, []string, error) {
	var rest []string
	for len(tokens) > 0 {
		var behind []string
		var err error
		if app, tokens, behind, err = r.readGroupSplit(ctx, app, tokens, limit, fn); err != nil {
			return app, nil, err
		}
		rest = append(rest, behind...)
	}
	return app, rest, nil
}

// readGroupSplit reads the first users of a list. It returns those that are left, and
// those that have to be read from the primary. What it takes from the gate of the process
// is for this group only.
func (r *reader) readGroupSplit(ctx context.Context, app config.App, tokens []string, limit int,
	fn func(token string, result Result) error) (_ config.App, left, behind []string, err error) {
	ctx, end := admission.Part(ctx)
	defer end()
	var primary, replica map[string]store.User
	var group []string
	var failed error
	both, requests := errgroup.WithContext(ctx)
	both.Go(func() (err error) {
		primary, err = r.store.Users.ReadUserStates(requests, app.ID, tokens[:min(len(tokens), groupUsers)])
		return err
	})
	both.Go(func() error {
		replica, group, left, failed = r.scanGroup(requests, app.ID, tokens, r.store.Users.ScanServing)
		return nil
	})
	if err := both.Wait(); err != nil {
		return app, nil, nil, err
	}
	if failed != nil {
		r.log.LogAttrs(ctx, slog.LevelWarn, "a strong read does without the replica",
			slog.String("app", app.ID), slog.Any("error", failed))
		return app, left, group, nil
	}
	rows, served := make(map[string]store.User, len(group)), []string(nil)
	for _, token := range group {
		if row, ok := r.current(primary[token], replica[token]); ok {
			rows[token], served = row, append(served, token)
		} else {
			behind = append(behind, token)
		}
	}
	if app, err = r.newestOf(ctx, app, rows); err != nil {
		return app, nil, nil, err
	}
	stale, err := r.serveEach(ctx, &app, served, rows, limit, fn)
	return app, left, append(behind, stale...), err
}
