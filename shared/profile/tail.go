package profile

import (
	"maps"
	"slices"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/store"
)

// maxTailBlocks bounds the bytes of the blocks that one reading keeps for tails.
const maxTailBlocks = 4 << 20

// tail is what a refresh has read of a user: the blocks, and all rows outside them. The
// next refresh of the user in this process takes from it what it need not read again:
// rows only if nobody else has drawn a ticket in between, and blocks, which nobody
// rewrites, whenever the manifest names them.
type tail struct {
	at   tailState
	from history.Pos // the start of the window
	// rows are in the order of the log, and take rowBytes of memory. They are complete if
	// whole is set; otherwise the tail has only blocks.
	rows     []store.LogRow
	rowBytes int
	whole    bool
	blocks   map[history.BlockID][]byte
}

// tailState is what tells whether the rows of a tail are those that a reading would find.
type tailState struct {
	ticket     int64
	manifest   int64 // its version: every change has another one, announcements too
	tombstone  affinity.Tombstone
	optedOut   event.Types
	generation int64 // of the schemas of the log
}

// state returns the state of a user's row and of the log.
func (u *user) state(app config.App) tailState {
	return tailState{u.row.Ticket, u.manifest.Version, u.row.Tombstone(), u.row.OptedOut, app.Log.Generation}
}

// useTail gives a reading the rows of the tail that are older than all events of the
// refresh. It returns the gaps from which the reading reads the other rows, those of the
// refresh's own events among them: another process may have written the same events with
// other filters.
//
// The log holds no other row before these events that the profile must count. Its writer
// would draw a ticket before the acknowledgement. If that were a ticket below the tail's,
// the tail would have the row. It is not a ticket between the tail's and this one, because
// this one is the next.
func (r *reading) useTail(u *computation, gaps []history.Range) []history.Range {
	before := u.state(r.app)
	before.ticket--
	if u.tail == nil || !u.tail.whole || u.tail.at != before || u.windowStart().Compare(u.tail.from) < 0 || !u.whole {
		return gaps
	}
	low, high := u.tail.find(u.foldStart()), u.tail.find(u.first)
	u.hit = low < high || len(u.tail.rows) == 0
	if low >= high {
		return gaps
	}
	all := u.tail.rows
	u.rows, u.rowBytes = all[low:high], u.tail.rowBytes-sizeOf(all[:low])-sizeOf(all[high:])
	r.kept, r.keptBytes = r.kept+len(u.rows), r.keptBytes+u.rowBytes
	var rest []history.Range
	for _, g := range gaps {
		if g.From.Compare(u.first) < 0 {
			g.From = u.first
		}
		if g.From.Compare(g.To) < 0 {
			rest = append(rest, g)
		}
	}
	return rest
}

// tailed reports whether a reading of a user uses and leaves a tail. Rows that a deletion
// or an opt-out may exclude are read with receipts and types each time.
func (r *reading) tailed(u *computation) bool {
	return r.why == forRefresh && u.pass == nil && !u.damaged && len(u.badBlocks) == 0 && !u.sifted() && !u.apart() &&
		u.manifest.Complete != u.row.Ticket
}

// block returns a block that the tail, which may be nil, holds.
func (t *tail) block(id history.BlockID) ([]byte, bool) {
	if t == nil {
		return nil, false
	}
	value, ok := t.blocks[id]
	return value, ok
}

// find returns the index of the first row at or after a position.
func (t *tail) find(at history.Pos) int {
	i, _ := slices.BinarySearchFunc(t.rows, at, func(row store.LogRow, at history.Pos) int { return row.Pos.Compare(at) })
	return i
}

func sizeOf(rows []store.LogRow) int {
	n := 0
	for i := range rows {
		n += rows[i].Size()
	}
	return n
}

// keepBlock keeps a block that a reading has scored, unless it keeps too many bytes
// already.
func (r *reading) keepBlock(u *computation, id history.BlockID, value []byte) {
	if r.why != forRefresh || u.pass != nil || r.tailBytes+len(value) > maxTailBlocks {
		return
	}
	r.tailBytes += len(value)
	if u.blocks == nil {
		u.blocks = map[history.BlockID][]byte{}
	}
	u.blocks[id] = value
}

// folded makes the rows and blocks of a computation those after a fold of its first n
// rows, which has committed.
func (c *computation) folded(next history.Manifest, n int, written []store.BlockWrite) {
	c.manifest = next
	c.rows = slices.Clone(c.rows[n:]) // not the array of all rows
	c.unfolded, c.rowBytes = len(c.rows), sizeOf(c.rows)
	if c.blocks == nil {
		c.blocks = map[history.BlockID][]byte{}
	}
	for _, b := range written {
		c.blocks[b.ID] = b.Value
	}
	unnamed := func(id history.BlockID, _ []byte) bool {
		return !slices.ContainsFunc(next.Blocks, func(b history.Block) bool { return b.ID == id })
	}
	maps.DeleteFunc(c.blocks, unnamed)
}

// keepTail keeps what a refresh has read for the next one. The refresh has checked the
// schemas of the log since.
func (w *writer) keepTail(app config.App, c *computation) {
	if c.hit {
		w.counters.TailHits.Add(1)
	} else {
		w.counters.TailMisses.Add(1)
	}
	t := &tail{at: c.state(app), from: c.windowStart(), blocks: c.blocks}
	bytes := 0
	for _, value := range c.blocks {
		bytes += len(value)
	}
	if t.whole = c.whole && len(c.rows) == c.unfolded; t.whole {
		t.rows, t.rowBytes = c.rows, c.rowBytes
		bytes += c.rowBytes
	}
	if t.whole || bytes > 0 {
		w.tails.Put(app.ID, c.token, t, bytes)
	}
}
