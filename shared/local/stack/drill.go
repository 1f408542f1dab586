package stack

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/affinityengine/affinity/shared/job/audit"
)

// Drilled is what an engine with a restored folder has shown.
type Drilled struct {
	Apps      int `json:"apps"`
	Users     int `json:"users"`     // whose profiles were compared with their events, of all apps
	Events    int `json:"events"`    // of these users
	Differing int `json:"differing"` // users whose profiles are not those of their events
}

// Drill starts an engine with a data folder, lets it do what it finds unfinished, and compares the profiles of up
// to sample users of each app with their events. It changes the folder as any engine does.
func Drill(ctx context.Context, dir string, sample int, log *slog.Logger) (d Drilled, err error) {
	s, err := Start(ctx, Options{Data: dir, Log: log})
	if err != nil {
		return d, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := s.Idle(ctx); err != nil {
		return d, err
	}
	b := s.Backends
	apps, err := b.Config.Apps(ctx)
	if err != nil {
		return d, err
	}
	auditor := audit.New(audit.RowsOf(b.Store), b.Profiles, b.Config)
	for _, id := range apps {
		app, err := b.Config.App(ctx, id)
		if err != nil {
			return d, fmt.Errorf("read app %s: %w", id, err)
		}
		report, err := auditor.Sample(ctx, app, sample)
		if err != nil {
			return d, err
		}
		d.Apps++
		d.Users += report.Compared
		d.Events += report.Events
		d.Differing += report.Differing
	}
	return d, nil
}
