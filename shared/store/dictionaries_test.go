package store_test

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"cloud.google.com/go/bigtable"

	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/store"
)

// testDictionaries stores generations, of which one of several writers wins.
func testDictionaries(t *testing.T, b fixture) {
	ctx := t.Context()
	var won atomic.Int64
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			created, err := b.Dictionaries.CreateDictionary(ctx, app, 7, []byte{byte(i)})
			if err != nil {
				t.Error(err)
			}
			if created {
				won.Add(1)
			}
		})
	}
	all.Wait()
	first, err := b.Dictionaries.ReadDictionary(ctx, app, 7)
	if err != nil || won.Load() != 1 || len(first) != 1 {
		t.Errorf("%d of 4 writers stored %v, %v; want one", won.Load(), first, err)
	}
	for _, g := range []int64{0, 8, 1 << 40} {
		if created, err := b.Dictionaries.CreateDictionary(ctx, app, g, []byte("x")); !created || err != nil {
			t.Errorf("%d: %v, %v", g, created, err)
		}
	}
	for _, other := range []string{"ap", "app-", "appx"} { // whose keys are beside those of app
		if _, err := b.Dictionaries.CreateDictionary(ctx, other, 99, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := b.Dictionaries.Dictionaries(ctx, app, 9); err != nil || !slices.Equal(got, []int64{1 << 40, 8, 7, 0}) {
		t.Errorf("generations %v, %v", got, err)
	}
	if got, err := b.Dictionaries.Dictionaries(ctx, app, 1); err != nil || !slices.Equal(got, []int64{1 << 40}) {
		t.Errorf("newest %v, %v", got, err)
	}
	must.Succeed(t, b.Dictionaries.DeleteDictionary(ctx, app, 8))
	if value, err := b.Dictionaries.ReadDictionary(ctx, app, 8); value != nil || err != nil {
		t.Errorf("after its deletion: %q, %v", value, err)
	}
	m := bigtable.NewMutation()
	m.Set("d", "d", bigtable.Now(), nil)
	must.Succeed(t, b.client.Open(store.TableDictionaries).Apply(ctx, app+",no generation", m))
	if got, err := b.Dictionaries.Dictionaries(ctx, app, 9); err != nil || !slices.Equal(got, []int64{1 << 40, 7, 0}) {
		t.Errorf("generations beside a foreign key %v, %v", got, err)
	}
}
