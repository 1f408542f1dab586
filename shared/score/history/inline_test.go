package history_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/affinityengine/affinity/shared/local/affinitytest"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/wire"
)

func inlineBlock() (history.Block, []byte) {
	return history.Block{
		Range: history.Range{From: history.Pos{Time: now - dayMS}, To: history.Pos{Time: now, ID: "AbCdEfGhIjK"}.Next()},
		ID:    history.BlockID{Ticket: 300, N: 2}, Inline: true,
	}, []byte("what the block holds")
}

func TestInlineBlockRoundTrip(t *testing.T) {
	b, block := inlineBlock()
	cell := history.AppendInline([]byte("kept"), b, block)
	got, err := history.ParseInline(b, cell[4:])
	if err != nil || !bytes.Equal(got, block) || string(cell[:4]) != "kept" {
		t.Errorf("%q, %v", got, err)
	}
	if over := len(cell) - 4 - len(block); over > 8 {
		t.Errorf("the cell takes %d bytes more than its block", over)
	}
}

// A cell is the block of one entry of one manifest, and of no other.
func TestInlineBlockOfAnotherEntry(t *testing.T) {
	b, block := inlineBlock()
	cell := history.AppendInline(nil, b, block)
	ticket, n, from, to := b, b, b, b
	ticket.ID.Ticket, n.ID.N = 301, 0
	from.From.Time++
	to.To.ID = "AbCdEfGhIjL"
	for name, other := range map[string]history.Block{"ticket": ticket, "number": n} {
		if _, err := history.ParseInline(other, cell); !errors.Is(err, history.ErrOtherBlock) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, other := range map[string]history.Block{"from": from, "to": to} {
		if got, err := history.ParseInline(other, cell); err == nil || errors.Is(err, history.ErrOtherBlock) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if _, err := history.ParseInline(b, nil); !errors.Is(err, history.ErrOtherBlock) {
		t.Errorf("no cell: %v", err)
	}
	if _, err := history.ParseInline(b, append([]byte{2}, cell[1:]...)); !errors.Is(err, wire.ErrNewer) {
		t.Errorf("a newer format: %v", err)
	}
}

func TestInlineDamageIsDetected(t *testing.T) {
	b, block := inlineBlock()
	cell := history.AppendInline(nil, b, block)
	affinitytest.DetectsDamage(t, cell, func(cell []byte) bool {
		_, err := history.ParseInline(b, cell)
		return err == nil
	})
}
