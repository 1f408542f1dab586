package config_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/documents"
)

// interrupted is a store before whose n-th call something else happens. Both stores of a
// configuration share n.
type interrupted struct {
	documents.Store
	n    *int
	hook func()
}

func (i interrupted) call() {
	if *i.n--; *i.n == 0 {
		i.hook()
	}
}

func (i interrupted) Get(ctx context.Context, path string) (documents.Document, error) {
	i.call()
	return i.Store.Get(ctx, path)
}

func (i interrupted) Find(ctx context.Context, q documents.Query) ([]documents.Document, error) {
	i.call()
	return i.Store.Find(ctx, q)
}

func (i interrupted) Commit(ctx context.Context, writes ...documents.Write) error {
	i.call()
	return i.Store.Commit(ctx, writes...)
}

func (i interrupted) Below(ctx context.Context, path string) ([]string, error) {
	i.call()
	return i.Store.Below(ctx, path)
}

func (i interrupted) Forget(ctx context.Context, collections ...string) error {
	i.call()
	return i.Store.Forget(ctx, collections...)
}

// twoStores are the stores of a configuration with one app, and what writes and deletes in them.
type twoStores struct {
	kept, keys *documents.Memory
	*config.Store
	below config.Documents
}

func newTwoStores(t *testing.T, earlierKey bool) twoStores {
	t.Helper()
	kept, keys := documents.NewMemory(), documents.NewMemory()
	s := twoStores{kept, keys, config.New(kept, keys, slog.New(slog.DiscardHandler)), config.Documents{Store: kept, Keys: keys}}
	create(t, s.Store)
	if earlierKey {
		wantError(t, "put an earlier key", s.PutKey(t.Context(), "shop", config.Key{Hash: strings.Repeat("e", 64)}), nil)
	}
	return s
}

// before returns the same configuration, before whose n-th call of the stores hook runs.
func (s twoStores) before(n int, hook func()) (*config.Store, config.Documents) {
	kept, keys := interrupted{s.kept, &n, hook}, interrupted{s.keys, &n, hook}
	return config.New(kept, keys, slog.New(slog.DiscardHandler)), config.Documents{Store: kept, Keys: keys}
}

// end deletes the app and all that is below it, and with again makes another one of its id.
func (s twoStores) end(t *testing.T, again bool) {
	ctx := t.Context()
	_, err := s.DeleteApp(ctx, "shop")
	errs := []error{err, s.below.Forget(ctx, "shop")}
	if again {
		_, err = s.UpdateDeletion(ctx, "shop", func(d *config.Deletion) error { d.End(time.Now().Add(-config.Reserved), 0); return nil })
		errs = append(errs, err, s.CreateApp(ctx, config.App{ID: "shop"}))
	}
	wantError(t, "end the app", errors.Join(errs...), nil)
}

func (s twoStores) keysLeft(t *testing.T) int {
	t.Helper()
	left, err := s.keys.Find(t.Context(), documents.Query{Collection: "keys", All: true})
	wantError(t, "list all keys", err, nil)
	return len(left)
}

// longestPut is more than the calls that a PutKey makes, a repeated one too.
const longestPut = 12

// Whenever an app ends while a key is written, no key is left. One that is written after
// another app got the id is a key of that one.
func TestKeyOfAnAppThatEnds(t *testing.T) {
	key := config.Key{Hash: strings.Repeat("a", 64), Parent: []byte("sealed")}
	for n := 1; n <= longestPut; n++ {
		for _, earlier := range []bool{false, true} {
			for _, again := range []bool{false, true} {
				what := fmt.Sprintf("end before call %d, an earlier key %v, another app %v", n, earlier, again)
				s := newTwoStores(t, earlier)
				over := false
				writer, _ := s.before(n, func() { s.end(t, again); over = true })
				err := writer.PutKey(t.Context(), "shop", key)
				if !over {
					s.end(t, again)
					if wantError(t, what, err, nil); n < 4 {
						t.Errorf("%s: there was no such call", what)
					}
				}
				left := s.keysLeft(t)
				if over && again {
					if wantError(t, what, err, nil); left != 1 {
						t.Errorf("%s: %d keys, want that of the other app alone", what, left)
					}
					continue
				}
				if over {
					wantError(t, what, err, config.ErrNotFound)
				}
				if left != 0 {
					t.Errorf("%s: %d keys are left", what, left)
				}
			}
		}
	}
}

// A key is written up to one of its calls of the stores, then the app ends up to one of its
// own, then the key is written, then the app ends: no key is left.
func TestEndOfAnAppThatGetsAKey(t *testing.T) {
	for m := 1; ; m++ {
		for n := 1; ; n++ {
			s := newTwoStores(t, n%2 == 0)
			paused, resume, done := make(chan bool, 1), make(chan bool), make(chan error, 1)
			writer, _ := s.before(m, func() { paused <- true; <-resume })
			go func() {
				done <- writer.PutKey(t.Context(), "shop", config.Key{Hash: strings.Repeat("a", 64)})
				paused <- false
			}()
			if !<-paused {
				if m < 4 {
					t.Fatalf("a key is written in %d calls", m-1)
				}
				return
			}
			_, err := s.DeleteApp(t.Context(), "shop")
			met := false
			_, below := s.before(n, func() { close(resume); err, met = errors.Join(err, <-done), true })
			forgotten := below.Forget(t.Context(), "shop")
			if wantError(t, "forget the app", forgotten, nil); !met {
				close(resume)
				if wantError(t, "a key after the app", <-done, config.ErrNotFound); n < 6 {
					t.Errorf("an app ends in %d calls", n-1)
				}
				break
			}
			if err != nil {
				wantError(t, "a key of an app that ends", err, config.ErrNotFound)
			}
			if left := s.keysLeft(t); left != 0 {
				t.Errorf("a key waits at call %d, and goes on before call %d of the end: %d keys are left", m, n, left)
			}
		}
	}
}

// Keys and what is about them lie in their own store, and nothing else does.
func TestKeysLieApart(t *testing.T) {
	s := newTwoStores(t, true)
	for name, store := range map[string]*documents.Memory{"the configuration": s.kept, "keys": s.keys} {
		has := map[string]bool{}
		for _, collection := range []string{"apps", "keys", "keyrings"} {
			found, err := store.Find(t.Context(), documents.Query{Collection: collection, All: true})
			wantError(t, "list "+collection, err, nil)
			has[collection] = len(found) > 0
		}
		if own := name == "keys"; has["apps"] == own || has["keys"] != own || has["keyrings"] != own {
			t.Errorf("the store of %s has %v", name, has)
		}
	}
}
