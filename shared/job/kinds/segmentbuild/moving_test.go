package segmentbuild_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/store"
)

// moving is a harness of an app that moves from eu to us. Its store is over both.
type moving struct {
	*harness
	stores map[string]*store.Store
}

func newMoving(t *testing.T) *moving {
	t.Helper()
	m := &moving{stores: map[string]*store.Store{}}
	m.harness = newHarness(t, func(dial ...grpc.DialOption) (*store.Store, *bigtable.Client) {
		for _, region := range []string{"eu", "us"} {
			m.stores[region], _ = storetest.NewWithClient(t, dial...)
		}
		both, err := store.Regional("eu", "eu", m.stores, func(string) (store.Place, error) {
			if m.harness == nil || m.app().Region == "" {
				return store.Place{Read: "eu", Write: []string{"eu"}}, nil
			}
			at := m.app().Place()
			return store.Place{Read: at.Read, Write: at.Write}, nil
		})
		must.Succeed(t, err)
		return both, nil
	}, small)
	m.change(func(a *config.App) error { a.Region = "eu"; return nil })
	return m
}

func (m *moving) change(change func(*config.App) error) {
	m.T.Helper()
	if _, err := m.Config.UpdateMove(m.T.Context(), app, change); err != nil {
		m.T.Fatal(err)
	}
}

func (m *moving) next() {
	m.T.Helper()
	m.change(func(a *config.App) error { a.AdvanceMove(); return nil })
}

// users calls do for users who have a row in a region, at most most.
func (m *moving) users(region string, most int, do func(user string) error) {
	m.T.Helper()
	var users []string
	err := m.stores[region].Users.ScanUserKeys(m.T.Context(), app, "", "", func(user string) error { users = append(users, user); return nil })
	for _, user := range users[:min(most, len(users))] {
		err = errors.Join(err, do(user))
	}
	must.Succeed(m.T, err)
}

// mark and move take the steps of a mover for a user.
func (m *moving) mark(user string) error { return m.engine.MarkUser(m.T.Context(), m.app(), user) }

func (m *moving) move(user string) error {
	_, err := m.engine.MoveUser(m.T.Context(), m.app(), user, m.Now.AddDate(1, 0, 0))
	return err
}

// updated changes users, new ones too, and checks the answers before and behind the order of a
// delta, and whether it added one.
func (m *moving) updated(step string, n int, want bool) {
	m.T.Helper()
	for i := range 6 {
		m.apply(m.seen(token(7*i+n), fmt.Sprint("c", n%4), time.Hour), m.seen(fmt.Sprint("new", n), "c1", time.Duration(i)*time.Hour))
	}
	m.wantExact(step + ", changed")
	m.Now = m.Now.Add(time.Minute)
	before := m.manifest().Version
	ordered, err := m.runner.Order(m.T.Context(), app)
	if err != nil || ordered != want {
		m.T.Errorf("%s: an update is ordered: %v, %v; want %v", step, ordered, err, want)
	}
	for _, task := range m.beside { // a build that one of them starts waits
		if _, err := m.deliver(m.T.Context(), task); err != nil {
			m.T.Fatal(err)
		}
	}
	m.beside = nil
	if added := m.manifest().Version > before; added != want {
		m.T.Errorf("%s: a delta was added: %v, want %v\n%s", step, added, want, m.describe())
	}
	m.wantExact(step + ", updated")
}

// While an app moves, deltas go on, whichever region owns the users, but while the rows of
// segments are copied, and until every process uses those of the new region.
func TestDeltasWhileAnAppMoves(t *testing.T) {
	m := newMoving(t)
	m.fill(60)
	m.build()
	m.run()
	m.wantExact("built")
	m.change(func(a *config.App) error { return a.StartMove("move", "us", m.Now) })
	m.users("eu", 100, m.mark)
	m.updated("mark", 1, true)
	m.next()
	m.users("eu", 30, m.move)
	m.updated("half of the users have moved", 2, true)
	m.users("eu", 100, m.move)
	if _, err := m.engine.Delete(t.Context(), app, token(11)); err != nil {
		t.Fatal(err)
	}
	m.updated("all users have moved", 3, true)
	m.next()
	m.updated("switch", 4, false)
	for _, table := range []string{store.TableSegments, store.TableChanges} {
		err := m.stores["us"].Rows.CopyRows(t.Context(), m.stores["eu"], "eu", store.AppRows{App: app, Table: table}, func(int, string) error { return nil })
		must.Succeed(t, err)
	}
	clock := m.Clock
	m.Clock = time.Now
	m.next()
	m.updated("the drop begins", 5, false)
	m.Clock = clock // every process has read the phase
	m.updated("drop", 6, true)
	for m.app().Moving() {
		m.next()
		m.updated("behind the drop", 8, true)
	}
	m.Drain()
	m.wantExact("built again")
}

// An app that goes back keeps its lists where they have been, and its deltas go on.
func TestDeltasOnTheWayBack(t *testing.T) {
	m := newMoving(t)
	m.fill(30)
	m.build()
	m.run()
	m.change(func(a *config.App) error { return a.StartMove("move", "us", m.Now) })
	m.users("eu", 100, m.mark)
	m.next()
	m.users("eu", 100, m.move)
	m.next()
	m.change((*config.App).UndoMove)
	for n := 0; m.app().Moving(); n++ {
		m.updated("back, phase "+string(m.app().Move.Phase), n, true)
		if m.app().Move.Phase == config.MoveUsers {
			m.users("us", 100, m.move)
		}
		m.next()
	}
}
