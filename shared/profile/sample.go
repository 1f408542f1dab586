package profile

import (
	"context"
	"errors"
	"log/slog"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/profile/dictionary"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/store"
)

// sampled bounds a sample of users, from which a dictionary is made. The bounds are
// divided among the places where it begins.
var sampled = struct {
	users, rows, bytes int
	// of one user; later events are read and left out
	events int
}{users: 2_048, rows: 50_000, bytes: 16 << 20, events: 500}

// sampler samples users for dictionaries.
type sampler struct {
	*env
	logs *logs
}

func (s *sampler) renew(ctx context.Context, app config.App, starts []string) {
	if len(starts) == 0 {
		starts = []string{""}
	}
	_, err := s.dictionaries.Renew(ctx, app.ID, app.RetentionDays, func(ctx context.Context) ([]dictionary.User, error) {
		var all []dictionary.User
		for i, from := range starts {
			r := store.Range{From: from}
			if i+1 < len(starts) {
				r.To = starts[i+1]
			}
			some, err := s.sample(ctx, app, r, len(starts))
			if err != nil {
				return nil, err
			}
			all = append(all, some...)
		}
		return all, nil
	})
	if err != nil && ctx.Err() == nil {
		s.log.LogAttrs(ctx, slog.LevelWarn, "no dictionary is made", slog.String("app", app.ID), slog.Any("error", err))
	}
}

// sample reads the log of the first users of a range, within a share of the bounds. It
// leaves out users with events that are deleted, or that they have opted out of.
func (s *sampler) sample(ctx context.Context, app config.App, r store.Range, share int) ([]dictionary.User, error) {
	var ranges []store.UserRange
	now := s.now().UnixMilli()
	err := s.store.Users.ScanUsers(ctx, app.ID, r.From, r.To, max(1, sampled.users/share), store.UserState,
		func(token string, row store.User) error {
			u := &user{token: token, row: row}
			if u.setWindow(now, app); !row.Gone() && !u.sifted() {
				ranges = append(ranges, store.UserRange{User: token, From: u.windowStart(), To: history.End})
			}
			return nil
		})
	if err != nil || len(ranges) == 0 {
		return nil, err
	}
	var users []dictionary.User
	rows, bytes := 0, 0
	err = s.logs.of(app).Read(ctx, ranges, func(token string, row store.LogRow) error {
		if rows, bytes = rows+1, bytes+row.Size(); rows > sampled.rows/share || bytes > sampled.bytes/share {
			return errEnough
		}
		if len(users) == 0 || users[len(users)-1].Token != token {
			users = append(users, dictionary.User{Token: token})
		}
		u := &users[len(users)-1]
		if len(u.Events) == sampled.events {
			return nil
		}
		if e, err := row.Event(); err == nil { // the computation reports a damaged row
			u.Events = append(u.Events, e)
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return users, err
}
