package audit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/affinityengine/affinity/shared/admission"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/consent"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/store"
	"github.com/affinityengine/affinity/shared/wire"
)

// finding is the result of one reading of a user.
type finding struct {
	user        string
	events      int
	withStored  bool // a stored profile was compared
	byScorer    bool
	tooLarge    bool // not compared: too many values
	differences []Difference
	marks       marks // of the events, if this was the first reading
}

// faulty is the error of an Engine that could not compute some of the users.
type faulty interface {
	error
	ByUser() map[string]error
}

// reading is one reading of a user. The audit reads the user row first, and those that its
// links name, then lets the engine compute the profile, then reads the log. So the log has every
// event that the rows and the profile count.
type reading struct {
	finding
	row      store.User
	computed affinity.Profile
	stored   *affinity.Profile // nil if clients get a computed one
	log      *collector
}

// read reads users once and compares their profiles. earlier has the marks of
// the users whom a previous reading found to differ.
func (r *run) read(ctx context.Context, users []string, earlier map[string]marks) ([]finding, error) {
	select {
	case r.readings <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-r.readings }()

	app := r.app
	current, err := r.apps.App(ctx, app.ID)
	if err != nil {
		return nil, err
	}
	app.Log = current.Log // a migration may have changed it since the audit began
	ctx, end := admission.Part(ctx)
	defer end()
	rows, err := r.rows(ctx, users)
	if err != nil {
		return nil, err
	}
	all, err := r.linkedTo(ctx, rows)
	if err != nil {
		return nil, err
	}
	computed, err := r.engine.Compute(ctx, app, users, r.compiled)
	var some faulty
	failed := map[string]error{}
	if errors.As(err, &some) {
		failed, err = some.ByUser(), nil
	}
	if err == nil {
		err = takeComputed(ctx, computed)
	}
	if err != nil {
		return nil, err
	}
	byUser, ranges := make(map[string]*reading, len(users)), make([]store.UserRange, 0, len(users))
	var persons []*reading
	for _, user := range users {
		if err := failed[user]; err != nil {
			byUser[user] = &reading{finding: finding{user: user}}
			byUser[user].differ(Difference{Which: "computed", What: "damaged", Got: err.Error()})
			continue
		}
		if len(computed[user]) != 1 {
			return nil, fmt.Errorf("no profile was computed for %s", user)
		}
		rd := r.begin(user, rows[user], computed[user][0], earlier)
		byUser[user] = rd
		if _, of := all[user]; of {
			persons = append(persons, rd)
		} else {
			ranges = append(ranges, store.UserRange{User: user, To: history.End})
		}
		if r.app.Identity.On() {
			rd.checkLinks(all)
		}
	}
	if err := r.checkHistories(ctx, byUser); err != nil {
		return nil, err
	}
	if err := r.readLog(ctx, app.Log, ranges, byUser); err != nil {
		return nil, err
	}
	for _, rd := range persons {
		if err := r.readPerson(ctx, app.Log, rd, all); err != nil {
			return nil, err
		}
	}
	findings := make([]finding, len(users))
	for i, user := range users {
		byUser[user].end()
		findings[i] = byUser[user].finding
	}
	return findings, nil
}

const (
	// rowWeight is how many bytes a reading takes from the gate of the process for each
	// byte of a stored profile: the row, and the profile as it was stored and as of now.
	rowWeight = 6
	// affinityBytes is what an affinity of a computed profile holds while it is compared.
	affinityBytes = 256
)

// rows reads the rows of users.
func (r *run) rows(ctx context.Context, users []string) (map[string]store.User, error) {
	rows := make(map[string]store.User, len(users))
	err := r.store.ScanPrimary(ctx, r.app.ID, users, func(user string, row store.User) error {
		rows[user] = row
		return admission.Take(ctx, rowWeight*int64(len(row.Profile)))
	})
	return rows, err
}

// takeComputed takes the memory of computed profiles from the gate.
func takeComputed(ctx context.Context, computed map[string][]affinity.Profile) error {
	n := 0
	for _, profiles := range computed {
		for i := range profiles {
			n += len(profiles[i].Affinities)
		}
	}
	return admission.Take(ctx, affinityBytes*int64(n))
}

// begin decides which profiles of a user the audit compares, and as of when.
func (r *run) begin(user string, row store.User, computed affinity.Profile, earlier map[string]marks) *reading {
	rd := &reading{finding: finding{user: user}, row: row, computed: computed}
	at := computed.Anchor
	p, err := r.served(row, at)
	switch {
	case err != nil:
		rd.differ(Difference{Which: "stored", What: "damaged", Got: err.Error()})
	case p != nil && p.Anchor > at && computed.Until != math.MaxInt64 && p.Anchor >= computed.Until:
		p = nil // a machine whose clock is far ahead stored it
	case p != nil:
		at = max(at, p.Anchor)
		rd.withStored = true
	}
	rd.computed = computed.At(at)
	if p != nil {
		decayed := p.At(at)
		rd.stored = &decayed
	}
	t := row.Tombstone()
	w := affinity.Window{Now: at, RetentionDays: r.app.RetentionDays, DeletedUntil: t.DeletedUntil,
		ReceivedUntil: t.ReceivedUntil}
	first, repeated := earlier[user]
	rd.log = &collector{
		run: r, window: w, optedOut: row.OptedOut, view: r.view(row, nil), first: first, repeated: repeated,
		all: accumulator{run: r, window: w}, old: accumulator{run: r, window: w},
	}
	return rd
}

// view returns what counts by the consents of a row, and of another token's if there is one. Damaged ones grant
// nothing.
func (r *run) view(row store.User, other *store.User) *consent.View {
	if !r.app.Purposes.On() {
		return nil
	}
	c, err := consent.Parse(row.Consents)
	if err == nil && other != nil {
		var of consent.Consents
		of, err = consent.Parse(other.Consents)
		c = r.app.Purposes.Both(c, of)
	}
	if err != nil {
		return &consent.View{}
	}
	view, _ := r.app.Purposes.Of(c, consent.Kept, 0)
	return view
}

// maxApart is how much later (ms) than another profile that is computed now a profile that is
// served can be: as of an event ahead, by a machine whose clock is ahead.
const maxApart = 2 * int64(event.MaxAhead/time.Millisecond)

// served returns the stored profile that a client would get now, or nil if the
// engine would compute one. An error means that the stored profile is damaged;
// then the engine would compute one too.
func (r *run) served(row store.User, now int64) (*affinity.Profile, error) {
	if len(row.Profile) == 0 {
		return nil, nil
	}
	p, err := affinity.ParseProfile(row.Profile, 0)
	if err != nil {
		return nil, err
	}
	switch {
	case !r.app.ScoresAs(p.StrategyVersion), p.RetentionDays != r.app.RetentionDays,
		p.Tombstone() != row.Tombstone(), p.Marks != row.Marks, p.Anchor > now+maxApart,
		p.Until != math.MaxInt64 && max(now, p.Anchor) >= p.Until:
		return nil, nil
	}
	return &p, nil
}

// readLog passes each event to its user's reading. It compares each user at the
// end of their log, so it holds the events of only one user at a time.
func (r *run) readLog(ctx context.Context, l schema.Layout, ranges []store.UserRange,
	byUser map[string]*reading) error {
	var current *reading
	return r.store.ReadLog(ctx, r.app.ID, l, ranges, func(user string, row store.LogRow) error {
		if current == nil || current.user != user {
			if current != nil {
				current.end()
			}
			if current = byUser[user]; current == nil {
				return fmt.Errorf("read the log of %s, who is not in the batch", user)
			}
		}
		if deleted(current.row.Deleted(), row) {
			return nil
		}
		return current.log.add(row)
	})
}

// deleted reports whether the receipt of an event says that it is deleted. What its time
// says is a matter of the window.
func deleted(t affinity.Tombstone, row store.LogRow) bool {
	return row.Time > t.DeletedUntil && t.Covers(row.Time, row.Receipt())
}

// end compares a user whose log has been read.
func (rd *reading) end() {
	if rd.log == nil {
		return // already compared
	}
	if err := rd.log.damage; err != nil {
		rd.differ(Difference{Which: "log", What: "damaged", Got: err.Error()})
	}
	if rd.tooLarge = rd.log.all.full() || rd.log.old.full(); rd.tooLarge {
		rd.events, rd.log = rd.log.events, nil
		return
	}
	low, high := rd.log.bounds()
	rd.events, rd.byScorer, rd.marks = rd.log.events, rd.log.all.scorer != nil, rd.log.seen
	rd.log = nil
	compare(rd.computed, low, high, func(d Difference) { d.Which = "computed"; rd.differ(d) })
	if rd.stored != nil {
		compare(*rd.stored, low, high, func(d Difference) { d.Which = "stored"; rd.differ(d) })
	}
	if len(rd.differences) == 0 {
		rd.marks = nil
	}
}

func (rd *reading) differ(d Difference) {
	d.User = rd.user
	rd.differences = append(rd.differences, d)
}

// checkHistories finds damaged and lost blocks. The engine computes a profile
// without them, so no score reveals them.
func (r *run) checkHistories(ctx context.Context, byUser map[string]*reading) error {
	missing := map[store.BlockName]bool{}
	var all, names []store.BlockName
	inline := map[string]history.Block{}
	for user, rd := range byUser {
		if rd.log == nil {
			continue
		}
		m, err := history.ParseManifest(rd.row.Manifest)
		if errors.Is(err, wire.ErrNewer) {
			continue // this version cannot check it
		}
		if err != nil {
			rd.differ(Difference{Which: "history", What: "damaged", Value: "manifest", Got: err.Error()})
		}
		for _, b := range m.Blocks {
			if b.Newest >= rd.log.window.From() {
				name := store.BlockName{User: user, ID: b.ID}
				missing[name], all = true, append(all, name)
				if b.Inline {
					inline[user] = b
				} else {
					names = append(names, name)
				}
			}
		}
	}
	check := func(name store.BlockName, value []byte, err error) {
		delete(missing, name)
		if err == nil {
			err = history.Check(value)
		}
		if err != nil && !errors.Is(err, wire.ErrNewer) {
			byUser[name.User].differ(Difference{Which: "history", What: "damaged", Value: blockName(name.ID), Got: err.Error()})
		}
	}
	err := r.store.ReadInline(ctx, r.app.ID, slices.Sorted(maps.Keys(inline)), func(user string, cell []byte) error {
		if block, err := history.ParseInline(inline[user], cell); !errors.Is(err, history.ErrOtherBlock) {
			check(store.BlockName{User: user, ID: inline[user].ID}, block, err)
		}
		return nil
	})
	if err == nil && len(names) > 0 {
		err = r.store.ReadBlocks(ctx, r.app.ID, names, func(name store.BlockName, value []byte) error {
			check(name, value, nil)
			return nil
		})
	}
	if err != nil {
		return err
	}
	for _, name := range all {
		if missing[name] {
			byUser[name.User].differ(Difference{Which: "history", What: "missing", Value: blockName(name.ID)})
		}
	}
	return nil
}

func blockName(id history.BlockID) string { return fmt.Sprintf("block %d,%d", id.Ticket, id.N) }
