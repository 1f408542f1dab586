package profile

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/store"
)

const (
	// bulkUsers is the number of users in a group.
	bulkUsers = 256
	// A group reads its histories as one stream if at least 1/streamShare of its users
	// are stale, and otherwise block by block.
	streamShare = 4
)

// RecomputeOptions say what a recompute does with each user.
type RecomputeOptions struct {
	// OnlyStale skips users whose stored profiles are valid.
	OnlyStale bool
	// Maintain adds the work of the nightly round: fold and trim histories, and delete
	// orphan blocks.
	Maintain bool
	// Fold folds the history of every user who has an unfolded event, however young.
	Fold bool
	// Discard computes profiles and stores nothing.
	Discard bool
	// Each is called for each known user in the order of their rows, with their profile
	// in its stored form: the one just computed or, of a user whom OnlyStale skips, the
	// stored one. Such a profile counts every event whose writer drew a ticket before
	// the user's row was read. Each is not called for faulty users. It may keep the
	// bytes. Each is called before progress counts the user, and its error ends the
	// recompute. It is not called for anonymous tokens that are linked at the moment. nil means
	// that nobody asks.
	Each func(user string, profile []byte) error
	// Until is the time after which the recompute starts no group. Zero means no
	// limit.
	Until time.Time
}

// folds reports whether a recompute folds users whose profiles it does not compute.
func (o RecomputeOptions) folds() bool { return o.Maintain || o.Fold }

// Progress counts the work of a recompute on its range.
type Progress struct {
	Next string // start of the remaining range
	Done bool   // no user remains

	Users   int64 // users seen
	Known   int64 // users with an event in the window
	Events  int64 // events read to compute profiles, scored or not
	Written int64 // profiles stored
	Folded  int64 // histories folded
	Faulty  int64 // users whose profiles cannot be computed or stored
	// Faults names the first of them, at most 20, with the error of each.
	Faults []string
}

func (p *Progress) add(q Progress) {
	p.Users += q.Users
	p.Known += q.Known
	p.Events += q.Events
	p.Written += q.Written
	p.Folded += q.Folded
	p.Faulty += q.Faulty
	p.Faults = append(slices.Clip(p.Faults), q.Faults[:min(len(q.Faults), maxFaults-len(p.Faults))]...)
}

// bulk computes the profiles of many users.
type bulk struct {
	*env
	logs     *logs
	tickets  *tickets
	computer *computer
	folder   *folder
	orphans  *orphans
	linker   *linker
}

func (b *bulk) recompute(ctx context.Context, app config.App, r store.Range, o RecomputeOptions,
	progress func(Progress) error) (Progress, error) {
	ctx, stop := context.WithCancel(ctx)
	run := b.newRun(ctx, app, o)
	defer run.running.Wait()
	defer stop()
	total, from, more := Progress{Next: r.From}, r.From, true
	var groups []*group // started, in order
	for {
		for more && len(groups) < run.depth && (from == r.From || o.Until.IsZero() || b.now().Before(o.Until)) {
			gr, err := run.next(ctx, store.Range{From: from, To: r.To})
			if err != nil {
				return total, err
			}
			from, more = gr.next, !gr.last
			groups = append(groups, gr)
			run.start(ctx, gr)
		}
		if len(groups) == 0 {
			return total, nil
		}
		first := groups[0]
		groups = groups[1:]
		<-first.done
		if first.err != nil {
			return total, first.err
		}
		if err := first.deliver(app, o.Each); err != nil {
			return total, err
		}
		total.add(first.result)
		total.Next, total.Done = first.next, first.last
		if err := progress(total); err != nil {
			return total, err
		}
	}
}

// errUntil ends a scan whose time is over.
var errUntil = errors.New("the time of the scan is over")

func (b *bulk) verify(ctx context.Context, app config.App, r store.Range,
	until time.Time) (stale int64, next string, err error) {
	seen := 0
	err = b.store.Users.ScanUsers(ctx, app.ID, r.From, r.To, 0, store.UserSummary,
		func(user string, row store.User) error {
			if seen > 0 && !until.IsZero() && !b.now().Before(until) {
				next = strings.Clone(user)
				return errUntil
			}
			seen++
			if len(row.Summary) == 0 || row.Gone() {
				return nil
			}
			p, err := affinity.ParseProfile(row.Summary, 0)
			if err != nil || !app.ScoresAs(p.StrategyVersion) || p.RetentionDays != app.RetentionDays {
				stale++
			}
			return nil
		})
	if errors.Is(err, errUntil) {
		err = nil
	}
	return stale, next, err
}

// bulkRun is one recompute. It processes some groups of users at a time.
type bulkRun struct {
	*bulk
	app      config.App
	options  RecomputeOptions
	compiled *affinity.Compiled
	depth    int // groups at a time
	scratch  sync.Pool
	running  sync.WaitGroup
}

// scratch is memory that groups reuse.
type scratch struct {
	blocks *history.Reader
	scorer *affinity.Scorer
	buffer []byte
}

func (b *bulk) newRun(ctx context.Context, app config.App, o RecomputeOptions) *bulkRun {
	run := &bulkRun{
		bulk: b, app: app, options: o, compiled: b.compile(app), depth: 1 + runtime.GOMAXPROCS(0),
	}
	run.scratch.New = func() any {
		return &scratch{blocks: history.NewReader(run.compiled, b.dictionaries.Of(ctx, app.ID)),
			scorer: affinity.NewScorer(run.compiled, affinity.Window{})}
	}
	return run
}

// group is a number of successive users.
type group struct {
	users  []*bulkUser // in the order of their rows
	byUser map[string]*bulkUser
	stale  int // number of stale users
	first  string
	next   string // the user after the last one
	end    string // the end of the group's rows
	last   bool   // no user follows

	done   chan struct{}
	err    error
	result Progress
}

// next reads the rows of the next group.
func (run *bulkRun) next(ctx context.Context, r store.Range) (*group, error) {
	gr := &group{
		byUser: make(map[string]*bulkUser, bulkUsers), last: true, first: r.From, end: r.To, done: make(chan struct{}),
	}
	parts := store.UserHistory
	switch {
	case run.options.OnlyStale && run.options.Each != nil:
		parts = store.UserProfile
	case run.options.OnlyStale:
		parts = store.UserSummary
	}
	now := run.now().UnixMilli()
	addUser := func(token string, row store.User) error {
		if len(gr.users) == bulkUsers {
			gr.next, gr.end, gr.last = token, token, false
			return nil
		}
		here := row.Owner.State != store.Moved // else the row is what a user has left who lives in another region now
		u := &bulkUser{user: user{token: token}, stale: here && row.Ticket > 0 && !row.Gone()}
		if run.options.OnlyStale && here {
			known, ok := run.stored(row, now)
			if u.stale = u.stale && !ok; ok && known {
				gr.result.Known++
				u.profile = row.Profile
			}
		}
		run.setRowOf(ctx, run.app.ID, &u.user, row)
		run.setReading(&u.user, now, now, run.app)
		run.forSurface(u, gr)
		if u.stale {
			gr.stale++
		}
		gr.users = append(gr.users, u)
		gr.byUser[token] = u
		return nil
	}
	err := run.store.Users.ScanUsers(ctx, run.app.ID, r.From, r.To, bulkUsers+1, parts, addUser)
	if err == nil && run.app.Residency.On() && run.options.Each != nil {
		err = run.keepResidents(ctx, gr)
	}
	gr.result.Users = int64(len(gr.users))
	return gr, err
}

// linked reports whether a row may say that tokens are linked.
func (run *bulkRun) linked(row store.User) bool { return run.app.Identity.On() && len(row.Links) > 0 }

// stored reports whether a row's profile is valid, and whether its user is known. For
// Each a profile below the newest ticket is not: its writer may have logged an event and
// not yet written the profile.
func (run *bulkRun) stored(row store.User, now int64) (known, ok bool) {
	if run.options.Each != nil {
		return run.validAtTicket(row, run.app, now)
	}
	if len(row.Summary) == 0 {
		return false, false
	}
	p, err := affinity.ParseProfile(row.Summary, 0)
	return p.Known, err == nil && run.valid(p, run.app, row, now)
}

// deliver passes the profiles of a group's known users to each, which may be nil.
func (gr *group) deliver(app config.App, each func(string, []byte) error) error {
	if each == nil {
		return nil
	}
	for _, u := range gr.users {
		if u.profile == nil || absorbed(app, u.token, u.row) {
			continue
		}
		if err := each(u.token, u.profile); err != nil {
			return err
		}
	}
	return nil
}

func (run *bulkRun) start(ctx context.Context, gr *group) {
	run.running.Go(func() {
		defer close(gr.done)
		gr.err = run.process(ctx, gr)
	})
}

// process computes and stores the profiles of a group, then maintains its
// histories.
func (run *bulkRun) process(ctx context.Context, gr *group) error {
	var listed map[string][]history.BlockID
	if run.options.Maintain { // orphans.delete reads the rows after this list
		var err error
		if listed, err = run.listUnnamed(ctx, gr); err != nil {
			return err
		}
	}
	if err := run.profiles(ctx, gr); err != nil {
		return err
	}
	if run.options.Discard {
		return nil
	}
	users := make([]*user, len(gr.users))
	for i, u := range gr.users {
		users[i] = &u.user
		if run.unsettled(u.row) {
			if err := run.settle(ctx, run.app.ID, u.token, u.row); err != nil {
				return err
			}
		}
	}
	run.tickets.repair(ctx, run.app.ID, users)
	if run.options.Maintain {
		if err := run.tendLinks(ctx, gr); err != nil {
			return err
		}
	}
	var err error
	if gr.result.Folded, err = run.folder.maintain(ctx, run.app, gr.users, run.options); err != nil {
		return err
	}
	return run.orphans.delete(ctx, run.app.ID, listed)
}

// listUnnamed lists the blocks that the manifests of a group do not name.
func (run *bulkRun) listUnnamed(ctx context.Context, gr *group) (map[string][]history.BlockID, error) {
	listed := map[string][]history.BlockID{}
	err := run.store.Histories.ScanBlockKeys(ctx, run.app.ID, gr.first, gr.end, func(name store.BlockName) error {
		if u := gr.byUser[name.User]; u == nil || !manifestNames(u.manifest, name.ID) {
			listed[name.User] = append(listed[name.User], name.ID)
		}
		return nil
	})
	return listed, err
}

// profiles reads the unfolded events of a group, then its blocks, and writes the
// profiles. It reads the log first, so that a user is complete after their last
// block.
func (run *bulkRun) profiles(ctx context.Context, gr *group) error {
	s, share := run.scratch.Get().(*scratch), run.memory.Share()
	defer func() {
		s.scorer.Reset(affinity.Window{}) // gives back its memory, before the share is closed
		share.Close()
		run.scratch.Put(s)
	}()
	if err := run.drawNew(ctx, gr); err != nil {
		return err
	}
	if err := run.readInline(ctx, gr); err != nil {
		return err
	}
	o := &output{bulkRun: run, gr: gr, scratch: s, share: share, save: run.logs.newSaver(run.app)}
	var blockNames []store.BlockName
	var ranges, packing []store.UserRange
	for _, u := range gr.users {
		if !u.stale && !run.options.folds() || u.fault != nil {
			continue
		}
		if u.stale && (u.sifted() || run.linked(u.row)) {
			o.restarts, u.done = append(o.restarts, u), true
			continue // their log is read with receipts and types, or with those of other tokens
		}
		blocks, gaps := u.parts()
		for _, g := range gaps {
			r := store.UserRange{User: u.token, From: g.From, To: g.To}
			if u.packs {
				packing = append(packing, r)
			} else {
				ranges = append(ranges, r)
			}
		}
		for i := 0; u.stale && i < len(blocks); i++ {
			if blocks[i].Inline {
				u.inline = &blocks[i]
				continue
			}
			u.expect(blocks[i].ID)
			blockNames = append(blockNames, store.BlockName{User: u.token, ID: blocks[i].ID})
		}
	}
	if err := o.readLog(ctx, ranges, packing); err != nil {
		return err
	}
	var err error
	switch {
	case len(blockNames) == 0:
	case gr.stale*streamShare >= len(gr.users):
		err = run.store.Histories.ScanBlocks(ctx, run.app.ID, gr.first, gr.end, o.block(ctx))
	default:
		err = run.store.Histories.ReadBlocks(ctx, run.app.ID, blockNames, o.block(ctx))
	}
	if err != nil {
		return err
	}
	return o.finish(ctx)
}
