package profile

import (
	"context"
	"fmt"

	"github.com/affinityengine/affinity/shared/affinity"
	"github.com/affinityengine/affinity/shared/history"
	"github.com/affinityengine/affinity/shared/store"
)

// packer packs events of a user's log, in order, into blocks named by one ticket.
// Its memory is bounded by a few blocks.
type packer struct {
	*env
	appID     string
	user      *user
	base      history.Manifest // names the blocks of earlier folds
	unfolded  int
	mergeable map[history.BlockID][]byte

	builder *history.Builder
	gap     history.Range // that the packer packs now
	from    history.Pos   // start of the current block
	last    history.Pos   // position of the last event

	blocks  []history.Block
	pending []store.BlockWrite
	bytes   int // of pending
	events  int // packed, without the events of merged blocks
}

func (f *folder) newPacker(appID string, u *user, base history.Manifest, unfolded int,
	mergeable map[history.BlockID][]byte) *packer {
	return &packer{
		env: f.env, appID: appID, user: u, base: base, unfolded: unfolded, mergeable: mergeable,
		builder: history.NewBuilder(),
	}
}

// add packs the next event.
func (p *packer) add(ctx context.Context, row store.LogRow) error {
	ev, err := row.Event()
	if err != nil {
		return fmt.Errorf("fold log of %s,%s: %w", p.appID, p.user.token, err)
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

// put adds an event to the current block or, if it does not fit, to a new one.
func (p *packer) put(ctx context.Context, at history.Pos, ev affinity.Event) error {
	if p.builder.Len() < p.limits.blockEvents && p.builder.Add(ev) {
		return nil
	}
	if err := p.flush(ctx, at); err != nil {
		return err
	}
	if !p.builder.Add(ev) {
		return fmt.Errorf("fold log of %s,%s: event at %d fits no block", p.appID, p.user.token, at.Time)
	}
	return nil
}

// enter starts the gap that contains a position. The first block of the gap may
// merge with the block before it.
func (p *packer) enter(ctx context.Context, at history.Pos, time int64) error {
	if p.events > 0 {
		if err := p.flush(ctx, p.gap.To); err != nil {
			return err
		}
	}
	for _, g := range p.base.Gaps(p.user.windowStart()) {
		if at.Compare(g.To) < 0 {
			p.gap = g
			break
		}
	}
	p.from = p.gap.From
	for _, b := range p.base.Blocks {
		if b.To == p.gap.From {
			return p.merge(b, time)
		}
	}
	return nil
}

// merge starts a block with the events of the block before it. It does not merge a
// block that is too old, damaged, or too large for the number of events that
// follow.
func (p *packer) merge(b history.Block, next int64) error {
	value, ok := p.mergeable[b.ID]
	if !ok || len(value) == 0 ||
		b.Events > mergeRatio*max(p.unfolded, p.limits.maintainEvents) || b.Events >= p.limits.blockEvents {
		return nil
	}
	if history.Check(value) != nil {
		return nil // the next computation reports it
	}
	from := p.user.windowStart() // events before it stay in the log alone
	for ev, err := range history.Events(value) {
		if err != nil {
			return fmt.Errorf("merge block %d,%d of %s,%s: %w", b.ID.Ticket, b.ID.N, p.appID, p.user.token, err)
		}
		if ev.Time < from.Time {
			continue
		}
		if p.builder.Len() == 0 && next-ev.Time > history.MaxSpan && b.Bytes > history.SmallBytes/2 {
			return nil
		}
		if !p.builder.Add(ev) {
			return fmt.Errorf("merge block %d,%d of %s,%s: it does not fit a block",
				b.ID.Ticket, b.ID.N, p.appID, p.user.token)
		}
	}
	if p.builder.Len() > 0 {
		p.from = b.From
		if from.Compare(p.from) > 0 {
			p.from = from
		}
	}
	return nil
}

// flush ends the current block at a position.
func (p *packer) flush(ctx context.Context, to history.Pos) error {
	if p.builder.Len() == 0 {
		p.from = to
		return nil
	}
	id := history.BlockID{Ticket: p.user.row.Ticket, N: len(p.blocks)}
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
	if err := p.store.WriteBlocks(ctx, p.appID, p.user.token, p.pending); err != nil {
		return err
	}
	p.pending, p.bytes = nil, 0
	return nil
}

// finish writes the last blocks and returns the manifest that names all blocks.
// next is the position of the first event that the fold did not pack. In the last
// gap the last block ends with its last event, so that newer events are not late.
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
