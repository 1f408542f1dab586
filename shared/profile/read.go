package profile

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"slices"
	"time"

	"github.com/affinityengine/affinity/shared/admission"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/consent"
	"github.com/affinityengine/affinity/shared/score/experiment"
	"github.com/affinityengine/affinity/shared/store"
)

// Result is a profile as of now.
type Result struct {
	affinity.Profile
	// Stored reports that the read returned the stored profile. Otherwise it
	// computed one.
	Stored bool
	// App is the configuration under which the profile is valid, with the strategy of the arm that the user is in.
	App config.App
	// Assigned is that arm.
	Assigned experiment.Assignment
	// Since (ms) is from when on events count of a profile as of an instant of the past: older
	// ones have expired. 0: none have, or the profile is as of now.
	Since int64
	// Session is the session as of the profile's time. Only ReadRanking promises it.
	Session affinity.Session
	// Of is the known user whose profile it is, who has signed in under the token that was asked
	// for; "": it is the profile of the token. Only reads of Identities set it.
	Of string
	// HeldOut reports that the user gets no personalization, so that on a surface nothing counts of them.
	HeldOut bool
	// unfolded is how many events of a computed profile came from the log.
	unfolded int
}

// Withheld returns the profile without what counts of the user.
func (r Result) Withheld() Result {
	r.Affinities, r.Total, r.Session = nil, 0, affinity.Session{}
	return r
}

// reader serves profiles.
type reader struct {
	*env
	logs     *logs
	tickets  *tickets
	computer *computer
	folder   *folder
	current  func(primary, replica store.User) (store.User, bool) // current; tests replace it
}

// read reads a user whose row it reads in these parts: with UserSession the result
// has the session.
func (r *reader) read(ctx context.Context, app config.App, token string, parts store.UserParts,
	limit int) (Result, error) {
	read, written := r.rowReader(app)
	row, err := read(ctx, app.ID, token, parts)
	if err != nil {
		return Result{}, err
	}
	return r.readFrom(ctx, app, token, row, written, parts, limit)
}

// rowReaderOf reads parts of a user row.
type rowReaderOf func(ctx context.Context, app, user string, parts store.UserParts) (store.User, error)

// rowReader returns how the rows of an app's users are read to answer a request, and whether from the cluster that is
// written.
func (r *reader) rowReader(app config.App) (read rowReaderOf, written bool) {
	if app.Consistency == config.Strong {
		return r.store.Users.ReadPrimary, true
	}
	return r.store.Users.ReadServing, r.store.ServingIsAuthoritative()
}

// readFrom reads a user of whose row these parts were read.
func (r *reader) readFrom(ctx context.Context, app config.App, token string, row store.User, written bool,
	parts store.UserParts, limit int) (Result, error) {
	if err := r.admit(ctx, row, limit); err != nil {
		return Result{}, err
	}
	result, ok, err := r.serve(ctx, &app, token, row, limit)
	if ok && parts == store.UserSession && result.Stored {
		ok = r.serveSession(ctx, &result, row)
	}
	if ok || err != nil {
		return result, err
	}
	if !written {
		// A read that leads to a write must see the cluster that is written.
		if row, err = r.store.Users.ReadPrimary(ctx, app.ID, token, store.UserHistory); err != nil {
			return Result{}, err
		}
	}
	return r.computeOne(ctx, app, token, row)
}

// computeStored reads a user whose stored profile it ignores.
func (r *reader) computeStored(ctx context.Context, app config.App, token string) (Result, error) {
	row, err := r.store.Users.ReadPrimary(ctx, app.ID, token, store.UserHistory)
	if err != nil {
		return Result{}, err
	}
	return r.computeOne(ctx, app, token, row)
}

// computeOne is computeAndStore of one user.
func (r *reader) computeOne(ctx context.Context, app config.App, token string,
	row store.User) (result Result, err error) {
	faulty, err := r.computeAndStore(ctx, app, []string{token}, map[string]store.User{token: row},
		func(_ string, computed Result) error {
			result = computed
			return admission.Take(ctx, affinityBytes*int64(len(computed.Affinities)))
		})
	if err == nil {
		err = faulty[token]
	}
	return result, err
}

// serve answers from a row and reports whether the row holds a valid profile, or says
// that the user is gone. If the profile has a newer strategy than app, the cached
// configuration is out of date, and serve replaces app.
func (r *reader) serve(ctx context.Context, app *config.App, token string, row store.User,
	limit int) (Result, bool, error) {
	use, err := consent.None, error(nil)
	if !row.Gone() {
		use, err = r.useOf(*app, token, row)
	}
	if err != nil {
		return Result{}, false, err
	}
	if use == consent.None {
		return Result{Profile: r.unknown(*app), App: *app}.placed(token, row, r.now()), true, nil
	}
	if use == consent.Part || !row.HasProfile || len(row.Profile) == 0 {
		return Result{}, false, nil
	}
	p, err := r.limits.bounds.Parse(row.Profile, limit)
	if err != nil {
		// The profile is only a cache of the log.
		r.log.LogAttrs(ctx, slog.LevelError, "stored profile is damaged, computing it",
			slog.String("app", app.ID), slog.Any("error", err))
		return Result{}, false, nil
	}
	if p.StrategyVersion > app.StrategyVersion {
		if *app, err = r.newer(ctx, *app); err != nil {
			return Result{}, false, err
		}
	}
	now := r.now().UnixMilli()
	if !r.valid(p, *app, row, now) {
		return Result{}, false, nil
	}
	p = r.limits.bounds.At(p, now)
	if limit > 0 && len(p.Affinities) > limit { // a choice needed all
		p.Affinities = slices.Clone(p.Affinities[:limit])
	}
	return Result{Profile: p, Stored: true, App: *app}.placed(token, row, time.UnixMilli(now)), true, nil
}

// unknown returns the profile of a user of whom nothing counts.
func (r *reader) unknown(app config.App) affinity.Profile {
	return affinity.Profile{
		StrategyVersion: app.ScoringVersion, RetentionDays: app.RetentionDays, HalfLives: app.Strategy.HalfLives,
		Anchor: r.now().UnixMilli(), Until: math.MaxInt64,
	}
}

// serveSession adds the stored session to a stored profile. It reports whether the
// row holds the session of that profile.
func (r *reader) serveSession(ctx context.Context, result *Result, row store.User) bool {
	if len(row.Session) == 0 {
		return false
	}
	s, err := affinity.ParseSession(row.Session, row.Profile)
	if err != nil {
		if !errors.Is(err, affinity.ErrOtherProfile) {
			// The session is only a cache of the log.
			r.log.LogAttrs(ctx, slog.LevelError, "stored session is damaged, computing it",
				slog.String("app", result.App.ID), slog.Any("error", err))
		}
		return false
	}
	result.Session = s.Within(affinity.Window{
		Now: result.Anchor, RetentionDays: result.RetentionDays, DeletedUntil: result.DeletedUntil,
		ReceivedUntil: result.ReceivedUntil,
	})
	return true
}

// valid reports whether a reader may serve a stored profile now: it has the scores of
// the active strategy, the app's retention, the user's tombstone and marks, no event has left or
// entered the window since, and it is not as of a time that only a wrong clock can have shown.
func (v *env) valid(p affinity.Profile, app config.App, row store.User, now int64) bool {
	return app.ScoresAs(p.StrategyVersion) && p.RetentionDays == app.RetentionDays &&
		p.Tombstone() == row.Tombstone() && p.Marks == row.Marks &&
		p.Anchor <= now+v.reach() && (p.Until == math.MaxInt64 || max(now, p.Anchor) < p.Until)
}

// computeAndStore computes profiles from blocks and log and stores them at the
// tickets of rows, which the caller has read before. It passes each to fn, and stores
// nothing for a user without a row.
func (r *reader) computeAndStore(ctx context.Context, app config.App, tokens []string, rows map[string]store.User,
	fn func(token string, result Result) error) (Faulty, error) {
	computations, users := r.begin(ctx, app.ID, distinct(tokens), rows)
	app, err := r.logs.newest(ctx, app, users)
	if err != nil {
		return nil, err
	}
	share := r.memory.Share()
	defer share.Close()
	faulty, save := Faulty{}, r.saveComputed(ctx, app.ID)
	_, err = r.logs.retryOnSchemaChange(ctx, app, func(app config.App) error {
		w := work{app, r.compile(app), forReading, share, r.rereader(app.ID), r.limits.patience}
		return r.computer.compute(ctx, w, computations, r.checked(ctx, app, func(c *computation) error {
			return r.pass(ctx, app, c, save, fn)
		}))
	})
	save.flush()
	r.tickets.repair(ctx, app.ID, users)
	for _, u := range users {
		faulty.note(u)
	}
	return faulty, err
}

// checked calls fn for each of some users, unless the schemas of the log have changed
// since it was read under app.
func (r *reader) checked(ctx context.Context, app config.App, fn func(*computation) error) func([]*computation) error {
	return func(some []*computation) error {
		if err := r.logs.check(ctx, app); err != nil {
			return err
		}
		for _, c := range some {
			if err := fn(c); err != nil {
				return err
			}
		}
		return nil
	}
}

// pass passes a computed profile to fn and saves it.
func (r *reader) pass(ctx context.Context, app config.App, c *computation, save *computedSaver,
	fn func(token string, result Result) error) error {
	one, end := admission.Part(ctx)
	defer end()
	p := c.profile(app)
	if err := admission.Take(one, affinityBytes*int64(len(p.Affinities))); err != nil {
		return err
	}
	if c.row.Ticket > 0 && !c.row.Gone() && c.use == consent.All {
		if err := save.add(c.write(app, p.AppendBinary(nil))); err != nil {
			return err
		}
	}
	return fn(c.token, Result{Profile: p, App: app, Session: c.session, unfolded: c.unfolded}.placed(c.token, c.row, r.now()))
}

// computedSaver writes computed profiles, some megabytes at a time. The answer is
// right even if a write fails.
type computedSaver struct {
	*env
	ctx    context.Context // of the request
	appID  string
	writes []store.ProfileWrite
	bytes  int
	part   context.Context // holds the memory of writes
	end    func()
}

func (v *env) saveComputed(ctx context.Context, appID string) *computedSaver {
	s := &computedSaver{env: v, ctx: ctx, appID: appID}
	s.part, s.end = admission.Part(ctx)
	return s
}

func (s *computedSaver) add(w store.ProfileWrite) error {
	if err := admission.Take(s.part, int64(len(w.Value))); err != nil {
		return err
	}
	s.writes = append(s.writes, w)
	if s.bytes += len(w.Value); s.bytes >= s.limits.writeBytes {
		s.flush()
		s.part, s.end = admission.Part(s.ctx)
	}
	return nil
}

// flush writes what was added.
func (s *computedSaver) flush() {
	if err := s.store.Users.WriteProfiles(s.ctx, s.appID, s.writes); err != nil {
		s.log.LogAttrs(s.ctx, slog.LevelWarn, "computed profiles are not stored",
			slog.String("app", s.appID), slog.Any("error", err))
	}
	s.writes, s.bytes = nil, 0
	s.end()
}

// begin makes the computations of users from their rows.
func (r *reader) begin(ctx context.Context, appID string, tokens []string,
	rows map[string]store.User) ([]*computation, []*user) {
	computations, users := make([]*computation, len(tokens)), make([]*user, len(tokens))
	for i, token := range tokens {
		users[i] = &user{token: token}
		computations[i] = &computation{user: users[i]}
		r.setRowOf(ctx, appID, users[i], rows[token])
	}
	return computations, users
}

// distinct returns each user once, sorted. A reading finds the computation of a
// block by its user, so it cannot hold two of one user.
func distinct(tokens []string) []string {
	tokens = slices.Clone(tokens)
	slices.Sort(tokens)
	return slices.Compact(tokens)
}

func (r *reader) compute(ctx context.Context, app config.App, tokens []string,
	strategies []*affinity.Compiled, read *Reading) (map[string][]affinity.Profile, error) {
	profiles, faulty := make(map[string][]affinity.Profile, len(tokens)), Faulty{}
	for chunk := range slices.Chunk(distinct(tokens), scanUsers) {
		rows, err := r.store.Users.ReadUserHistories(ctx, app.ID, chunk)
		if err != nil {
			return nil, err
		}
		for i, compiled := range strategies {
			computations, _ := r.begin(ctx, app.ID, chunk, rows)
			share := r.memory.Share()
			computed := make(map[string]affinity.Profile, len(chunk))
			app, err = r.logs.retryOnSchemaChange(ctx, app, func(app config.App) error {
				w := work{app, compiled, forScores, share, r.rereader(app.ID), r.limits.patience}
				return r.computer.compute(ctx, w, computations, r.checked(ctx, app, func(c *computation) error {
					computed[c.token] = c.profile(app)
					return nil
				}))
			})
			share.Close()
			if err != nil {
				return nil, err
			}
			for _, c := range computations {
				if !faulty.note(c.user) {
					profiles[c.token] = append(profiles[c.token], computed[c.token])
				}
				if i == 0 {
					read.Events += c.events + c.unfolded + c.banded
					read.Blocks += len(c.manifest.Blocks)
				}
			}
		}
	}
	for token := range faulty {
		delete(profiles, token) // under another strategy the row may not have been decoded
	}
	return profiles, faulty.orNil()
}
