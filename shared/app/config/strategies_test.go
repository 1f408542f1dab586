package config_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/firestore"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/documents/documentdb"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// testOldVersions deletes versions that are neither among the newest nor young.
func testOldVersions(t *testing.T) {
	client := newClient(t, newProject())
	store := config.New(documentdb.New(client), documentdb.New(client), slog.New(slog.DiscardHandler))
	const n = config.KeptVersions + 5
	for name, c := range map[string]struct{ old, gone int64 }{
		"all are old": {n, 6}, "three are old": {3, 3}, "all are young": {0, 0},
	} {
		id := fmt.Sprint("app", c.old)
		if err := store.CreateApp(t.Context(), config.App{ID: id}); err != nil {
			t.Fatal(err)
		}
		app := client.Collection("apps").Doc(id)
		const text = `{"eventsScoring":[],"facetsScoring":[],"personalizationImpact":0}`
		writer := client.BulkWriter(t.Context())
		for v := int64(1); v <= n; v++ {
			at := time.Now().Add(-config.KeptVersionTime + time.Hour)
			if v <= c.old {
				at = at.Add(-2 * time.Hour)
			}
			document := map[string]any{"version": v, "strategy": text, "createdAt": at}
			if _, err := writer.Create(app.Collection("strategies").Doc(fmt.Sprint(v)), document); err != nil {
				t.Fatal(err)
			}
		}
		writer.End()
		if _, err := app.Update(t.Context(), []firestore.Update{{Path: "strategy", Value: text}, {Path: "strategyVersion", Value: n}}); err != nil {
			t.Fatal(err)
		}
		if _, _, err := store.SetStrategy(t.Context(), id, strategy.Strategy{PersonalizationImpact: 1}); err != nil {
			t.Fatal(err)
		}
		versions, err := store.StrategyVersions(t.Context(), id)
		if err != nil || int64(len(versions)) != n+1-c.gone || versions[0].Version != n+1 || versions[len(versions)-1].Version != c.gone+1 {
			t.Errorf("%s: %d versions, error %v; want %d to %d", name, len(versions), err, c.gone+1, n+1)
		}
		for v, want := range map[int64]error{c.gone: config.ErrNotFound, c.gone + 1: nil} {
			if _, err := store.StrategyVersion(t.Context(), id, v); !errors.Is(err, want) {
				t.Errorf("%s: version %d: error %v, want %v", name, v, err, want)
			}
		}
	}
}

// A strategy is set although old versions cannot be deleted, and the log says why
// they stay.
func testDamagedOldVersion(t *testing.T) {
	client, log := newClient(t, newProject()), &bytes.Buffer{}
	store := config.New(documentdb.New(client), documentdb.New(client), slog.New(slog.NewTextHandler(log, nil)))
	if err := store.CreateApp(t.Context(), config.App{ID: "shop"}); err != nil {
		t.Fatal(err)
	}
	app := client.Collection("apps").Doc("shop")
	damaged := map[string]any{"version": 1, "strategy": "", "createdAt": "yesterday"}
	if _, err := app.Collection("strategies").Doc("1").Create(t.Context(), damaged); err != nil {
		t.Fatal(err)
	}
	const text = `{"eventsScoring":[],"facetsScoring":[],"personalizationImpact":0}`
	if _, err := app.Update(t.Context(), []firestore.Update{{Path: "strategy", Value: text}, {Path: "strategyVersion", Value: config.KeptVersions}}); err != nil {
		t.Fatal(err)
	}
	_, changed, err := store.SetStrategy(t.Context(), "shop", strategy.Strategy{PersonalizationImpact: 1})
	if got := log.String(); err != nil || !changed || !strings.Contains(got, "level=WARN") || !strings.Contains(got, "app=shop") {
		t.Errorf("changed: %v, error %v; the log says %q", changed, err, got)
	}
}
