package profile

import (
	"context"
	"runtime"
	"slices"
	"sync"

	"github.com/affinityengine/affinity/shared/affinity"
	"github.com/affinityengine/affinity/shared/config"
	"github.com/affinityengine/affinity/shared/history"
	"github.com/affinityengine/affinity/shared/store"
)

const (
	// bulkUsers are computed and written together.
	bulkUsers = 256
	// streamShare: histories are read as one stream if at least one user in so many
	// is to be computed, else block by block.
	streamShare = 4
)

// bulk computes many users' profiles, a group of them at a time.
type bulk struct {
	e       *Engine
	app     config.App
	options RecomputeOptions
	c       *affinity.Compiled
	depth   int // groups at once
	scratch sync.Pool
	running sync.WaitGroup
}

// scratch is memory that one group after the other uses.
type scratch struct {
	reader *history.Reader
	scorer *affinity.Scorer
	buffer []byte
}

func newBulk(e *Engine, app config.App, o RecomputeOptions) *bulk {
	b := &bulk{e: e, app: app, options: o, c: affinity.Compile(app.Strategy), depth: 1 + runtime.GOMAXPROCS(0)}
	b.scratch.New = func() any {
		return &scratch{reader: history.NewReader(b.c), scorer: affinity.NewScorer(b.c, affinity.Window{})}
	}
	return b
}

// group is some users that follow each other.
type group struct {
	works  []*work // in the order of their rows
	byUser map[string]*work
	stale  int // of works, to be computed
	first  string
	next   string // the user after the last
	end    string // where the rows end that belong to it
	last   bool   // no user follows

	done   chan struct{}
	err    error
	result Progress
}

// next reads the rows of the next group.
func (b *bulk) next(ctx context.Context, part store.Range) (*group, error) {
	gr := &group{byUser: make(map[string]*work, bulkUsers), last: true, first: part.From, end: part.To, done: make(chan struct{})}
	parts := store.UserState
	if b.options.OnlyStale {
		parts = store.UserSummary
	}
	now := b.e.now().UnixMilli()
	err := b.e.store.ScanUsers(ctx, b.app.ID, part.From, part.To, bulkUsers+1, parts, func(user string, row store.User) error {
		if len(gr.works) == bulkUsers {
			gr.next, gr.end, gr.last = user, user, false
			return nil
		}
		w := &work{user: user, stale: row.Ticket > 0}
		if b.options.OnlyStale {
			known, ok := b.stored(row, now)
			if w.stale = w.stale && !ok; ok && known {
				gr.result.Known++
			}
		}
		if err := b.e.adopt(ctx, b.app.ID, w, row); err != nil {
			return err
		}
		w.window = affinity.Window{Now: now, RetentionDays: b.app.RetentionDays, DeletedUntil: row.DeletedUntil}
		if w.stale {
			gr.stale++
		}
		gr.works = append(gr.works, w)
		gr.byUser[user] = w
		return nil
	})
	gr.result.Users = int64(len(gr.works))
	return gr, err
}

// stored tells whether a row's profile can be served as it is, and whether it is
// that of a known user.
func (b *bulk) stored(row store.User, now int64) (known, ok bool) {
	if len(row.Summary) == 0 {
		return false, false
	}
	p, err := affinity.ParseProfile(row.Summary, 0)
	return p.Known, err == nil && valid(p, b.app, row.DeletedUntil, now)
}

func (b *bulk) start(ctx context.Context, gr *group) {
	b.running.Go(func() {
		defer close(gr.done)
		gr.err = b.run(ctx, gr)
	})
}

// run computes and stores a group, then looks after its histories.
func (b *bulk) run(ctx context.Context, gr *group) error {
	var listed map[string][]history.BlockID
	if b.options.Maintain { // listed before it is known what is named
		var err error
		if listed, err = b.list(ctx, gr); err != nil {
			return err
		}
	}
	if err := b.profiles(ctx, gr); err != nil {
		return err
	}
	if b.options.Discard {
		return nil
	}
	b.e.mend(ctx, b.app.ID, gr.works)
	var err error
	if gr.result.Folded, err = b.e.tend(ctx, b.app, gr.works, b.options.Maintain); err != nil {
		return err
	}
	return b.e.sweep(ctx, b.app.ID, listed)
}

func (b *bulk) list(ctx context.Context, gr *group) (map[string][]history.BlockID, error) {
	listed := map[string][]history.BlockID{}
	err := b.e.store.ScanBlockKeys(ctx, b.app.ID, gr.first, gr.end, func(name store.BlockName) error {
		w := gr.byUser[name.User]
		named := w != nil && slices.ContainsFunc(w.manifest.Blocks, func(bl history.Block) bool { return bl.ID == name.ID })
		if !named { // to be looked at again: most users have nothing to sweep
			listed[name.User] = append(listed[name.User], name.ID)
		}
		return nil
	})
	return listed, err
}

// profiles reads what lies outside the blocks of a group, then its blocks, and
// writes the profiles. The log comes first, so that a user is done when his last
// block has passed.
func (b *bulk) profiles(ctx context.Context, gr *group) error {
	s := b.scratch.Get().(*scratch)
	defer b.scratch.Put(s)
	o := &output{bulk: b, gr: gr, scratch: s}
	var names []store.BlockName
	var spans []store.UserRange
	for _, w := range gr.works {
		if !w.stale && !b.options.Maintain {
			continue
		}
		blocks, gaps := w.parts()
		for _, g := range gaps {
			spans = append(spans, store.UserRange{User: w.user, From: g.From, To: g.To})
		}
		for i := 0; w.stale && i < len(blocks); i++ {
			w.await(blocks[i].ID)
			names = append(names, store.BlockName{User: w.user, ID: blocks[i].ID})
		}
	}
	if len(spans) > 0 {
		if err := b.e.logOf(b.app).ReadFor(ctx, spans, b.c, o.row()); err != nil {
			return err
		}
		o.close()
	}
	var err error
	switch {
	case len(names) == 0:
	case gr.stale*streamShare >= len(gr.works):
		err = b.e.store.ScanBlocks(ctx, b.app.ID, gr.first, gr.end, o.block(ctx))
	default:
		err = b.e.store.ReadBlocks(ctx, b.app.ID, names, o.block(ctx))
	}
	if err != nil {
		return err
	}
	return o.finish(ctx)
}
