package imports

import (
	"context"
	"log/slog"
	"sync"

	"github.com/affinityengine/affinity/shared/job/tasks/afterimport"
)

// slots holds by app the slot of the last task that this process has enqueued.
type slots struct {
	mu   sync.Mutex
	last map[string]int64
}

// begins reports whether a slot is another one than the app's last.
func (s *slots) begins(app string, slot int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last, ok := s.last[app]; ok && last == slot {
		return false
	}
	s.last[app] = slot
	return true
}

// forget makes begins report true for the app's next slot.
func (s *slots) forget(app string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.last, app)
}

// noteImport has histories folded and crowd statistics built once the app's imports
// have ended. It only logs a fault: the events are imported, and the nightly round
// does both too.
func (h handler) noteImport(ctx context.Context, app string) {
	now := h.Now()
	err := h.Store.Crowd.NoteImport(ctx, app, now)
	if slot := afterimport.Slot(now); err == nil && h.slots.begins(app, slot) {
		task, taskErr := afterimport.Task(app, slot)
		if err = taskErr; err == nil {
			err = h.Queue.Create(ctx, task)
		}
		if err != nil {
			h.slots.forget(app)
		}
	}
	if err != nil {
		h.Log.LogAttrs(ctx, slog.LevelWarn, "no recompute and no build of crowd statistics follow this import",
			slog.String("app", app), slog.Any("error", err))
	}
}
