package refused

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/store"
)

func (w *written) RecordRefusedLinks(ctx context.Context, app string, at time.Time, r store.Refusals) error {
	return w.RecordRefused(ctx, app, at, r)
}

// An app that refuses many links writes as often as one that refuses few, and keeps no user who was deleted.
func TestManyLinksAreOneWrite(t *testing.T) {
	w := &written{}
	l := NewLinks(w, nil, func() time.Time { return noon }, slog.New(slog.DiscardHandler))
	l.recorder.writer.After = func(time.Duration, func()) {}
	for i := range 1000 {
		l.Record("shop", store.RefusedLink{User: "a", Known: "ann", Time: int64(i), Event: "e", Reason: "late"})
		l.Record("shop", store.RefusedLink{Reason: "deleted"})
	}
	if err := l.Flush(t.Context()); err != nil || len(w.lists) != 1 {
		t.Fatalf("%v, %d writes, want 1", err, len(w.lists))
	}
	got := w.lists[0]
	if diff := cmp.Diff(map[string]int64{"late": 1000, "deleted": 1000}, got.Counts); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	if n := len(got.Events); n != store.RefusedOfReason {
		t.Fatalf("%d links are kept, want %d", n, store.RefusedOfReason)
	}
	last := got.Events[store.RefusedOfReason-1]
	want := `{"userToken":"a","authenticatedUserToken":"ann","time":999,"id":"e"}`
	if string(last.Event) != want || !last.At.Equal(noon) || last.Sequence == 0 {
		t.Errorf("the last is %+v %s, want %s", last, last.Event, want)
	}
}
