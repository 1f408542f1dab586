package stack

import (
	"errors"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/app/documents"
)

// cell is a database of one record.
type cell struct {
	documents.Records
	value  []byte
	broken error
	writes int
}

func (c *cell) Save(r ...documents.Record) error {
	c.writes++
	if c.broken == nil {
		c.value = r[0].Value
	}
	return c.broken
}

func (c *cell) Load(f func(string, []byte) error) error { return f("health", c.value) }

// All who ask within a second share one check.
func TestHealthChecksOnceASecond(t *testing.T) {
	now, records := time.Unix(0, 0), &cell{}
	syncs := 0
	h := newHealth(records, func() error { syncs++; return nil }, func() time.Time { return now })
	ask := func() (int, string) {
		w := httptest.NewRecorder()
		if err := h.serve(w, nil); err != nil {
			t.Error(err)
		}
		return w.Code, w.Body.String()
	}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if code, answer := ask(); code != 200 || !strings.Contains(answer, `{"status":"ok","version":"`) {
				t.Errorf("%d %s, want 200 and ok", code, answer)
			}
		})
	}
	all.Wait()
	if records.writes != 1 || syncs != 1 {
		t.Errorf("%d writes and %d syncs, want 1", records.writes, syncs)
	}
	records.broken = errors.New("the disk is full")
	if code, _ := ask(); code != 200 {
		t.Errorf("%d within the second, want 200", code)
	}
	now = now.Add(healthEvery)
	if code, answer := ask(); code != 503 || !strings.Contains(answer, "cannot use its database: the disk is full") {
		t.Errorf("%d %s, want 503 in words", code, answer)
	}
	records.broken, now = nil, now.Add(healthEvery)
	if code, _ := ask(); code != 200 {
		t.Errorf("%d after the fault, want 200", code)
	}
}
