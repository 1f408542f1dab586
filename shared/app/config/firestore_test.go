package config_test

import (
	"crypto/rand"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/firestore"
	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/documents/documentdb"
	"github.com/affinityengine/affinity/shared/local/configtest"
	"github.com/affinityengine/affinity/shared/local/gcloudtest"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// The tests share one official emulator. Each Store has a project, and so a
// database, of its own.
func TestFirestore(t *testing.T) {
	t.Setenv("FIRESTORE_EMULATOR_HOST", gcloudtest.Firestore(t))
	open := func(t *testing.T) *config.Store {
		return openFirestore(t, newProject())
	}
	for name, test := range map[string]func(*testing.T){
		"Plain": func(t *testing.T) { configtest.Run(t, open) },
		"Cached": func(t *testing.T) {
			configtest.RunCached(t, open)
		},
		"Processes": func(t *testing.T) {
			project := newProject()
			configtest.RunShared(t, openFirestore(t, project), openFirestore(t, project))
		},
		"CorruptStrategy":      testCorruptStrategy,
		"DamagedPrivateFacets": testDamagedPrivateFacets,
		"LogDocument":          testLogDocument,
		"OldVersions":          testOldVersions,
		"DamagedOldVersion":    testDamagedOldVersion,
		"Documents":            testDocuments,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}

func newProject() string { return "affinity-" + strings.ToLower(rand.Text()) }

// openFirestore opens a Store with its keys in a database of their own.
func openFirestore(t *testing.T, project string) *config.Store {
	t.Helper()
	return config.New(documentdb.New(newClient(t, project)), documentdb.New(newDatabase(t, project, "affinity-keys")),
		slog.New(slog.DiscardHandler))
}

func newClient(t *testing.T, project string) *firestore.Client {
	t.Helper()
	return newDatabase(t, project, firestore.DefaultDatabaseID)
}

func newDatabase(t *testing.T, project, database string) *firestore.Client {
	t.Helper()
	client, err := firestore.NewClientWithDatabase(t.Context(), project, database)
	if err != nil {
		t.Fatalf("open Firestore: %v", err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Errorf("close Firestore: %v", err)
		}
	})
	return client
}

// A corrupt document is reported as a fault, not as a missing one.
func testCorruptStrategy(t *testing.T) {
	client := newClient(t, newProject())
	store := config.New(documentdb.New(client), documentdb.New(client), slog.New(slog.DiscardHandler))
	if err := store.CreateApp(t.Context(), config.App{ID: "shop"}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := store.SetStrategy(t.Context(), "shop", strategy.Strategy{PersonalizationImpact: 70}); err != nil {
		t.Fatal(err)
	}
	app := client.Collection("apps").Doc("shop")
	for _, ref := range []*firestore.DocumentRef{app, app.Collection("strategies").Doc("1")} {
		if _, err := ref.Update(t.Context(), []firestore.Update{{Path: "strategy", Value: "{"}}); err != nil {
			t.Fatal(err)
		}
	}
	_, appErr := store.App(t.Context(), "shop")
	_, versionErr := store.StrategyVersion(t.Context(), "shop", 1)
	_, _, setErr := store.SetStrategy(t.Context(), "shop", strategy.Strategy{PersonalizationImpact: 50})
	for name, err := range map[string]error{"App": appErr, "StrategyVersion": versionErr, "SetStrategy": setErr} {
		if err == nil || errors.Is(err, config.ErrNotFound) {
			t.Errorf("%s: got error %v, want an error about the stored strategy", name, err)
		}
	}
}

// An app whose private facets cannot be read is a fault, not an app without any.
func testDamagedPrivateFacets(t *testing.T) {
	client := newClient(t, newProject())
	store := config.New(documentdb.New(client), documentdb.New(client), slog.New(slog.DiscardHandler))
	if err := store.CreateApp(t.Context(), config.App{ID: "shop"}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Collection("apps").Doc("shop").Update(t.Context(), []firestore.Update{{Path: "privateFacets", Value: `{"products":["gen`}}); err != nil {
		t.Fatal(err)
	}
	if app, err := store.App(t.Context(), "shop"); err == nil || errors.Is(err, config.ErrNotFound) {
		t.Errorf("got %+v, error %v; want an error about the stored private facets", app, err)
	}
}

// A change of the log changes its fields alone. A document with an unknown layout is a
// fault.
func testLogDocument(t *testing.T) {
	client := newClient(t, newProject())
	store := config.New(documentdb.New(client), documentdb.New(client), slog.New(slog.DiscardHandler))
	document := client.Collection("apps").Doc("shop")
	at := time.Date(2026, 3, 4, 5, 6, 7, 8000, time.UTC)
	old := map[string]any{"id": "shop", "retentionDays": 30, "strategy": "", "strategyVersion": 0, "createdAt": at, "changedAt": at,
		"log": map[string]any{"write": []any{"wide"}, "read": "wide", "encoding": "compact", "generation": 0}}
	if _, err := document.Create(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	want := config.App{ID: "shop", RetentionDays: 30, Log: schema.Default(), CreatedAt: at, ChangedAt: at}
	got, err := store.App(t.Context(), "shop")
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("document: error %v (-want +got):\n%s", err, diff)
	}
	update := func(change func(*config.App)) config.App {
		t.Helper()
		app, err := store.UpdateLog(t.Context(), "shop", func(a *config.App) error { change(a); return nil })
		if err != nil {
			t.Fatalf("change the log: %v", err)
		}
		stored, err := store.App(t.Context(), "shop")
		if diff := cmp.Diff(app, stored); err != nil || diff != "" {
			t.Errorf("stored app: error %v (-returned +stored):\n%s", err, diff)
		}
		return app
	}
	if got := update(func(a *config.App) {}); !got.ChangedAt.Equal(at) {
		t.Errorf("a change of nothing: changed at %v", got.ChangedAt)
	}
	both := schema.Layout{Write: []schema.Name{schema.Wide, schema.Narrow}, Read: schema.Wide, Encoding: schema.JSON}
	update(func(a *config.App) {
		a.Log, a.Migration = both, config.Migration{ID: "migration-1", From: schema.Wide, To: schema.Narrow, Phase: config.Dual, StartedAt: at}
	})
	snapshot, err := document.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	fields := snapshot.Data()
	delete(fields, "changedAt")
	delete(old, "changedAt")
	old["retentionDays"], old["strategyVersion"] = int64(30), int64(0) // Firestore returns int64
	old["log"] = map[string]any{"write": []any{"wide", "narrow"}, "read": "wide", "encoding": "json", "generation": int64(1)}
	old["migration"] = map[string]any{"id": "migration-1", "from": "wide", "to": "narrow", "phase": "dual", "job": "", "backfill": "",
		"rate": int64(0), "undone": false, "startedAt": at}
	if diff := cmp.Diff(old, fields); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}

	if _, err := document.Update(t.Context(), []firestore.Update{{Path: "log.read", Value: "tall"}}); err != nil {
		t.Fatal(err)
	}
	_, readErr := store.App(t.Context(), "shop")
	_, changeErr := store.UpdateLog(t.Context(), "shop", func(a *config.App) error {
		a.Log = schema.Default()
		return nil
	})
	for name, err := range map[string]error{"App": readErr, "UpdateLog": changeErr} {
		if err == nil || errors.Is(err, config.ErrNotFound) {
			t.Errorf("%s of an unknown layout: got error %v, want an error about the stored log", name, err)
		}
	}
}
