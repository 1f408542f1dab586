package profile

import (
	"context"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/store"
)

// saver writes computed profiles, some megabytes at a time.
type saver struct {
	*env
	logs    *logs
	app     config.App
	writes  []store.ProfileWrite
	bytes   int
	written int64
	faults  faults
	// listed are the users in the list of changes; nil: these writes change no profile.
	listed *listing
	// stored is called for each profile that is written; nil: nobody asks.
	stored func(store.ProfileWrite)
}

func (l *logs) newSaver(app config.App) *saver { return &saver{env: l.env, logs: l, app: app} }

// add writes a profile, now or later. Its log has been read. Of a user who has opted out
// since, as a row that was read again says, it writes nothing: the marker stays.
func (s *saver) add(ctx context.Context, w store.ProfileWrite) error {
	if w.Row.Gone() {
		return nil
	}
	s.writes = append(s.writes, w)
	if s.bytes += len(w.Value) + len(w.Session) + len(w.Counted); s.bytes < s.limits.writeBytes {
		return nil
	}
	return s.flush(ctx)
}

// flush writes the profiles that were added, unless the schemas of the log have
// changed since they were read. A profile that Bigtable refuses becomes a marker:
// every read computes it.
func (s *saver) flush(ctx context.Context) error {
	if len(s.writes) == 0 {
		return nil
	}
	if err := s.logs.check(ctx, s.app); err != nil {
		return err
	}
	if err := s.listed.wait(); err != nil {
		return err
	}
	err := s.store.Users.WriteProfiles(ctx, s.app.ID, s.writes)
	refused := refusedBy(err)
	if err != nil && refused == nil {
		return err
	}
	for _, w := range s.writes {
		if err := refused[w.User]; err != nil {
			s.logFault(ctx, s.app.ID, w.User, err)
			s.faults.add("profile of "+w.User, err)
			if err := s.hide(ctx, s.app.ID, s.app.ScoringVersion, &user{token: w.User, row: w.Row}); err != nil {
				return err
			}
		} else if s.stored != nil {
			s.stored(w)
		}
	}
	if err := s.relist(ctx); err != nil {
		return err
	}
	s.written += int64(len(s.writes) - len(refused))
	clear(s.writes)
	s.writes, s.bytes = s.writes[:0], 0
	return nil
}

// relist lists the users of the writes again if these have taken too long.
func (s *saver) relist(ctx context.Context) error {
	if s.listed == nil {
		return nil
	}
	users := make([]string, len(s.writes))
	for i, w := range s.writes {
		users[i] = w.User
	}
	return s.listed.written(ctx, users...)
}
