package move_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/app/auditlog"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/usage"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/store"
)

// shop is what clients have done to the rows of the app that belong to no user.
type shop struct {
	w       *world
	rnd     *rand.Rand
	objects map[string]string // colors
	events  int64             // in usage, and refused
	entries []string
	batch   int64
	salt    string
}

func (s *shop) act() {
	w, id := s.w, fmt.Sprint(s.rnd.IntN(12))
	switch s.rnd.IntN(6) {
	case 0, 1:
		color := fmt.Sprint("color", s.rnd.IntN(1000))
		at := time.Date(2026, 11, 1+s.rnd.IntN(20), 0, 0, 0, 0, time.UTC).UnixMilli()
		w.must(w.rows.Catalog.PutObjects(ctx, app, "products", []store.Object{{ID: id, Record: fmt.Appendf(nil, `{"published":%d}`, at/1000),
			Filters: store.ObjectFilters{SettingsVersion: 1, Filters: []event.Filter{{Facet: "color", Value: color}}}}}, "published"))
		s.objects[id] = color
	case 2:
		w.must(w.rows.Catalog.DeleteObjects(ctx, app, "products", []string{id}, "published"))
		delete(s.objects, id)
	case 3:
		s.batch++
		s.events++
		w.must(w.rows.Usage.AddUsage(ctx, usage.Batch{App: app, Day: usage.DayOf(time.Now()), Process: "p", Number: s.batch, Counts: usage.Counts{Events: 1}}))
		w.must(w.rows.Refused.RecordRefused(ctx, app, time.Now(), store.Refusals{Counts: map[string]int64{"late": 1}}))
	case 4:
		e := auditlog.Entry{ID: auditlog.NewID(time.Now()), Actor: "key", Action: "strategy.set"}
		w.must(auditlog.Begin(ctx, w.rows.AuditLog, app, e))
		s.entries = append(s.entries, e.ID)
	case 5:
		salt, err := w.rows.AuditLog.AuditSalt(ctx, app)
		w.must(err)
		if s.salt != "" && s.salt != string(salt) {
			w.t.Fatal("the secret of the audit log has changed")
		}
		s.salt = string(salt)
	}
}

// check compares the catalog, and at rest the rest, too.
func (s *shop) check(when string, rest bool) {
	w := s.w
	w.t.Helper()
	got := map[string]string{}
	w.must(w.rows.Catalog.ScanObjectFilters(ctx, app, "products", func(id string, f store.ObjectFilters) error {
		got[id] = f.Filters[0].Value
		return nil
	}))
	if !maps.Equal(got, s.objects) {
		w.t.Fatalf("%s: objects %v, want %v", when, got, s.objects)
	}
	dated, _, err := w.rows.Catalog.ListDated(ctx, app, store.DatedQuery{Index: "products", Attribute: "published", Newest: 1 << 50, Limit: 100})
	w.must(err)
	listed := map[string]bool{}
	for _, d := range dated { // a date that an object had until a moment ago may be there, too
		listed[d.ID] = true
	}
	for id := range s.objects {
		if !listed[id] {
			w.t.Fatalf("%s: object %s is not listed by date", when, id)
		}
	}
	if !rest {
		return
	}
	day := usage.DayOf(time.Now())
	days, err := w.rows.Usage.Usage(ctx, app, day-1, day)
	w.must(err)
	_, refused, err := w.rows.Refused.ReadRefused(ctx, app, time.Now())
	w.must(err)
	if n := days[day].Events + days[day-1].Events; n != s.events || refused["late"] != s.events {
		w.t.Errorf("%s: %d events and %d refusals, want %d", when, n, refused["late"], s.events)
	}
	entries, _, err := auditlog.Read(ctx, w.rows.AuditLog, app, auditlog.Query{Limit: 1000})
	w.must(err)
	found := map[string]bool{}
	for _, e := range entries {
		found[e.ID] = true
	}
	if slices.ContainsFunc(s.entries, func(id string) bool { return !found[id] }) || len(entries) != len(s.entries) {
		w.t.Errorf("%s: the audit log has %d entries, want %d", when, len(entries), len(s.entries))
	}
}

// Rows of an app that belong to no user move with it, while clients change them between
// any two tasks, there and back, and also if the move turns back.
func TestRowsMove(t *testing.T) {
	for seed := range uint64(6) {
		w := newWorld(t, 0)
		s := &shop{w: w, rnd: rand.New(rand.NewPCG(seed, 1)), objects: map[string]string{}}
		for range 40 {
			s.act()
		}
		for _, to := range []string{"us", "eu", "us"} {
			from := map[string]string{"us": "eu", "eu": "us"}[to]
			undo := seed%2 == 1 && to == "eu"
			if w.app().Region == to {
				break // the move before has turned back
			}
			w.start(to)
			for w.step() {
				for range 3 {
					s.act()
				}
				s.check("moving to "+to, false)
				if undo && w.app().Move.Phase == config.MoveSwitched {
					_, err := w.moves.Undo(ctx, app)
					w.must(err)
					undo, to, from = false, from, to
				}
			}
			if a := w.app(); a.Region != to || a.Moving() {
				t.Fatalf("region %q, move %+v", a.Region, a.Move)
			}
			s.check("in "+to, true)
			w.empty(from)
		}
	}
}

// A task goes on where the one before has stopped, also in the middle of a table.
func TestRowsMoveInSteps(t *testing.T) {
	w := newWorld(t, 0)
	objects := make([]store.Object, 1200)
	for i := range objects {
		objects[i] = store.Object{ID: fmt.Sprintf("o%04d", i), Record: json.RawMessage(`{}`), Filters: store.ObjectFilters{SettingsVersion: 1}}
	}
	w.must(w.rows.Catalog.PutObjects(ctx, app, "products", objects))
	w.slow = true
	w.start("us")
	tasks := 0
	for w.step() {
		tasks++
	}
	n := 0
	w.must(w.stores["us"].Catalog.ScanObjectIDs(ctx, app, "products", func(string) error { n++; return nil }))
	if n != len(objects) || tasks < 20 {
		t.Errorf("%d objects after %d tasks", n, tasks)
	}
	w.empty("eu")
}
