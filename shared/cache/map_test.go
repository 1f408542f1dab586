package cache

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
)

// A Map never holds more than its bound, and keeps what is used again and again.
func TestMapIsBounded(t *testing.T) {
	for name, m := range map[string]Map[int, string]{
		"entries": New[int, string](100),
		"bytes":   NewSized(100*(EntryBytes+4), func(_ int, v string) int { return len(v) }),
	} {
		for i := range 10_000 {
			m.Set(i, fmt.Sprintf("%04d", i))
			if m.Len() > 100 {
				t.Fatalf("%s: %d entries", name, m.Len())
			}
			for hot := range 5 {
				if _, ok := m.Get(hot); !ok {
					m.Set(hot, "hot.")
				}
			}
		}
		for hot := range 5 {
			if v, ok := m.Peek(hot); v != "hot." && v != fmt.Sprintf("%04d", hot) || !ok {
				t.Errorf("%s: %d is %q, %v", name, hot, v, ok)
			}
		}
		if v, ok := m.Delete(0); v == "" || !ok {
			t.Errorf("%s: deleted %q, %v", name, v, ok)
		}
		if _, ok := m.Get(0); ok {
			t.Errorf("%s: it is still there", name)
		}
	}
}

func TestMapConcurrently(t *testing.T) {
	m := New[string, int](50)
	var all sync.WaitGroup
	for seed := range uint64(8) {
		all.Go(func() {
			r := rand.New(rand.NewPCG(seed, 1))
			for range 2000 {
				n := r.IntN(200)
				switch k := fmt.Sprint(n); r.IntN(3) {
				case 0:
					m.Set(k, n)
				case 1:
					m.Delete(k)
				default:
					if v, ok := m.Get(k); ok && v != n {
						t.Errorf("%s is %d", k, v)
					}
				}
			}
		})
	}
	all.Wait()
	if m.Len() > 50 {
		t.Errorf("%d entries, want at most 50", m.Len())
	}
}
