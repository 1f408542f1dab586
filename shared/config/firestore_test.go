package config_test

import (
	"errors"
	"testing"

	"cloud.google.com/go/firestore"

	"github.com/affinityengine/affinity/shared/config"
)

// Two processes share one database and no memory.
func testFirestoreProcesses(t *testing.T) {
	project := newProject()
	one := config.NewFirestore(firestoreClient(t, project))
	two := config.NewFirestore(firestoreClient(t, project))
	create(t, one, "shop")
	setAtOnce(t, "shop", one, two)
	create(t, one, "moving")
	logsAtOnce(t, "moving", one, two)
	wantError(t, "create the other's app", two.CreateApp(t.Context(), config.App{ID: "shop"}), config.ErrExists)
}

// A document that does not hold what it should is a fault, not an absence.
func testFirestoreFaults(t *testing.T) {
	client := firestoreClient(t, newProject())
	store := config.NewFirestore(client)
	create(t, store, "shop")
	setStrategy(t, store, "shop", scores(1), 1, true)
	app := client.Collection("apps").Doc("shop")
	for _, ref := range []*firestore.DocumentRef{app, app.Collection("strategies").Doc("1")} {
		if _, err := ref.Update(t.Context(), []firestore.Update{{Path: "strategy", Value: "{"}}); err != nil {
			t.Fatal(err)
		}
	}
	_, appErr := store.App(t.Context(), "shop")
	_, versionErr := store.StrategyVersion(t.Context(), "shop", 1)
	_, _, setErr := store.SetStrategy(t.Context(), "shop", scores(2))
	for name, err := range map[string]error{"App": appErr, "StrategyVersion": versionErr, "SetStrategy": setErr} {
		if err == nil || errors.Is(err, config.ErrNotFound) {
			t.Errorf("%s: got error %v, want one about the stored strategy", name, err)
		}
	}
}
