package profile_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/race"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/store"
)

// naming returns an event with an original that says the same as the event.
func naming(user string, ms int64, n int, typ event.Type, name string, ids ...string) store.LogEvent {
	e := store.LogEvent{User: user, Time: ms, ID: fmt.Sprintf("%011d", n), Type: typ, Name: name}
	targets := `"filters":["color:Red"]`
	if len(ids) > 0 {
		e.Index, e.ObjectIDs = "products", ids
		targets = `"objectIDs":["` + strings.Join(ids, `","`) + `"]`
	}
	e.Counts = []affinity.Count{{Facet: "color", Value: "Red", N: 1}}[:n%2]
	e.Original = schema.Original{ReceivedAt: ms + 1, Index: "products", Event: fmt.Appendf(nil,
		`{"eventType":%q,"eventName":%q,"userToken":%q,"timestamp":%d,%s}`, typ, name, user, ms, targets)}.Append(nil)
	return e
}

// sweepWorld leads some users through all that happens to histories.
type sweepWorld struct {
	*fixture
	*rand.Rand
	events  int
	counted int // counts of events without objects
	users   []string
}

func newSweepWorld(t *testing.T, seed uint64) *sweepWorld {
	b := &fixture{t: t, apps: config.NewMemory(), clock: 1_700_000_000_000}
	b.store, b.client = storetest.NewWithClient(t)
	must.Succeed(t, b.apps.CreateApp(ctx, config.App{ID: appID, RetentionDays: 30, Log: schema.Of(schema.Names[seed%2])}))
	b.setStrategy(plain)
	b.eng = b.engine()
	b.eng.SetLimits(4, 8, 6, 16, time.Minute)
	return &sweepWorld{fixture: b, Rand: rand.New(rand.NewPCG(seed, 1)), users: []string{"a", "a+", "b", "c", "d"}}
}

func (w *sweepWorld) check(err error) {
	w.t.Helper()
	must.Succeed(w.t, err)
}

// some returns events of some users, most of them recent, some late, some ahead.
func (w *sweepWorld) some() []store.LogEvent {
	events := make([]store.LogEvent, 1+w.IntN(12))
	for i := range events {
		w.events++
		ms := w.clock - w.Int64N(hour)
		switch w.IntN(8) {
		case 0:
			ms = w.clock - w.Int64N(40*day)
		case 1:
			ms = w.clock + w.Int64N(hour)
		}
		name := []string{"Bought", "Bought", "Ignored"}[w.IntN(3)]
		var ids []string
		for range w.IntN(4) {
			ids = append(ids, fmt.Sprint("object", w.IntN(30)))
		}
		slices.Sort(ids)
		ids = slices.Compact(ids)
		w.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
		events[i] = naming(w.users[w.IntN(len(w.users))], ms, w.events, event.Conversion, name, ids...)
	}
	return events
}

// step does one of the things that happen.
func (w *sweepWorld) step() {
	w.t.Helper()
	w.clock += w.Int64N(12 * hour)
	user := w.users[w.IntN(len(w.users))]
	switch w.IntN(12) {
	case 0:
		_, err := w.eng.Import(ctx, w.app(), w.some())
		w.check(err)
	case 1:
		_, err := w.eng.Fold(ctx, w.app(), user)
		w.check(err)
	case 2:
		if w.IntN(4) == 0 {
			w.delete(user)
		}
	case 3:
		_, err := w.eng.Recompute(ctx, w.app(), store.Range{}, profile.RecomputeOptions{Maintain: true}, func(profile.Progress) error { return nil })
		w.check(err)
	case 4:
		w.spoil(user, []spoiling{lost, damaged}[w.IntN(2)])
	default:
		_, err := w.eng.Apply(ctx, w.app(), w.some())
		w.check(err)
	}
}

// spoiling is what happens to a block.
type spoiling int

const (
	lost spoiling = iota
	damaged
)

// spoil spoils one of a user's blocks.
func (w *sweepWorld) spoil(user string, how spoiling) {
	w.t.Helper()
	row, err := w.store.Users.ReadUser(ctx, appID, user)
	w.check(err)
	m, err := history.ParseManifest(row.Manifest)
	w.check(err)
	if len(m.Blocks) == 0 {
		return
	}
	id := m.Blocks[w.IntN(len(m.Blocks))].ID
	if how == lost {
		w.check(w.store.Histories.DeleteBlocks(ctx, appID, user, []history.BlockID{id}))
		return
	}
	w.check(w.store.Histories.WriteBlocks(ctx, appID, user, []store.BlockWrite{{ID: id, Newest: w.clock, Value: []byte("damaged")}}))
}

// named is an event of a user, in the order of a sweep.
type named struct {
	User string
	affinity.Event
}

// want reads the events of a sweep from the originals in the log.
func (w *sweepWorld) want(window affinity.Window, st *affinity.Compiled, counts bool) []named {
	w.t.Helper()
	var all []named
	stones := map[string]affinity.Tombstone{}
	for _, user := range w.users {
		row, err := w.store.Users.ReadUser(ctx, appID, user)
		w.check(err)
		stones[user] = row.Tombstone()
	}
	l := w.app().Log
	err := w.store.Events.Log(appID, l).Scan(ctx, l.Read, store.Range{}, 0, func(e store.Entry) error {
		original, err := schema.ParseOriginal(e.Original)
		w.check(err)
		o, err := original.Objects()
		deleted := stones[e.User].Covers(e.Time, e.Written().ReceivedAt())
		if window.Contains(e.Time) && !deleted && (st == nil || st.KindScore(o.Type, o.Name) > 0) {
			n := named{e.User, affinity.Event{Time: e.Time, Type: o.Type, Name: o.Name, Index: o.Index, ObjectIDs: o.ObjectIDs}}
			if counts && len(o.ObjectIDs) == 0 {
				stored, err := e.Event()
				w.check(err)
				n.Counts = stored.Counts
				w.counted += len(n.Counts)
			}
			all = append(all, n)
		}
		return err
	})
	w.check(err)
	return all
}

// compareSome compares sweeps of some instant and some kinds with the log.
func (w *sweepWorld) compareSome() (packed int64) {
	w.t.Helper()
	asOf := time.UnixMilli(w.clock)
	if w.IntN(3) == 0 {
		asOf = time.UnixMilli(w.clock - w.Int64N(20*day))
	}
	var st *affinity.Compiled
	if w.IntN(2) == 0 {
		st = affinity.Compile(plain)
	}
	return w.compare(asOf, st, st != nil && w.IntN(2) == 0)
}

// compare compares sweeps with the log. It returns how many events came from blocks.
func (w *sweepWorld) compare(asOf time.Time, st *affinity.Compiled, counts bool) (packed int64) {
	w.t.Helper()
	window := affinity.Window{Now: asOf.UnixMilli(), RetentionDays: 30}
	var got []named
	p, err := w.eng.SweepObjects(ctx, w.app(), store.Range{}, profile.SweepOptions{AsOf: asOf, Strategy: st, Counts: counts}, func(user string, e affinity.Event) error {
		got = append(got, named{user, e})
		return nil
	}, func(profile.SweepProgress) error { return nil })
	w.check(err)
	if diff := cmp.Diff(w.want(window, st, counts), got, cmpopts.EquateEmpty()); diff != "" || !p.Done || p.Events != int64(len(got)) {
		w.t.Fatalf("%+v (-want +got):\n%s", p, diff)
	}
	user := w.users[w.IntN(len(w.users))]
	var ofUser []named
	w.check(w.eng.ObjectsOf(ctx, w.app(), user, st, func(e affinity.Event) error {
		ofUser = append(ofUser, named{user, e})
		return nil
	}))
	window.Now = time.UnixMilli(w.clock).Add(event.MaxAhead).UnixMilli()
	want := slices.DeleteFunc(w.want(window, st, false), func(n named) bool { return n.User != user })
	if diff := cmp.Diff(want, ofUser, cmpopts.EquateEmpty()); diff != "" {
		w.t.Fatalf("of %s (-want +got):\n%s", user, diff)
	}
	return p.Events - p.Logged
}

// TestSweepEqualsTheLog: whatever happened to histories, a sweep gives the objects
// that the originals in the log name, in the order of the log.
func TestSweepEqualsTheLog(t *testing.T) {
	t.Parallel()
	var packed int64
	for seed := range race.Or[uint64](6, 2) { // the two schemas
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			w := newSweepWorld(t, seed)
			for range 50 {
				w.step()
				if w.IntN(race.Or(1, 4)) == 0 {
					packed += w.compareSome()
				}
			}
			if w.counted < race.Or(10, 2) {
				t.Errorf("events by filters have %d counts: too few to show anything", w.counted)
			}
		})
	}
	if packed < race.Or[int64](1_000, 80) {
		t.Errorf("%d events came from blocks: too few to show anything", packed)
	}
}

// TestSweepInParts: a sweep goes on where it stopped, excludes users, and gives up
// with the error of its caller.
func TestSweepInParts(t *testing.T) {
	w := newSweepWorld(t, 0)
	w.users = nil
	var events []store.LogEvent
	for i := range 2100 { // more than two groups of 1,024
		user := fmt.Sprintf("user%d", i)
		w.users = append(w.users, user)
		events = append(events, naming(user, w.clock-hour, i, event.View, "Viewed", fmt.Sprint("o", i)))
	}
	_, err := w.eng.Import(ctx, w.app(), events)
	w.check(err)
	var got []named
	even := func(user string) bool { return user[len(user)-1]%2 == 0 }
	p, parts := profile.SweepProgress{}, 0
	for r := (store.Range{}); !p.Done; parts++ {
		o := profile.SweepOptions{Only: even, Until: time.UnixMilli(w.clock)}
		p, err = w.eng.SweepObjects(ctx, w.app(), r, o, func(user string, e affinity.Event) error {
			got = append(got, named{user, e})
			return nil
		}, func(profile.SweepProgress) error { return nil })
		w.check(err)
		r.From = p.Next
	}
	want := slices.DeleteFunc(w.want(affinity.Window{Now: w.clock}, nil, false), func(n named) bool { return !even(n.User) })
	if diff := cmp.Diff(want, got); diff != "" || parts != 3 {
		t.Errorf("in %d parts (-want +got):\n%s", parts, diff)
	}
	// A sweep that stops has given the earlier users whole.
	got = nil
	_, err = w.eng.SweepObjects(ctx, w.app(), store.Range{}, profile.SweepOptions{Only: even}, func(user string, e affinity.Event) error {
		if len(got) > 0 && user != got[0].User {
			return profile.ErrStop
		}
		got = append(got, named{user, e})
		return nil
	}, func(profile.SweepProgress) error { return nil })
	first := slices.DeleteFunc(want, func(n named) bool { return n.User != want[0].User })
	if diff := cmp.Diff(first, got); diff != "" || !errors.Is(err, profile.ErrStop) {
		t.Errorf("a sweep that stops: %v (-want +got):\n%s", err, diff)
	}
	stop := errors.New("stop")
	for name, fails := range map[string]error{"fn": stop, "progress": stop} {
		_, err := w.eng.SweepObjects(ctx, w.app(), store.Range{}, profile.SweepOptions{}, func(string, affinity.Event) error {
			if name == "fn" {
				return fails
			}
			return nil
		}, func(profile.SweepProgress) error { return fails })
		if !errors.Is(err, stop) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
