package profile_test

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc"
	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/race"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/store"
)

// strongCampaign makes the model test of strong reads longer: go test ./shared/profile
// -run TestStrongModel -strong-campaign 100000
var strongCampaign = flag.Int("strong-campaign", race.Or(100, 20), "how many random histories TestStrongModel runs")

// strongSimulation is a random history of an app whose reads are strong, with a replica
// that lags.
type strongSimulation struct {
	*simulation
	server  *storetest.Replicated
	lag     string
	current func(primary, replica store.User) (store.User, bool) // nil: the engine's own
	reads   []*strongRead
	figures *strongFigures
}

// strongFigures counts what the reads of many histories met.
type strongFigures struct{ histories, reads, replica, invalid int }

// strongRead is a read under way, with what the test knew when it began.
type strongRead struct {
	kind                string
	acked               map[int][]int64 // receipts of events
	deletedBy           affinity.Tombstone
	everOut, alwaysOut  event.Types // since then
	result              profile.Result
	ended, failed, none bool
}

// strongWorld is what all histories share.
type strongWorld struct {
	server  *storetest.Replicated
	store   *store.Store
	client  *bigtable.Client
	figures strongFigures
}

func newStrongWorld(t *testing.T) *strongWorld {
	w := &strongWorld{}
	w.server, w.store, w.client = storetest.NewReplicated(t, grpc.WithChainUnaryInterceptor(gateUnary), grpc.WithChainStreamInterceptor(gateStream))
	return w
}

// TestStrongModel checks that a strong read counts every event that was acknowledged
// before it began, and none that was deleted before, however far the replica lags.
func TestStrongModel(t *testing.T) {
	must.Succeed(t, flag.Set("rapid.checks", fmt.Sprint(*strongCampaign)))
	w := newStrongWorld(t)
	rapid.Check(t, func(t *rapid.T) { w.history(t, nil) })
	f := w.figures
	t.Logf("%d histories; %d strong reads beside other processes, and others between their steps; profiles of the replica: "+
		"%d could be served, %d could not", f.histories, f.reads, f.replica, f.invalid)
	if *strongCampaign >= 20 && (f.replica < f.histories/2 || f.invalid < f.histories/2) {
		t.Error("the histories are too much alike")
	}
}

func (w *strongWorld) history(t *rapid.T, current func(primary, replica store.User) (store.User, bool)) {
	w.figures.histories++
	s := &strongSimulation{
		simulation: simulate(t, w.store, w.client, fmt.Sprint("strong", w.figures.histories), false),
		server:     w.server, current: current, figures: &w.figures,
		lag: rapid.SampledFrom([]string{"none", "some", "long", "long"}).Draw(t, "lag"),
	}
	defer s.end()
	must.Succeed(t, s.apps.SetConsistency(ctx, s.appID, config.Strong))
	for range rapid.IntRange(5, 60).Draw(t, "steps") {
		s.replicate()
		switch kind := rapid.IntRange(0, 13).Draw(t, "kind of step"); {
		case kind < 2:
			s.strongRead()
		case kind < 8 && len(s.working) > 0:
			s.proceed(rapid.IntRange(0, len(s.working)-1).Draw(t, "actor"))
		case kind < 9:
			s.settleAll()
		case kind < 11:
			s.message()
		default:
			s.step()
		}
		s.observe()
	}
	for range 2 { // at rest, and caught up
		s.settleAll()
		s.strongRead()
		s.settleAll()
		s.check("at rest")
		s.catchUp()
	}
}

// message starts a process on a message of some events, or of one that has just happened:
// a deletion covers those of before.
func (s *strongSimulation) message() {
	events := rapid.SliceOfNDistinct(rapid.IntRange(0, len(s.events)-1), 1, 3, rapid.ID[int]).Draw(s.t, "events")
	if rapid.IntRange(0, 2).Draw(s.t, "new") > 0 {
		s.clock.Add(rapid.Int64Range(1, 2*minute).Draw(s.t, "passes"))
		e := logEvent("u", s.clock.Load()-rapid.SampledFrom([]int64{0, 0, 1, second, hour}).Draw(s.t, "ago"), "Bought", event.Conversion)
		e.ID, e.Index, e.ObjectIDs = fmt.Sprintf("id%09d", len(s.events)), "products", []string{fmt.Sprint("object", len(s.events))}
		events, s.events = []int{len(s.events)}, append(s.events, e)
	}
	s.deliver(message{events: events, received: s.clock.Load() + s.skew()}, rapid.IntRange(0, 5).Draw(s.t, "import") == 0)
}

// proceed lets a process make its next request. Unlike advance it checks nothing, because
// that takes more requests than all processes make.
func (s *strongSimulation) proceed(i int) {
	a := s.working[i]
	a.verdict <- proceed
	if !s.arrived(a) {
		s.working = slices.Delete(s.working, i, i+1)
	}
}

// settleAll runs all processes to their end.
func (s *strongSimulation) settleAll() {
	for len(s.working) > 0 {
		s.replicate()
		s.proceed(rapid.IntRange(0, len(s.working)-1).Draw(s.t, "actor"))
		s.observe()
	}
}

// counting makes an engine count which profiles of the replica it could serve.
func (s *strongSimulation) counting(e *profile.Engine) *profile.Engine {
	current := s.current
	if current == nil {
		current = profile.Current
	}
	e.SetCurrent(func(primary, replica store.User) (store.User, bool) {
		row, ok := current(primary, replica)
		if ok {
			s.figures.replica++
		} else {
			s.figures.invalid++
		}
		return row, ok
	})
	return e
}

// end ends the processes that a failed history leaves, and what waits for the replica.
func (s *strongSimulation) end() {
	for _, a := range s.working {
		go func() {
			for {
				select {
				case a.verdict <- crash:
				case <-a.arrived:
				case <-a.ended:
					return
				}
			}
		}()
		<-a.ended
	}
	s.catchUp()
}

func (s *strongSimulation) catchUp() {
	must.Succeed(s.t, s.server.CatchUp(ctx))
}

// replicate lets changes of the user's row reach the replica.
func (s *strongSimulation) replicate() {
	n := 1000
	switch s.lag {
	case "some":
		n = rapid.IntRange(0, 2).Draw(s.t, "changes")
	case "long":
		n = rapid.SampledFrom([]int{0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 1000}).Draw(s.t, "changes")
	}
	for _, row := range s.server.Waiting() {
		if !strings.HasSuffix(row.Table, "/"+store.TableUsers) {
			continue
		}
		for range n {
			must.Succeed(s.t, s.server.Replicate(ctx, row))
		}
	}
}

// strongRead starts a strong read beside the other processes.
func (s *strongSimulation) strongRead() {
	r := &strongRead{kind: rapid.SampledFrom([]string{"many", "many", "many", "single", "ranking"}).Draw(s.t, "kind"), acked: map[int][]int64{}, deletedBy: s.deletedBy}
	for n, receipts := range s.receipts {
		for _, receipt := range receipts {
			if receipt.acked {
				r.acked[n] = append(r.acked[n], receipt.at)
			}
		}
	}
	r.everOut = s.row().OptedOut
	r.alwaysOut = r.everOut
	app, e := s.app(), s.counting(s.process())
	s.reads = append(s.reads, r)
	s.start("strong read", func(ctx context.Context) (err error) {
		defer func() { r.ended, r.failed = true, err != nil }()
		switch r.kind {
		case "single":
			r.result, err = e.Read(ctx, app, "u", 0)
		case "ranking":
			r.result, err = e.ReadRanking(ctx, app, "u")
		default:
			r.none = true
			err = e.ReadEach(ctx, app, []string{"u"}, 0, func(_ string, result profile.Result) error {
				r.result, r.none = result, false
				return nil
			})
		}
		return err
	})
}

func (s *strongSimulation) row() store.User {
	row, err := s.store.Users.ReadUser(ctx, s.appID, "u")
	must.Succeed(s.t, err)
	return row
}

// observe checks the reads that have ended.
func (s *strongSimulation) observe() {
	if len(s.reads) == 0 {
		return
	}
	row := s.row()
	var under []*strongRead
	for _, r := range s.reads {
		r.everOut, r.alwaysOut = r.everOut|row.OptedOut, r.alwaysOut&row.OptedOut
		switch {
		case !r.ended:
			under = append(under, r)
		case !r.failed:
			s.judge(r, row)
		}
	}
	s.reads = under
}

// judge checks the answer of a strong read.
func (s *strongSimulation) judge(r *strongRead, row store.User) {
	s.figures.reads++
	if r.none {
		s.t.Fatal("a strong read left out the user")
	}
	least := raised(s.maxDelete, row.Deleted())
	known := func(n int) bool {
		for _, at := range r.acked[n] {
			if !least.Covers(s.events[n].Time, at) {
				return !r.everOut.Has(s.events[n].Type)
			}
		}
		return false
	}
	possible := func(n int) bool { return s.alive(n, r.deletedBy, false) && !r.alwaysOut.Has(s.events[n].Type) }
	s.lawful("strong read, "+r.kind, r.result.App, r.result.Profile, known, possible)
}

// TestStrongModelFindsNaiveForms checks that the histories of TestStrongModel show what is
// wrong with simpler forms of a strong read.
func TestStrongModelFindsNaiveForms(t *testing.T) {
	race.Skip(t, "it tests the model of a test")
	const most = 2000 // histories
	for name, form := range map[string]struct {
		from    int // the search begins shortly before a history that finds the form
		current func(primary, replica store.User) (store.User, bool)
	}{
		"the replica's own counter": {215, func(_, replica store.User) (store.User, bool) {
			return replica, replica.Ticket > 0 && replica.ProfileTicket >= replica.Ticket
		}},
		"the ticket before": {55, func(primary, replica store.User) (store.User, bool) {
			primary.Ticket--
			return profile.Current(primary, replica)
		}},
		"any profile of the replica": {55, func(primary, replica store.User) (store.User, bool) {
			primary.HasProfile, primary.Profile, primary.Session = replica.HasProfile, replica.Profile, replica.Session
			return primary, primary.Ticket > 0
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newStrongWorld(t)
			for seed := form.from; seed < form.from+most; seed++ {
				if w.fails(seed, form.current) {
					t.Logf("found in history %d", seed)
					return
				}
			}
			t.Errorf("%d histories found nothing", most)
		})
	}
}

// fails reports whether a history fails.
func (w *strongWorld) fails(seed int, current func(primary, replica store.User) (store.User, bool)) bool {
	return rapid.Custom(func(t *rapid.T) (failed bool) {
		defer func() {
			_ = recover() // a history ends so that fails, or that rapid cannot draw
			failed = t.Failed()
		}()
		w.history(t, current)
		return false
	}).Example(seed)
}
