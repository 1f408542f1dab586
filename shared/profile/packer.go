package profile

import (
	"context"
	"fmt"

	"github.com/affinityengine/affinity/shared/affinity"
	"github.com/affinityengine/affinity/shared/history"
	"github.com/affinityengine/affinity/shared/store"
)

// packer turns events of a user's log, in order, into blocks that are named by
// one ticket, in memory bounded by a few blocks.
type packer struct {
	e     *Engine
	appID string
	w     *work
	base  history.Manifest // what is covered already

	builder *history.Builder
	gap     history.Range // the one that is being packed
	from    history.Pos   // of the block that is being built
	last    history.Pos   // place of the event added last

	blocks  []history.Block
	pending []store.BlockWrite
	bytes   int // of pending
	events  int // of the log
}

func (e *Engine) newPacker(appID string, w *work, base history.Manifest) *packer {
	return &packer{e: e, appID: appID, w: w, base: base, builder: history.NewBuilder()}
}

// add takes the next event.
func (p *packer) add(ctx context.Context, row store.LogRow) error {
	ev, err := row.Event()
	if err != nil {
		return fmt.Errorf("fold log of %s,%s: %w", p.appID, p.w.user, err)
	}
	if p.events == 0 || row.Pos.Compare(p.gap.To) >= 0 {
		if err := p.enter(ctx, row.Pos, ev.Time); err != nil {
			return err
		}
	}
	p.events++
	p.last = row.Pos
	return p.put(ctx, row.Pos, ev)
}

// put adds an event to the block that is being built, or to the next.
func (p *packer) put(ctx context.Context, at history.Pos, ev affinity.Event) error {
	if p.builder.Len() < p.e.limits.blockEvents && p.builder.Add(ev) {
		return nil
	}
	if err := p.flush(ctx, at); err != nil {
		return err
	}
	if !p.builder.Add(ev) {
		return fmt.Errorf("fold log of %s,%s: event at %d fits no block", p.appID, p.w.user, at.Time)
	}
	return nil
}

// enter begins the gap that a place lies in: with the block before it, where
// the two are to be joined.
func (p *packer) enter(ctx context.Context, at history.Pos, time int64) error {
	if p.events > 0 {
		if err := p.flush(ctx, p.gap.To); err != nil {
			return err
		}
	}
	for _, g := range p.base.Gaps(p.w.from()) {
		if at.Compare(g.To) < 0 {
			p.gap = g
			break
		}
	}
	p.from = p.gap.From
	for _, b := range p.base.Blocks {
		if b.To == p.gap.From {
			return p.join(b, time)
		}
	}
	return nil
}

// join begins a block with all of the one before, unless that is too large for
// what follows, too old, or cannot be read.
func (p *packer) join(b history.Block, next int64) error {
	value, ok := p.w.joint[b.ID]
	if !ok || len(value) == 0 || b.Events > jointRatio*max(p.w.loose, p.e.limits.maintainEvents) || b.Events >= p.e.limits.blockEvents {
		return nil
	}
	if history.Check(value) != nil {
		return nil // named when it is read
	}
	begins := p.w.from() // what is older counts no more, and is left to the log
	for ev, err := range history.Events(value) {
		if err != nil {
			return fmt.Errorf("join block %d,%d of %s,%s: %w", b.ID.Ticket, b.ID.N, p.appID, p.w.user, err)
		}
		if ev.Time < begins.Time {
			continue
		}
		if p.builder.Len() == 0 && next-ev.Time > history.MaxSpan && b.Bytes > history.SmallBytes/2 {
			return nil
		}
		if !p.builder.Add(ev) {
			return fmt.Errorf("join block %d,%d of %s,%s: it does not fit a block", b.ID.Ticket, b.ID.N, p.appID, p.w.user)
		}
	}
	if p.builder.Len() > 0 {
		p.from = b.From
		if begins.Compare(p.from) > 0 {
			p.from = begins
		}
	}
	return nil
}

// flush ends the block that is being built at a place.
func (p *packer) flush(ctx context.Context, to history.Pos) error {
	if p.builder.Len() == 0 {
		p.from = to
		return nil
	}
	id := history.BlockID{Ticket: p.w.row.Ticket, N: len(p.blocks)}
	block := history.Block{
		Range: history.Range{From: p.from, To: to}, ID: id, Newest: p.builder.Newest(), Events: p.builder.Len(),
	}
	value := p.builder.AppendBlock(nil)
	block.Bytes = len(value)
	p.blocks = append(p.blocks, block)
	p.pending = append(p.pending, store.BlockWrite{ID: id, Newest: block.Newest, Value: value})
	p.from = to
	if p.bytes += len(value); p.bytes < pendingBytes {
		return nil
	}
	return p.write(ctx)
}

func (p *packer) write(ctx context.Context) error {
	if len(p.pending) == 0 {
		return nil
	}
	if err := p.e.store.WriteBlocks(ctx, p.appID, p.w.user, p.pending); err != nil {
		return err
	}
	p.pending, p.bytes = nil, 0
	return nil
}

// finish writes what is left and returns the manifest that names the blocks.
// next is the place of the first event that was not added. After the last gap
// the last block ends with its last event, so that newer ones are not late.
func (p *packer) finish(ctx context.Context, next history.Pos) (history.Manifest, error) {
	to := p.last.Next()
	if p.gap.To != history.End && p.gap.To.Compare(next) <= 0 {
		to = p.gap.To
	}
	if err := p.flush(ctx, to); err != nil {
		return history.Manifest{}, err
	}
	if err := p.write(ctx); err != nil {
		return history.Manifest{}, err
	}
	m := p.base.With(p.blocks...)
	m.Announced, m.Complete = nil, 0
	return m, nil
}
