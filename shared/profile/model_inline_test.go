package profile_test

import (
	"cloud.google.com/go/bigtable"
	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/store"
)

// setInline makes one process in four one that stores no inline block.
func (w *simulation) setInline(e *profile.Engine) {
	e.SetInlineEvents(rapid.SampledFrom([]int{w.inline, w.inline, w.inline, 0}).Draw(w.t, "inline events"))
}

// damageInline corrupts or deletes the inline block.
func (w *simulation) damageInline() {
	cell := w.inlineRow().Inline
	if len(cell) == 0 {
		return
	}
	w.spoilt = true
	spoilt := append([]byte(nil), cell...)
	switch rapid.IntRange(0, 2).Draw(w.t, "damage of the row") {
	case 0:
		spoilt[len(spoilt)-1] ^= 1
	case 1:
		spoilt = spoilt[:len(spoilt)/2]
	case 2:
		spoilt = nil
	}
	must.Succeed(w.t, spoilInline(w.client, w.appID, spoilt))
}

// spoilInline replaces the cell of the inline block of a user. nil deletes it.
func spoilInline(client *bigtable.Client, appID string, cell []byte) error {
	m := bigtable.NewMutation()
	m.DeleteCellsInColumn("h", "h")
	if cell != nil {
		m.Set("h", "h", bigtable.ServerTime, cell)
	}
	return client.Open(store.TableUsers).Apply(ctx, appID+",u,", m)
}

func (w *simulation) inlineRow() store.User {
	row, err := w.store.Users.ReadPrimary(ctx, w.appID, "u", store.UserHistory)
	must.Succeed(w.t, err)
	return row
}

// checkInline checks that the row holds the block that the manifest names, and no other:
// nightly rounds have repaired what was damaged.
func (w *simulation) checkInline() {
	row := w.inlineRow()
	m, err := history.ParseManifest(row.Manifest)
	must.Succeed(w.t, err)
	b, named := m.Inline()
	if !named && len(row.Inline) > 0 {
		w.t.Fatalf("the row holds a block of %d bytes that %+v does not name", len(row.Inline), m)
	}
	if !named || row.Gone() {
		return
	}
	if _, err := history.ParseInline(b, row.Inline); err != nil && !w.spoilt {
		w.t.Fatalf("the manifest names %+v: %v", b, err)
	}
}
