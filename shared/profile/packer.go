package profile

import (
	"context"
	"errors"
	"fmt"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/consent"
	"github.com/affinityengine/affinity/shared/score/history"
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
	decoder *store.LogDecoder
	gap     history.Range // that the packer packs now
	from    history.Pos   // start of the current block
	last    history.Pos   // position of the last event

	blocks  []history.Block
	pending []store.BlockWrite
	written []store.BlockWrite // as many as a tail keeps
	kept    int                // their bytes
	bytes   int                // of pending
	events  int                // added, without the events of merged blocks
	entered bool
}

// newPacker returns a packer that uses a builder, which is empty, and a decoder. Packers that
// follow each other may share both.
func (f *folder) newPacker(app config.App, u *user, base history.Manifest, unfolded int,
	mergeable map[history.BlockID][]byte, builder *history.Builder, decoder *store.LogDecoder) *packer {
	u.setView(app.For(consent.Kept))
	return &packer{
		env: f.env, appID: app.ID, user: u, base: base, unfolded: unfolded, mergeable: mergeable,
		builder: builder, decoder: decoder,
	}
}

// newBuilder returns a builder of blocks with the newest dictionary of an app.
func (v *env) newBuilder(ctx context.Context, appID string) *history.Builder {
	b := history.NewBuilder()
	b.Use(v.dictionaries.Newest(ctx, appID))
	return b
}

// add adds the next event. A block holds no event of a type that the user has opted out
// of, or that counts for no purpose: their writers are about to drop these, and opting in, or a grant, excludes them.
func (p *packer) add(ctx context.Context, row store.LogRow) error {
	p.events++
	ev, err := p.decoder.Event(row)
	if err != nil {
		return fmt.Errorf("fold log of %s,%s: %w", p.appID, p.user.token, err)
	}
	if p.user.row.OptedOut.Has(ev.Type) || !p.user.view.Keeps(ev.Type, ev.Name, ev.Time, row.Receipt()) {
		return nil
	}
	if !p.entered || row.Pos.Compare(p.gap.To) >= 0 {
		if err := p.enter(ctx, row.Pos, ev.Time); err != nil {
			return err
		}
	}
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
	if p.entered {
		if err := p.flush(ctx, p.gap.To); err != nil {
			return err
		}
	}
	p.entered = true
	for _, g := range p.base.Gaps(p.user.foldStart()) {
		if at.Compare(g.To) < 0 {
			p.gap = g
			break
		}
	}
	p.from = p.gap.From
	for _, b := range p.base.Blocks {
		if b.To == p.gap.From {
			return p.merge(ctx, b, time)
		}
	}
	return nil
}

// merge starts a block with the events of the block before it. It does not merge a
// block that is too old, damaged, or too large for the number of events that
// follow.
func (p *packer) merge(ctx context.Context, b history.Block, next int64) error {
	value, ok := p.mergeable[b.ID]
	if !ok || len(value) == 0 ||
		!b.Inline && b.Events > mergeRatio*max(p.unfolded, p.limits.maintainEvents) || b.Events >= p.limits.blockEvents {
		return nil
	}
	from := p.user.windowStart() // events before it stay in the log alone
	for ev, err := range history.Events(value, p.dictionaries.Of(ctx, p.appID)) {
		if errors.Is(err, history.ErrUnread) {
			return fmt.Errorf("merge block %d,%d of %s,%s: %w", b.ID.Ticket, b.ID.N, p.appID, p.user.token, err)
		}
		if err != nil {
			return nil // the next computation reports it
		}
		if ev.Time < from.Time {
			continue
		}
		if p.builder.Len() == 0 && next-ev.Time > history.MaxSpan && b.Bytes > history.SmallBytes/2 {
			return nil
		}
		if !p.builder.Add(ev) { // with another dictionary there was more room
			p.builder.Reset()
			return nil
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
	if err := p.store.Histories.WriteBlocks(ctx, p.appID, p.user.token, p.pending); err != nil {
		return err
	}
	if p.kept+p.bytes <= maxTailBlocks {
		p.written, p.kept = append(p.written, p.pending...), p.kept+p.bytes
	}
	p.pending, p.bytes = nil, 0
	return nil
}

// finish writes the last blocks and returns the manifest that names all blocks, and the cell of the
// inline one if the fold has packed one. next is the position of the first event that the fold did not
// pack. In the last gap the last block ends with its last event, so that newer events are not late.
func (p *packer) finish(ctx context.Context, next history.Pos) (history.Manifest, []byte, error) {
	to := p.last.Next()
	if p.gap.To != history.End && p.gap.To.Compare(next) <= 0 {
		to = p.gap.To
	}
	if err := p.flush(ctx, to); err != nil {
		return history.Manifest{}, nil, err
	}
	m := p.base.With(p.blocks...)
	m.Announced, m.Complete = nil, 0
	cell := p.intoRow(m)
	if cell != nil {
		p.written = append(p.written, p.pending...)
	} else {
		if err := p.write(ctx); err != nil {
			return history.Manifest{}, nil, err
		}
	}
	return m, cell, nil
}
