package stack_test

import (
	"testing"

	"github.com/affinityengine/affinity/shared/local/gcloudtest"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/score/schema"
)

func TestLayout(t *testing.T) {
	for name, test := range map[string]struct{ given, want schema.Layout }{
		"none":   {schema.Layout{}, schema.Default()},
		"narrow": {schema.Of(schema.Narrow), schema.Of(schema.Narrow)},
	} {
		t.Run(name, func(t *testing.T) { wantLayout(t, start(t, stack.Options{Layout: test.given}), test.want) })
	}
}

// An app that exists in the emulator keeps its layout.
func TestExistingLayoutIsKept(t *testing.T) {
	t.Setenv("FIRESTORE_EMULATOR_HOST", gcloudtest.Firestore(t))
	first := start(t, stack.Options{Layout: schema.Of(schema.Narrow)})
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	wantLayout(t, start(t, stack.Options{Layout: schema.Of(schema.Wide)}), schema.Of(schema.Narrow))
}

func wantLayout(t *testing.T, s *stack.Stack, want schema.Layout) {
	t.Helper()
	for _, id := range []string{"demo", "other"} {
		app, err := s.Backends.Config.App(t.Context(), id)
		if err != nil || !app.Log.Equal(want) {
			t.Errorf("app %s: got %+v, error %v; want %+v", id, app.Log, err, want)
		}
	}
}
