package profile_test

import (
	"fmt"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/store"
)

// An earlier version wrote rows without the cell of the objects, and blocks without
// their section. A wide row without filters does not even tell its kind. A session
// then takes both from the originals.
func TestSessionOfOlderRowsAndBlocks(t *testing.T) {
	for _, name := range schema.Names {
		for _, folded := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, folded: %v", name, folded), func(t *testing.T) {
				b := newFixture(t, 90, plain)
				b.setLog(schema.Of(name))
				events := olderEvents(b.clock)
				b.apply(events...)
				b.eng.SetSessionEvents(4)
				b.eng.NeverFold()
				if folded {
					b.eng.SetLimits(1000, 1000, 5, 1000, time.Minute) // more blocks than one
					if done, err := b.eng.Fold(ctx, b.app(), "u"); !done || err != nil {
						t.Fatal(done, err)
					}
					b.eng.SetSessionEvents(4)
					b.ageBlocks(name, events)
				}
				b.eng.SetSessionUnknown(2) // the kinds of older rows need a further reading
				b.ageRows(name)
				var log []affinity.Event
				for _, e := range events {
					log = append(log, affinity.Event{Time: e.Time, Type: e.Type, Name: e.Name, Counts: e.Counts, Index: e.Index, ObjectIDs: e.ObjectIDs})
				}
				want := affinity.ReferenceSession(log, plain, affinity.Window{Now: b.clock, RetentionDays: 90}).First(4)
				b.recomputeAll() // drops the session
				for _, stored := range []bool{false, true} {
					r, err := b.eng.ReadRanking(ctx, b.app(), "u")
					if diff := cmp.Diff(want, r.Session, cmpopts.EquateEmpty()); err != nil || r.Stored != stored || diff != "" {
						t.Errorf("stored: %v, %v (-want +got):\n%s", r.Stored, err, diff)
					}
				}
				next := viewed(b.clock-1, "new")
				b.apply(next)
				r, err := b.eng.ReadRanking(ctx, b.app(), "u")
				if err != nil || !r.Stored || len(r.Session.Events) != 4 || r.Session.Events[0].ObjectIDs[0] != "new" {
					t.Fatalf("%+v, %v; want four events, the refresh's first", r, err)
				}
				if diff := cmp.Diff(want.First(3).Events, r.Session.Events[1:], cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("after a refresh (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// olderEvents returns 30 events in the order of the log: views, some of objects without
// filters, among events that do not score.
func olderEvents(now int64) []store.LogEvent {
	var events []store.LogEvent
	for i := range int64(30) {
		at := now - day + i*1000
		e := viewed(at, fmt.Sprint("object", i))
		switch i % 10 {
		case 3:
			e.Counts = nil
		case 7:
		default:
			e = logEvent("u", at, "Ignored", event.Click)
			e.Index, e.ObjectIDs = "products", []string{"ignored"}
			if i%2 == 0 {
				e.Counts = []affinity.Count{{Facet: "color", Value: "Red", N: 1}}
			}
		}
		sent := fmt.Sprintf(`{"eventType":%q,"eventName":%q,"index":%q,"userToken":"u","objectIDs":[%q],"timestamp":%d}`,
			e.Type, e.Name, e.Index, e.ObjectIDs[0], at)
		e.Original = schema.Original{ReceivedAt: at, Event: []byte(sent)}.Append(nil)
		events = append(events, e)
	}
	return events
}

// ageRows removes from the log what an earlier version does not write.
func (b *fixture) ageRows(name schema.Name) {
	b.t.Helper()
	table := b.client.Open(map[schema.Name]string{schema.Wide: store.TableEvents, schema.Narrow: store.TableEventsNarrow}[name])
	err := table.ReadRows(ctx, bigtable.InfiniteRange(""), func(r bigtable.Row) bool {
		m := bigtable.NewMutation()
		m.DeleteCellsInColumn("m", "o")
		if err := table.Apply(ctx, r.Key(), m); err != nil {
			b.t.Fatal(err)
		}
		return true
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

// ageBlocks replaces the user's blocks by those that an earlier version builds of
// the same events.
func (b *fixture) ageBlocks(name schema.Name, events []store.LogEvent) {
	b.t.Helper()
	row, err := b.store.ReadUser(ctx, appID, "u")
	if err != nil {
		b.t.Fatal(err)
	}
	m, err := history.ParseManifest(row.Manifest)
	if err != nil || len(m.Blocks) == 0 {
		b.t.Fatalf("%+v, %v; want blocks", m, err)
	}
	for _, block := range m.Blocks {
		builder := history.NewBuilderWithoutObjects()
		for _, e := range events {
			if at := (history.Pos{Time: e.Time, ID: e.ID}); at.Compare(block.From) < 0 || at.Compare(block.To) >= 0 {
				continue
			}
			ev := affinity.Event{Time: e.Time, Type: e.Type, Name: e.Name, Counts: e.Counts}
			if name == schema.Wide && len(e.Counts) == 0 {
				ev.Type, ev.Name = "", ""
			}
			builder.Add(ev)
		}
		value := builder.AppendBlock(nil)
		if known, err := history.HasObjects(value); known || err != nil {
			b.t.Fatalf("the block names objects: %v, %v", known, err)
		}
		if err := b.store.WriteBlocks(ctx, appID, "u", []store.BlockWrite{{ID: block.ID, Newest: block.Newest, Value: value}}); err != nil {
			b.t.Fatal(err)
		}
	}
}
