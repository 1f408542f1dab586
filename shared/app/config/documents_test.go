package config_test

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/documents/documentdb"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// All documents below a deleted app are found and deleted: of collections that no
// code names too, below documents that do not exist too, and none of another app.
func testDocuments(t *testing.T) {
	project := newProject()
	client, keys := newClient(t, project), documentdb.New(newDatabase(t, project, "affinity-keys"))
	store := config.New(documentdb.New(client), keys, slog.New(slog.DiscardHandler))
	documents := config.Documents{Store: documentdb.New(client), Keys: keys}
	holding := func(app string) []string {
		t.Helper()
		names, err := documents.Holding(t.Context(), app, 9)
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(names)
		return names
	}
	apps := []string{"shop", "shop-", "__shop"}
	for _, app := range apps {
		if err := store.CreateApp(t.Context(), config.App{ID: app}); err != nil {
			t.Fatal(err)
		}
		if _, _, err := store.SetStrategy(t.Context(), app, strategy.Strategy{PersonalizationImpact: 70}); err != nil {
			t.Fatal(err)
		}
		if err := store.PutKey(t.Context(), app, config.Key{Hash: strings.Repeat("a", 64)}); err != nil {
			t.Fatal(err)
		}
		below := client.Doc(config.AppPath(app))
		for i := range 3 {
			for _, path := range []string{"recomputes/%d/shards/0", "recomputes/%d", "later/gone/deeper/%d", "later/%d"} {
				doc := below
				for parts := strings.Split(fmt.Sprintf(path, i), "/"); len(parts) > 0; parts = parts[2:] {
					doc = doc.Collection(parts[0]).Doc(parts[1])
				}
				if _, err := doc.Set(t.Context(), map[string]any{"app": app}); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if names := holding("shop"); !slices.Equal(names, []string{"keys", "later", "recomputes", "strategies", "the app's own document"}) {
		t.Errorf("a living app has %q", names)
	}
	for _, app := range []string{"shop", "__shop"} {
		if _, err := store.DeleteApp(t.Context(), app); err != nil {
			t.Fatal(err)
		}
		if names := holding(app); !slices.Equal(names, []string{"keys", "later", "recomputes", "strategies"}) {
			t.Errorf("the deleted app %s has %q", app, names)
		}
		for range 2 {
			if err := documents.Forget(t.Context(), app); err != nil {
				t.Fatal(err)
			}
		}
		if names := holding(app); len(names) != 0 {
			t.Errorf("%q of app %s are left", names, app)
		}
	}
	if names := holding("shop-"); len(names) != 5 {
		t.Errorf("the other app has %q", names)
	}
	if _, err := client.Doc("apps/shop-/later/gone/deeper/2").Get(t.Context()); err != nil {
		t.Errorf("a document of the other app: %v", err)
	}
}
