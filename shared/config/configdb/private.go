package configdb

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"cloud.google.com/go/firestore"
	"github.com/googleapis/gax-go/v2"
)

func (s *store) SetPrivateFacets(ctx context.Context, appID, index string, facets []string) error {
	backoff := gax.Backoff{Initial: 10 * time.Millisecond, Max: time.Second}
	var err error
	for range maxAttempts {
		if err = s.trySetPrivateFacets(ctx, appID, index, facets); !overtaken(err) {
			break
		}
		if err := gax.Sleep(ctx, backoff.Pause()); err != nil {
			return fmt.Errorf("set private facets of index %q of app %q: %w", index, appID, err)
		}
	}
	if err != nil {
		return fmt.Errorf("set private facets of index %q of app %q: %w", index, appID, err)
	}
	return nil
}

// trySetPrivateFacets changes the app if no other caller changes it at the same
// time. It takes no lock, like trySetStrategy.
func (s *store) trySetPrivateFacets(ctx context.Context, appID, index string, facets []string) error {
	snapshot, err := s.appRef(appID).Get(ctx)
	var d appDocument
	if err := into(&d, snapshot, err); err != nil {
		return err
	}
	app, err := d.app()
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
