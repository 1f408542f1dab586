package configdb

import (
	"context"
	"encoding/json"
	"fmt"

	"cloud.google.com/go/firestore"
)

func (s *store) SetPrivateFacets(ctx context.Context, appID, index string, facets []string) error {
	err := retryOvertaken(ctx, func() error { return s.trySetPrivateFacets(ctx, appID, index, facets) })
	if err != nil {
		return fmt.Errorf("set private facets of index %q of app %q: %w", index, appID, err)
	}
	return nil
}

// trySetPrivateFacets changes the app if no other caller changes it at the same
// time. It takes no lock, like trySetStrategy.
func (s *store) trySetPrivateFacets(ctx context.Context, appID, index string, facets []string) error {
	snapshot, app, err := s.readApp(ctx, appID)
	if err != nil {
		return err
	}
	to, err := app.PrivateFacets.With(index, facets)
	if err != nil {
		return err
	}
	update := firestore.Update{Path: "privateFacets", Value: firestore.Delete}
	if to != nil {
		text, err := json.Marshal(to)
		if err != nil {
			return err
		}
		update.Value = string(text)
	}
	_, err = s.appRef(appID).Update(ctx, []firestore.Update{update}, firestore.LastUpdateTime(snapshot.UpdateTime))
	return err
}
