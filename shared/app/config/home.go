package config

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/app/documents"
)

// Home is an app and where its tasks go.
type Home struct {
	App string
	// Region is that in which new users of the app begin, or in which a deleted app lived;
	// empty: the first one.
	Region string
	// Deleted says that the app has been deleted, and that its id is not free yet.
	Deleted bool
}

// Homes returns all apps and the deleted ones whose ids are not free yet, sorted by app. It
// makes two requests, however many there are.
func (s *Store) Homes(ctx context.Context) ([]Home, error) {
	q := documents.Query{Collection: "apps", Only: []string{"id", "region", "move"}}
	apps, err := list[appDocument](ctx, s.documents, q)
	if err != nil {
		return nil, fmt.Errorf("list where apps live: %w", err)
	}
	deletions, err := s.allDeletions(ctx)
	if err != nil {
		return nil, fmt.Errorf("list where apps live: %w", err)
	}
	homes, now := make([]Home, 0, len(apps)+len(deletions)), time.Now()
	for _, d := range apps {
		app := App{ID: d.ID, Region: d.Region}
		if d.Move != nil {
			app.Move = Move{Births: d.Move.Births, Phase: d.Move.Phase}
		}
		homes = append(homes, Home{App: d.ID, Region: app.Births()})
	}
	for _, d := range deletions {
		if d.Reusable(now) != nil {
			homes = append(homes, Home{App: d.App, Region: d.Region, Deleted: true})
		}
	}
	slices.SortStableFunc(homes, func(a, b Home) int { return strings.Compare(a.App, b.App) })
	// An app that was deleted between the two requests is in both lists.
	return slices.CompactFunc(homes, func(a, b Home) bool { return a.App == b.App }), nil
}
