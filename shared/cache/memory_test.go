package cache_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/affinityengine/affinity/shared/cache"
)

const app = "shop"

func TestValuesAreTakenOnce(t *testing.T) {
	m := cache.NewMemory(1 << 20)
	texts, numbers := cache.ValuesOf[string](m), cache.ValuesOf[int](m)
	texts.Put(app, "u", "first", 5)
	texts.Put(app, "u", "second", 6)
	numbers.Put(app, "u", 7, 8)
	texts.Put("other", "u", "of another app", 14)
	if got, ok := texts.Take(app, "u"); got != "second" || !ok {
		t.Errorf("took %q, %v, want the value that was put last", got, ok)
	}
	if got, ok := texts.Take(app, "u"); got != "" || ok {
		t.Errorf("took %q, %v again", got, ok)
	}
	if got, ok := numbers.Take(app, "u"); got != 7 || !ok {
		t.Errorf("took %d, %v of the other kind, want 7", got, ok)
	}
	texts.Take("other", "u")
	if m.Bytes() != 0 {
		t.Errorf("%d bytes are left of nothing", m.Bytes())
	}
}

func TestMemoryDropsTheOldest(t *testing.T) {
	const bytes = 1000
	m := cache.NewMemory(10 * bytes)
	v := cache.ValuesOf[int](m)
	for i := range 20 {
		v.Put(app, fmt.Sprint(i), i, bytes/2)
		v.Put(app, "0", 0, bytes/2) // always the youngest
	}
	if m.Bytes() > 10*bytes || m.Bytes() < 8*bytes {
		t.Errorf("%d values take %d bytes, the bound is %d", 20, m.Bytes(), 10*bytes)
	}
	for user, want := range map[string]bool{"0": true, "19": true, "1": false} {
		if _, ok := v.Take(app, user); ok != want {
			t.Errorf("user %s is there: %v, want %v", user, ok, want)
		}
	}
}

// A value that would displace those of many users is not kept, nor what it replaces.
func TestLargeValueIsNotKept(t *testing.T) {
	m := cache.NewMemory(8000)
	v := cache.ValuesOf[int](m)
	if !v.Put(app, "u", 1, 100) || v.Put(app, "u", 2, 1000) {
		t.Error("a value of an eighth of the memory is kept")
	}
	if got, ok := v.Take(app, "u"); ok {
		t.Errorf("took %d, which was replaced", got)
	}
	var none cache.Memory
	if cache.ValuesOf[int](&none).Put(app, "u", 1, 0) {
		t.Error("the zero value keeps something")
	}
}

func TestOneOfManyTakes(t *testing.T) {
	m := cache.NewMemory(1 << 20)
	v := cache.ValuesOf[int](m)
	v.Put(app, "u", 1, 100)
	var wg sync.WaitGroup
	var taken atomic.Int32
	for range 8 {
		wg.Go(func() {
			if _, ok := v.Take(app, "u"); ok {
				taken.Add(1)
			}
		})
	}
	wg.Wait()
	if taken.Load() != 1 {
		t.Errorf("%d of 8 took the value, want 1", taken.Load())
	}
}
