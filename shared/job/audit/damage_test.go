package audit_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/store"
)

// A user with a row that does not decode is reported, and stops no other.
func TestDamagedLogStopsNoOther(t *testing.T) {
	b := newBench(t)
	b.apply(bought("u", b.clock, "Red", "Acme"), bought("v", b.clock, "Red", "Acme"))
	b.damageLog("u")
	r := b.run("u", "v")
	if r.Compared != 2 || r.Differing != 1 || len(r.Differences) != 1 || r.Differences[0].User != "u" || r.Differences[0].What != "damaged" {
		t.Errorf("%+v, want u damaged", r)
	}
}

// of returns the lines of a user.
func of(user string, lines []string) []string {
	var named []string
	for _, line := range lines {
		named = append(named, user+": "+line)
	}
	return named
}

// The computed profile is wrong if a block is, or if a row was added or removed
// without the engine.
func TestDamagedBlocksAndRows(t *testing.T) {
	b := newBench(t)
	one, two := int64(1_700_000_000_000-2*day), int64(1_700_000_000_000-day)
	for i, test := range []struct {
		name  string
		spoil func(user string)
		want  []string
	}{
		{"a block without an event", func(user string) {
			builder := history.NewBuilder()
			builder.Add(affinity.Event{Time: two, Type: event.Conversion, Name: "Bought", Counts: []affinity.Count{{Facet: "color", Value: "Red", N: 1}}})
			b.writeBlock(user, builder.AppendBlock(nil))
		}, []string{
			"computed score color:Red (half-life 1): want 26.25, got 17.5",
			"computed missing brand:Acme (half-life 1): want 21, got <nil>",
		}},
		{"a damaged block, which is read past", func(user string) { b.writeBlock(user, []byte("\x02abcdefgh")) },
			[]string{"history damaged block %d,0: want <nil>, got checksum does not match"}},
		{"a lost block", func(user string) {
			b.must(b.store.Histories.DeleteBlocks(ctx, appID, user, []history.BlockID{b.block(user).ID}))
		}, []string{"history missing block %d,0: want <nil>, got <nil>"}},
		{"a lost row", func(user string) {
			b.must(b.store.Events.Log(appID, schema.Default()).Delete(ctx, []store.LogEvent{bought(user, one, "Red", "Acme")}))
		}, []string{
			"computed score color:Red (half-life 1): want 17.5, got 26.25",
			"computed score brand:Acme (half-life 1): want 14, got 21",
			"stored score color:Red (half-life 1): want 17.5, got 26.25",
			"stored score brand:Acme (half-life 1): want 14, got 21",
		}},
		{"a row that no writer announced", func(user string) {
			b.must(b.store.Events.Log(appID, schema.Default()).Append(ctx, []store.LogEvent{bought(user, b.clock, "Blue", "Acme")}))
		}, []string{
			// The manifest says that no event is outside of the blocks, until
			// the next ticket.
			"computed lastEventAt: want 2023-11-14T22:13:20.000Z, got 2023-11-13T22:13:20.000Z",
			"computed score brand:Acme (half-life 1): want 49, got 21",
			"computed missing color:Blue (half-life 1): want 35, got <nil>",
			"stored lastEventAt: want 2023-11-14T22:13:20.000Z, got 2023-11-13T22:13:20.000Z",
			"stored score brand:Acme (half-life 1): want 49, got 21",
			"stored missing color:Blue (half-life 1): want 35, got <nil>",
		}},
		{"a changed row in a block's range", func(user string) {
			b.must(b.store.Events.Log(appID, schema.Default()).Append(ctx, []store.LogEvent{bought(user, one, "Rouge", "Zenith")}))
		}, []string{
			"computed score brand:Acme (half-life 1): want 14, got 21",
			"computed missing brand:Zenith (half-life 1): want 7, got <nil>",
			"stored score brand:Acme (half-life 1): want 14, got 21",
			"stored missing brand:Zenith (half-life 1): want 7, got <nil>",
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			user := fmt.Sprint("u", i)
			b.t = t
			b.apply(bought(user, one, "Red", "Acme"), bought(user, two, "Rouge", "Acme"), bought("v", one, "Red", "Acme"))
			b.fold(user)
			b.moveOut(user)
			ticket := b.block(user).ID.Ticket
			test.spoil(user)
			want := of(user, test.want)
			for i, line := range want {
				if strings.Contains(line, "%d") {
					want[i] = fmt.Sprintf(line, ticket)
				}
			}
			b.wants(user+" v", want...)
		})
	}
}

// moveOut moves the inline block of a user into a row of its own.
func (b *harness) moveOut(user string) {
	b.t.Helper()
	rows, err := b.store.Users.ReadUserHistories(ctx, appID, []string{user})
	b.must(err)
	m, err := history.ParseManifest(rows[user].Manifest)
	b.must(err)
	value, err := history.ParseInline(m.Blocks[0], rows[user].Inline)
	b.must(err)
	next := m
	next.Blocks, next.Version = slices.Clone(m.Blocks), m.Version+1
	next.Blocks[0].Inline = false
	b.writeBlock(user, value)
	if ok, err := b.store.Users.SwapManifest(ctx, appID, user, history.OfVersion(m.Version), next.AppendBinary(nil), store.DropInline()); err != nil || !ok {
		b.t.Fatal(ok, err)
	}
}

func (b *harness) writeBlock(user string, value []byte) {
	b.t.Helper()
	block := b.block(user)
	b.must(b.store.Histories.WriteBlocks(ctx, appID, user, []store.BlockWrite{{ID: block.ID, Newest: block.Newest, Value: value}}))
}

func TestDamagedInlineBlockIsReported(t *testing.T) {
	b := newBench(t)
	for what, spoil := range map[string]func(history.Block) store.RowChange{
		"damaged": func(b history.Block) store.RowChange {
			return store.SetInline(history.AppendInline(nil, b, []byte("\x02abcdefgh")))
		},
		"missing": func(history.Block) store.RowChange { return store.DropInline() },
	} {
		b.apply(bought(what, b.clock-day, "Red", "Acme"))
		b.fold(what)
		block := b.block(what)
		if r := b.run(what); !block.Inline || r.Differing != 0 {
			t.Fatalf("%+v: %+v, want an inline block and no difference", block, r)
		}
		m, err := history.ParseManifest(b.row(what).Manifest)
		b.must(err)
		next := m
		next.Version++
		if ok, err := b.store.Users.SwapManifest(ctx, appID, what, history.OfVersion(m.Version), next.AppendBinary(nil), spoil(block)); err != nil || !ok {
			t.Fatal(ok, err)
		}
		r := b.run(what)
		if len(r.Differences) != 1 || r.Differences[0].Which != "history" || r.Differences[0].What != what {
			t.Errorf("%s: %+v", what, r.Differences)
		}
	}
}

func TestDamagedManifestIsReported(t *testing.T) {
	b := newBench(t)
	b.apply(bought("u", b.clock-day, "Red", "Acme"))
	b.fold("u")
	m, err := history.ParseManifest(b.row("u").Manifest)
	b.must(err)
	broken := m.AppendBinary(nil)
	broken[len(broken)-1] ^= 1
	if ok, err := b.store.Users.SwapManifest(ctx, appID, "u", history.OfVersion(m.Version), broken); err != nil || !ok {
		t.Fatal(ok, err)
	}
	r := b.run("u")
	if len(r.Differences) != 1 || r.Differences[0].Which != "history" || r.Differences[0].Value != "manifest" {
		t.Errorf("%+v", r.Differences)
	}
}
