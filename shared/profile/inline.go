package profile

import (
	"context"
	"errors"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/store"
)

// inlineEvents and inlineBytes bound the block in a user's row. Reads of stored profiles
// and tickets do not fetch it, so it costs where the block would be read anyway, and
// saves a row there.
const (
	inlineEvents = 64
	inlineBytes  = 4 << 10
)

// swap replaces the manifest of a user, who has it as it was read, and the inline block
// in the same mutation. cell is that of the inline block which next names, or empty: then
// next names the one that the row holds, or none.
func (v *env) swap(ctx context.Context, appID, token string, from, next history.Manifest, cell []byte) (bool, error) {
	was, had := from.Inline()
	is, has := next.Inline()
	var changes []store.RowChange
	switch {
	case len(cell) > 0:
		changes = append(changes, store.SetInline(cell))
	case had && (!has || is.ID != was.ID):
		changes = append(changes, store.DropInline())
	}
	return v.store.Users.SwapManifest(ctx, appID, token, history.OfVersion(from.Version), next.AppendBinary(nil), changes...)
}

// owned returns the manifest that a fold commits by its ticket. A fold of an older ticket
// may have replaced the manifest since it was read, and the inline block with it. So the
// manifest names an inline block only if its cell comes along.
func owned(next history.Manifest, cell []byte) history.Manifest {
	if len(cell) > 0 {
		return next
	}
	return next.Without(func(b history.Block) bool { return b.Inline })
}

// commit replaces the manifest of a user whose newest ticket is that of the row, and the
// inline block in the same mutation: next is owned with this cell.
func (v *env) commit(ctx context.Context, appID string, u *user, next history.Manifest, cell []byte) (bool, error) {
	change := store.SetInline(cell)
	if len(cell) == 0 {
		change = store.DropInline()
	}
	return v.store.Users.CommitFold(ctx, appID, u.token, u.row.Ticket, next.AppendBinary(nil), change)
}

// intoRow makes the only block of a manifest that a fold is about to store the inline
// one, if it is small and the fold has just packed it. It returns its cell.
func (p *packer) intoRow(m history.Manifest) []byte {
	if len(m.Blocks) != 1 || len(p.blocks) != 1 || len(p.pending) != 1 {
		return nil
	}
	if b := &m.Blocks[0]; b.ID == p.blocks[0].ID && b.Events <= p.limits.inlineEvents && b.Bytes <= inlineBytes {
		b.Inline = true
		return history.AppendInline(nil, *b, p.pending[0].Value)
	}
	return nil
}

// isSmall reports whether the history of a user may be, or become, an inline block.
func (f *folder) isSmall(u *bulkUser) bool {
	if u.unfolded == 0 || u.unfolded > smallRatio*f.limits.inlineEvents {
		return false
	}
	for _, b := range u.trimmed().Blocks {
		if !b.Inline {
			return false
		}
	}
	return true
}

// smallRatio times inlineEvents is the number of unfolded events up to which a round folds
// without an announcement.
const smallRatio = 4

// foldSmall folds a user with few events without an announcement: it draws a ticket,
// reads, and commits if nobody has drawn a ticket since. Otherwise the next round tries
// again. It leaves the announcement of another fold alone.
func (f *folder) foldSmall(ctx context.Context, app config.App, token string) (bool, error) {
	u := &user{token: token}
	if ok, err := f.mayAnnounce(ctx, app.ID, u, refreshPatience); !ok || err != nil {
		return false, err
	}
	u.setWindow(f.now().UnixMilli(), app)
	packed, err := f.foldUnderTicket(ctx, app, u)
	if packed == packedSome {
		_, err = f.fold(ctx, app, token)
	}
	return packed != packedNone, err
}

// toFold returns the manifest that a fold of a user extends, the gaps in it, and the
// position before which events are old enough. It returns false if there is nothing to
// fold.
func (f *folder) toFold(u *user) (base history.Manifest, gaps []history.Range, until history.Pos, ok bool) {
	if u.row.Gone() {
		return base, nil, until, false
	}
	base = u.trimmed()
	gaps = base.Gaps(u.foldStart())
	until = history.Pos{Time: u.window.Now - f.limits.foldAge.Milliseconds()}
	if f.youngToo {
		until.Time = u.window.Now + 1
	}
	return base, gaps, until, len(gaps) > 0 && gaps[0].From.Compare(until) < 0
}

// readInline reads the rows of the stale users again whose manifests name an inline
// block, if the group has read its rows without: in a round most users are not stale.
func (run *bulkRun) readInline(ctx context.Context, gr *group) error {
	var tokens []string
	for _, u := range gr.users {
		if _, named := u.usable().Inline(); named && u.stale && u.fault == nil && !u.row.HasInline {
			tokens = append(tokens, u.token)
		}
	}
	if len(tokens) == 0 {
		return nil
	}
	rows, err := run.store.Users.ReadUserHistories(ctx, run.app.ID, tokens)
	if err != nil {
		return err
	}
	for token, row := range rows {
		u := gr.byUser[token]
		run.setRowOf(ctx, run.app.ID, &u.user, row)
		run.setReading(&u.user, u.window.Clock, u.window.Clock, run.app)
		if row.Gone() {
			u.stale, gr.stale = false, gr.stale-1
		}
	}
	return nil
}

// inline scores the inline block of a user, which came with the row. The error is that of
// a dictionary that could not be read.
func (o *output) inline(ctx context.Context, u *bulkUser) error {
	if u.inline == nil || u.restart || u.fault != nil {
		return nil
	}
	block, err := history.ParseInline(*u.inline, u.row.Inline)
	n := 0
	if err == nil {
		n, err = o.scratch.blocks.Score(block, u.scorer)
	}
	if errors.Is(err, history.ErrUnread) {
		return err
	}
	if err != nil {
		o.addBadBlock(ctx, o.app.ID, &u.user, u.inline.ID, err)
		u.restart = true
		return nil
	}
	u.events += n
	return nil
}

// addInline scores the inline block of a user. A cell that holds another block means
// that another fold has replaced it: the user stays without it, and restarts.
func (r *reading) addInline(ctx context.Context, u *computation, cell []byte) error {
	b, named := u.usable().Inline()
	if !named || !u.missing[b.ID] {
		return nil
	}
	block, err := history.ParseInline(b, cell)
	if errors.Is(err, history.ErrOtherBlock) {
		return nil
	}
	return r.takeBlock(ctx, u, b.ID, block, err)
}
