package segmentbuild

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/rank/segment"
	"github.com/affinityengine/affinity/shared/score/consent"
	"github.com/affinityengine/affinity/shared/store"
	"github.com/affinityengine/affinity/shared/wire"
)

// Outcome is what a delta task has done.
type Outcome struct {
	// Users are those who were packed or set out; 0 if the task changed nothing.
	Users int `json:"users"`
	// Joined is the number of deltas that the new one replaces.
	Joined int `json:"joined"`
	// Build reports that a build was ordered.
	Build bool `json:"build"`
}

// orderEvery is how often a delta may be ordered for one manifest. The name of a task
// stays taken after it has run.
const orderEvery = time.Minute

// Order orders a delta for the app's manifest, if it has one and deltas need not wait, or one for that of each region
// in which users of the app live. For a region without a manifest, or with one that holds out others than the app does,
// it starts a build. It reports whether it has. Orders
// of the same minute are one.
func (r *Runner) Order(ctx context.Context, app string) (bool, error) {
	now, err := r.Config.App(ctx, app)
	if err != nil {
		return false, fmt.Errorf("order a delta of segments: %w", err)
	}
	if r.copied(now) {
		return false, nil
	}
	ordered := false
	for _, there := range regional(now) {
		done, err := r.orderIn(ctx, there)
		if err != nil {
			return false, fmt.Errorf("order a delta of segments: %w", err)
		}
		ordered = ordered || done
	}
	return ordered, nil
}

// orderIn orders a delta for the manifest of a region.
func (r *Runner) orderIn(ctx context.Context, app config.App) (bool, error) {
	m, err := r.work.storeOf(app).Segments.ReadSegmentManifest(ctx, app.ID)
	if err == nil && m.Version == 0 && app.Residency.Mode == config.ResidencyOn && app.Region != app.Residency.Home {
		return true, r.startChanged(ctx, app.ID, m.Version)
	}
	if err == nil && m.Version > 0 && m.Holdout != app.Holdout.ID() {
		return true, r.startChanged(ctx, app.ID, m.Version)
	}
	if errors.Is(err, wire.ErrNewer) || err == nil && m.Version == 0 {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	minute := r.Now().UnixMilli() / orderEvery.Milliseconds()
	request := Request{App: app.ID, Version: m.Version}
	name := []string{"segments-delta", app.ID, strconv.FormatInt(m.Version, 10), strconv.FormatInt(minute, 10)}
	if app.Residency.On() {
		request.Region, name = app.Region, append(name, app.Region)
	}
	task, err := Deltas.Task(app.ID, request, 0, name...)
	if err != nil {
		return false, err
	}
	task.Region = request.Region // it runs near the users
	return true, r.Queue.Create(ctx, task)
}

// copied reports whether the rows of an app's segments are being copied to the region to which
// it moves. What is added in between would be copied in part. Behind the copy, when the rows of
// the other region begin to count, some processes still use those of the first: a delta
// would write its parts into one region and its manifest into the other. Otherwise all of a
// delta is in one region, whatever phase begins while it runs: a move waits for the longest
// task before it copies. Users may be owned in either: deltas read their profiles there.
func (r *Runner) copied(app config.App) bool {
	switch m := app.Move; {
	case m.Back:
		return false // the region to which the app returns has had the rows that count all the time
	case m.Phase == config.MoveSwitched:
		return true
	case m.Phase == config.MoveDropping:
		return r.Clock().Before(app.PlacedAt().Add(r.Propagation))
	}
	return false
}

// Delta adds a part of the users who have changed, or whose profiles have expired, to a
// manifest, if they are enough to slow queries down. It joins deltas of about one size,
// and orders a build if there are too many users in deltas. It does nothing if the manifest
// has another version: someone has done the work. config.ErrNotFound if the app does
// not exist.
func (r *Runner) Delta(ctx context.Context, request Request) (Outcome, error) {
	app, err := r.Config.App(ctx, request.App)
	if err != nil {
		return Outcome{}, fmt.Errorf("make a delta of segments: %w", err)
	}
	if r.copied(app) {
		return Outcome{}, nil // queries order another one
	}
	all := app
	if request.Region != "" {
		if !app.Residency.On() {
			return Outcome{}, nil
		}
		app = app.In(request.Region)
	}
	m, err := r.work.storeOf(app).Segments.ReadSegmentManifest(ctx, app.ID)
	if errors.Is(err, wire.ErrNewer) {
		return Outcome{}, nil
	}
	if err != nil || m.Version != request.Version || !serves(m, app) {
		return Outcome{}, err
	}
	d := &delta{Work: r.work, app: app, all: all, manifest: m, cut: r.work.cut(), at: r.Now().UnixMilli()}
	outcome, err := d.make(ctx)
	if err != nil || !outcome.Build {
		return outcome, err
	}
	return outcome, r.startChanged(ctx, app.ID, m.Version)
}

// movingFactor is how many times more users a delta may have while its app moves to another
// region.
const movingFactor = 8

// delta is one call of Delta.
type delta struct {
	*Work
	app      config.App // as work over the users of the manifest's region takes it
	all      config.App
	manifest segment.Manifest
	cut      int64
	at       int64 // ms
	out      map[segment.PartID]map[segment.PartID][]uint16
	joins    map[segment.PartID]bool // the deltas that the new one replaces
}

func (d *delta) make(ctx context.Context) (o Outcome, err error) {
	var deltas []segment.PartID
	all, inDeltas := 0, 0
	for _, p := range d.manifest.Parts {
		if all += p.Users; p.Delta {
			deltas, inDeltas = append(deltas, p.ID), inDeltas+p.Users
		}
	}
	if d.out, err = d.storeOf(d.app).Segments.ReadSetOuts(ctx, d.app.ID, deltas); err != nil {
		return o, err
	}
	users, tooMany, err := d.changed(ctx)
	if err != nil || tooMany {
		return Outcome{Build: tooMany}, err
	}
	if len(users) < d.DeltaUsers {
		return o, nil
	}
	// At a fifth of all users a build costs less than the next joins.
	o.Build = inDeltas+len(users) > max(all/5, d.DeltaUsers*d.Joined)
	if users, err = d.join(ctx, users); err != nil {
		return o, err
	}
	parts, err := d.pack(ctx, users)
	if err != nil {
		return o, err
	}
	if err := d.setOut(ctx, users, parts); err != nil {
		return o, err
	}
	next := d.manifest
	next.Parts = append(d.remaining(), parts...)
	ok, err := d.storeOf(d.app).Segments.SwapSegmentManifest(ctx, d.app.ID, d.manifest.Version, next)
	if err != nil || !ok {
		return Outcome{Build: o.Build}, err
	}
	o.Users, o.Joined = len(users), len(d.joins)
	d.runner.Log.LogAttrs(ctx, slog.LevelInfo, "delta of segments added", slog.String("app", d.app.ID),
		slog.Int("users", o.Users), slog.Int("joined", o.Joined))
	return o, d.runner.measure(ctx, d.all)
}

// remaining returns the parts that the new delta does not replace.
func (d *delta) remaining() []segment.Part {
	return slices.DeleteFunc(slices.Clone(d.manifest.Parts), func(p segment.Part) bool { return d.joins[p.ID] })
}

// changed returns the users, sorted, who have changed since their part was cut or whose
// profile in it has expired. tooMany is true if they do not fit a delta, or if the list of
// changes no longer names all of them.
func (d *delta) changed(ctx context.Context) (users []string, tooMany bool, err error) {
	most := 2 * d.DeltaUsers * d.Joined * d.Joined
	if d.app.Moving() {
		most *= movingFactor // a build would wait until the app has arrived
	}
	since, newest, latest := int64(-1), int64(0), int64(0)
	for _, p := range d.manifest.Parts {
		latest = max(latest, p.Cut)
		if p.Delta {
			newest = max(newest, p.Cut)
		} else if since < 0 || p.Cut < since {
			since = p.Cut
		}
	}
	since = max(since, newest)
	if !store.ChangesReach(store.ChangeSlot(since), store.ChangeSlot(latest), d.runner.Now()) {
		return nil, true, nil
	}
	listed, tooMany, err := d.storeOf(d.app).Changes.List(ctx, d.app.ID, store.ChangeSlot(since), most)
	if err != nil || tooMany {
		return nil, tooMany, err
	}
	for user, slot := range listed {
		if p, ok := d.base(user); !ok || int64(slot) >= max(p.Cut, newest) {
			users = append(users, user)
		}
	}
	expired, err := d.expired(ctx)
	users = append(users, expired...)
	slices.SortFunc(users, segment.TokenOrder)
	users = slices.Compact(users)
	return users, len(users) > most, err
}

// base returns the base part whose range holds a user.
func (d *delta) base(user string) (segment.Part, bool) {
	for _, p := range d.manifest.Parts {
		if !p.Delta && p.Covers(user) {
			return p, true
		}
	}
	return segment.Part{}, false
}

// expired returns the users whose profiles in their part have expired.
func (d *delta) expired(ctx context.Context) (users []string, err error) {
	ids := make([]segment.PartID, len(d.manifest.Parts))
	for i, p := range d.manifest.Parts {
		ids[i] = p.ID
	}
	cells, err := d.storeOf(d.app).Segments.ReadSegmentUntils(ctx, d.app.ID, ids, d.at)
	if err != nil {
		return nil, err
	}
	for _, p := range d.manifest.Parts {
		var ordinals []uint16
		if err := segment.Expired(cells[p.ID], d.at, func(o uint16) { ordinals = append(ordinals, o) }); err != nil {
			return nil, err
		}
		tokens, err := d.tokens(ctx, p, ordinals)
		if err != nil {
			return nil, err
		}
		users = append(users, tokens...)
	}
	return users, nil
}

// level is the size of a delta: each is Joined times the one below.
func (d *delta) level(users int) int {
	level := 0
	for size := d.DeltaUsers * d.Joined; users >= size; size *= d.Joined {
		level++
	}
	return level
}

// join adds the users of deltas of one size to those of the new one, if with it they
// are enough.
func (d *delta) join(ctx context.Context, users []string) ([]string, error) {
	d.joins = map[segment.PartID]bool{}
	for level := d.level(len(users)); ; level++ {
		var same []segment.Part
		for _, p := range d.manifest.Parts {
			if p.Delta && !d.joins[p.ID] && d.level(p.Users) <= level {
				same = append(same, p)
			}
		}
		if len(same)+1 < d.Joined {
			return users, nil
		}
		for _, p := range same {
			ordinals := make([]uint16, p.Users)
			for i := range ordinals {
				ordinals[i] = uint16(i)
			}
			tokens, err := d.tokens(ctx, p, ordinals)
			if err != nil {
				return nil, err
			}
			users, d.joins[p.ID] = append(users, tokens...), true
		}
		slices.SortFunc(users, segment.TokenOrder)
		users = slices.Compact(users)
		level = max(level, d.level(len(users))-1)
	}
}

// errObsolete means that profiles have a scoring that the manifest does not have.
var errObsolete = errors.New("the scoring of profiles has changed")

// pack packs users into parts. Faulty users are in none, and are set out.
func (d *delta) pack(ctx context.Context, users []string) (parts []segment.Part, err error) {
	packer := segment.NewPacker(scoring(d.app), d.Affinities)
	defer packer.Close()
	var writer *store.SegmentWriter
	begin := func() {
		id := d.newPart()
		packer.Begin(id, true, d.runner.Now().UnixMilli())
		writer = d.storeOf(d.app).Segments.NewSegmentWriter(ctx, d.app.ID, id)
	}
	end := func() error {
		part, err := packer.Finish(d.runner.Now().UnixMilli(), writer.Write)
		if err := errors.Join(err, writer.Flush()); err != nil {
			return err
		}
		part.Cut = d.cut
		parts = append(parts, part)
		return nil
	}
	begin()
	err = d.Profiles.ReadStored(ctx, d.app.For(consent.Segments), users, func(user string, stored []byte) error {
		if packer.Full() || packer.Users() >= d.PartUsers {
			if err := end(); err != nil {
				return err
			}
			begin()
		}
		err := packer.Add(user, stored)
		switch {
		case errors.Is(err, segment.ErrScoring):
			return fmt.Errorf("make a delta of segments: %w", errObsolete)
		case err != nil:
			d.runner.Log.LogAttrs(ctx, slog.LevelError, "a profile is not packed", slog.String("app", d.app.ID),
				slog.String("user", user), slog.Any("error", err))
		}
		return nil
	})
	var faulty profile.Faulty
	if err != nil && !errors.As(err, &faulty) {
		return nil, err
	}
	return parts, end()
}

// setOut writes which users of the remaining parts the new ones set out: all that they
// were made of, and those whom the replaced deltas set out.
func (d *delta) setOut(ctx context.Context, users []string, parts []segment.Part) error {
	out := map[segment.PartID][]uint16{}
	for _, p := range d.remaining() {
		of := users
		if !p.Delta {
			from, _ := slices.BinarySearchFunc(users, p.From, segment.TokenOrder)
			to := len(users)
			if p.To != "" {
				to, _ = slices.BinarySearchFunc(users, p.To, segment.TokenOrder)
			}
			of = users[from:to]
		}
		ordinals, err := d.ordinals(ctx, p, of)
		if err != nil {
			return err
		}
		for joined := range d.joins {
			ordinals = append(ordinals, d.out[joined][p.ID]...)
		}
		slices.Sort(ordinals)
		if ordinals = slices.Compact(ordinals); len(ordinals) > 0 {
			out[p.ID] = ordinals
		}
	}
	return d.storeOf(d.app).Segments.WriteSetOuts(ctx, d.app.ID, parts[0].ID, out)
}
