package config

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/affinityengine/affinity/shared/app/documents"
)

// maxForgotten is how many expired sessions an end of another one deletes.
const maxForgotten = 100

type sessionDocument struct {
	ID     string    `firestore:"id"`
	EndsAt time.Time `firestore:"endsAt"`
}

func sessionsPath(appID string) string { return AppPath(appID) + "/endedSessions" }

// EndSession stores that a session of the console has ended early, until its end. It also
// deletes what is stored of sessions whose end has passed.
func (s *Store) EndSession(ctx context.Context, appID, id string, now, end time.Time) error {
	ended := sessionDocument{ID: id, EndsAt: Stamp(end)}
	writes := []documents.Write{documents.Put(sessionsPath(appID)+"/"+documents.ID(id), ended)}
	passed, err := s.documents.Find(ctx, documents.Query{Collection: sessionsPath(appID), Limit: maxForgotten,
		Where: []documents.Condition{{Field: "endsAt", Is: documents.Less, Value: Stamp(now)}}})
	for _, d := range passed {
		if d.Path != writes[0].Path {
			writes = append(writes, documents.Write{Path: d.Path})
		}
	}
	if err == nil {
		err = s.documents.Commit(ctx, writes...)
	}
	if err != nil {
		return fmt.Errorf("end a session of app %q: %w", appID, err)
	}
	return nil
}

// SessionEnded reports whether a session of the console has ended early.
func (s *Store) SessionEnded(ctx context.Context, appID, id string) (bool, error) {
	_, err := s.documents.Get(ctx, sessionsPath(appID)+"/"+documents.ID(id))
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for the end of a session of app %q: %w", appID, err)
	}
	return true, nil
}
