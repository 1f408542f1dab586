package imports_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/functions/imports"
	"github.com/affinityengine/affinity/shared/admission"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/intake/enrich"
	"github.com/affinityengine/affinity/shared/local/functiontest"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/store"
)

// crowded is a catalog of objects with very many filters. It calls read before each
// reading.
type crowded struct{ read func(context.Context) error }

func (c crowded) ScanFilters(ctx context.Context, _ string, refs []store.ObjectRef, fn func(store.ObjectRef, store.ObjectFilters) error) error {
	if err := c.read(ctx); err != nil {
		return err
	}
	var f store.ObjectFilters
	for i := range 1000 {
		f.Filters = append(f.Filters, event.Filter{Facet: "f", Value: fmt.Sprintf("%063d", i)})
	}
	for _, ref := range refs {
		if err := fn(ref, f); err != nil {
			return err
		}
	}
	return nil
}

func (crowded) ScanRecords(context.Context, string, []store.ObjectRef, func(store.ObjectRef, []byte) error) error {
	return errors.New("no object is stale")
}

// An import in two parts has taken its memory when it writes the first. So it ends
// although others then fill the process. Sent again, its events without a timestamp
// would count twice.
func TestPartlyWrittenImportEnds(t *testing.T) {
	const lines = 80 // cost 9 MB
	s := functiontest.Start(t)
	b := s.Backends.ForImports()
	app, err := b.Config.App(t.Context(), functiontest.App)
	if err != nil {
		t.Fatal(err)
	}
	written := func(ctx context.Context) (n int, err error) {
		err = b.Store.Events.Log(app.ID, app.Log).Read(ctx, []store.UserRange{{User: "ann", To: history.End}}, func(string, store.LogRow) error { n++; return nil })
		return n, err
	}
	other, leave := admission.Process().EnterFor(t.Context(), 0)
	defer leave()
	full := false
	b.Enricher = enrich.New(crowded{func(ctx context.Context) error {
		n, err := written(ctx)
		if n > 0 && !full {
			full = true
			for range 2 { // the first bytes leave a quarter free
				for size := int64(1) << 39; size > 0; size /= 2 {
					_ = admission.Take(other, size)
				}
			}
		}
		return err
	}}, b.CachedConfig)
	line := `{"eventType":"view","eventName":"Seen","index":"i","userToken":"ann","objectIDs":["1"]}` + "\n"
	functiontest.Check(t, imports.New(b), functiontest.Ask("admin", "POST", "/1/events/import", strings.Repeat(line, lines), 200, fmt.Sprintf(`{"accepted":%d,`, lines)))
	if n, err := written(t.Context()); n != lines || !full || err != nil {
		t.Errorf("%d events in the log, %v, the process was full: %v; want %d", n, err, full, lines)
	}
}
