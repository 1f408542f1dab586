package profile_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/profile/dictionary"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/store"
)

// terms makes a dictionary of a kind of events and of values of color.
func terms(generation int64, colors ...string) []byte {
	v := history.NewVocabulary()
	for user := range 3 {
		for _, color := range colors {
			v.Add(fmt.Sprint("user", user), affinity.Event{Type: event.Conversion, Name: "Bought", Counts: []affinity.Count{{Facet: "color", Value: color, N: 1}}})
		}
	}
	return v.Dictionary(generation, history.Limits{}).AppendBinary(nil)
}

// dictionary stores a dictionary that every new process uses.
func (b *fixture) dictionary(colors ...string) (generation int64) {
	b.t.Helper()
	generation = dictionary.Generation(time.UnixMilli(b.clock))
	if created, err := b.store.Dictionaries.CreateDictionary(ctx, appID, generation, terms(generation, colors...)); !created || err != nil {
		b.t.Fatal(created, err)
	}
	b.eng = b.engine()
	return generation
}

// block returns the first block of the user u.
func (s *harness) block() (value []byte) {
	s.t.Helper()
	names := []store.BlockName{{User: "u", ID: s.manifest().Blocks[0].ID}}
	err := s.store.Histories.ReadBlocks(ctx, appID, names, func(_ store.BlockName, v []byte) error { value = v; return nil })
	if err != nil || value == nil {
		s.t.Fatalf("block %q, %v", value, err)
	}
	return value
}

// colored is an event of a color so many hours after this time yesterday.
func (s *harness) colored(hours int64, color string) store.LogEvent {
	e := logEvent("u", s.clock-day+hours*hour, "Bought", event.Conversion, affinity.Count{Facet: "color", Value: color, N: 1})
	e.Index, e.ObjectIDs = "products", []string{"object"}
	return e
}

// blockReaders are the ways in which processes read blocks.
var blockReaders = map[string]func(*harness, *profile.Engine) error{
	"read": func(s *harness, e *profile.Engine) error { _, err := e.Read(ctx, s.app(), "u", 0); return err },
	"rank": func(s *harness, e *profile.Engine) error { _, err := e.ReadRanking(ctx, s.app(), "u"); return err },
	"refresh": func(s *harness, e *profile.Engine) error {
		_, err := e.Apply(ctx, s.app(), []store.LogEvent{s.colored(5, "Red")})
		return err
	},
	"recompute": func(s *harness, e *profile.Engine) error {
		_, err := e.Recompute(ctx, s.app(), store.Range{}, profile.RecomputeOptions{}, func(profile.Progress) error { return nil })
		return err
	},
	"sweep": func(s *harness, e *profile.Engine) error {
		compiled, counted := affinity.Compile(plain), 0
		o := profile.SweepOptions{Strategy: compiled, Counts: true}
		_, err := e.SweepObjects(ctx, s.app(), store.Range{}, o, func(_ string, ev affinity.Event) error {
			if ev.Name != "Bought" || ev.ObjectIDs[0] != "object" {
				s.t.Errorf("swept %+v", ev)
			}
			counted++
			return nil
		}, func(profile.SweepProgress) error { return nil })
		if err == nil && counted != 2 {
			s.t.Errorf("swept %d events, want two", counted)
		}
		return err
	},
	"fold": func(s *harness, e *profile.Engine) error { _, err := e.Fold(ctx, s.app(), "u"); return err },
}

// Every reader reads blocks that name a dictionary: of this generation or an earlier one.
// If the dictionary is lost or damaged, it reads the log, and the next fold packs the
// range again. If Bigtable fails, the reading fails and the block stays.
func TestReadersOfDictionaries(t *testing.T) {
	var failing atomic.Bool
	fault := func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		s, err := open(ctx, desc, cc, method, opts...)
		return faultyDictionaries{s, &failing}, err
	}
	s := &harness{newFixtureOn(t, storetest.NewWithClient, 90, plain, grpc.WithChainStreamInterceptor(fault))}
	for name, read := range blockReaders {
		for what, spoil := range map[string]func(generation int64){
			"whole": func(int64) {},
			"newer": func(int64) { s.clock += hour; s.dictionary("Violet", "Red") },
			"lost": func(generation int64) {
				must.Succeed(t, s.store.Dictionaries.DeleteDictionary(ctx, appID, generation))
			},
			"damaged": func(generation int64) { s.spoilDictionary(generation, []byte("no dictionary")) },
			"other":   func(generation int64) { s.spoilDictionary(generation, terms(generation, "Green")) },
			"fault":   func(int64) { failing.Store(true) },
		} {
			t.Run(name+" "+what, func(t *testing.T) {
				s.t = t
				s.clear()
				s.clock += 2 * hour
				generation := s.dictionary("Red", "Blue")
				s.apply(s.colored(1, "Red"), s.colored(2, "Blue"))
				s.fold()
				if value := s.block(); bytes.Contains(value, []byte("Bought")) || bytes.Contains(value, []byte("Blue")) {
					t.Fatalf("the block holds texts of the dictionary: %q", value)
				}
				s.setStrategy(plainer)
				s.setStrategy(plain)
				want := 1
				if name == "fold" { // merges the block with one more event
					s.apply(s.colored(5, "Red"))
				}
				if name == "fold" || name == "refresh" {
					want = 2
				}
				spoil(generation)
				e := s.neverFolding()
				err := read(s, e)
				if failing.Swap(false) {
					s.wantFault(name, e, err)
				} else if err != nil {
					t.Errorf("error %v", err)
				}
				s.eng = s.engine()
				s.expect(want)
				s.fold2()
				s.expect(want)
			})
		}
	}
}

// wantFault checks what a reader did while dictionaries could not be read.
func (s *harness) wantFault(name string, e *profile.Engine, err error) {
	s.t.Helper()
	if !strings.Contains(fmt.Sprint(err), "refused by the test") {
		s.t.Errorf("error %v, want that of the fault", err)
	}
	if n := e.Counters().CorruptBlocks.Load(); n != 0 || len(s.manifest().Blocks) != 1 {
		s.t.Errorf("%s: %d damaged blocks, manifest %+v; want that the block stays", name, n, s.manifest())
	}
}

// fold2 folds what is unfolded, if anything is.
func (s *harness) fold2() {
	s.t.Helper()
	if _, err := s.neverFolding().Fold(ctx, s.app(), "u"); err != nil {
		s.t.Fatal(err)
	}
}

func (s *harness) spoilDictionary(generation int64, value []byte) {
	s.t.Helper()
	must.Succeed(s.t, s.store.Dictionaries.DeleteDictionary(ctx, appID, generation))
	if created, err := s.store.Dictionaries.CreateDictionary(ctx, appID, generation, value); !created || err != nil {
		s.t.Fatal(created, err)
	}
}

// faultyDictionaries fails reads of the table of dictionaries.
type faultyDictionaries struct {
	grpc.ClientStream
	failing *atomic.Bool
}

func (f faultyDictionaries) SendMsg(m any) error {
	r, ok := m.(*btpb.ReadRowsRequest)
	if ok && f.failing.Load() && strings.HasSuffix(r.GetTableName(), "/"+store.TableDictionaries) {
		return status.Error(codes.PermissionDenied, "refused by the test")
	}
	return f.ClientStream.SendMsg(m)
}

// An engine makes a dictionary of what its users share, and uses it from then on.
func TestRenewDictionary(t *testing.T) {
	s := newHarness(t, storetest.NewWithClient)
	var events []store.LogEvent
	for i := range 60 {
		user := fmt.Sprintf("user%02d", i)
		for j := range int64(4) {
			events = append(events, logEvent(user, s.clock-day-j*hour, "Bought something nice", event.Conversion,
				affinity.Count{Facet: "color", Value: "some shade of red", N: 1}, affinity.Count{Facet: "secret", Value: "of " + user, N: 1}))
		}
	}
	for i := range 3 { // the app may no longer know anything of them
		events = append(events, bought(fmt.Sprint("gone", i), s.clock-day))
	}
	s.apply(append(events, s.at(1))...)
	for i := range 3 {
		s.delete(fmt.Sprint("gone", i))
	}
	s.eng.RenewDictionary(ctx, s.app(), []string{"", "user20", "user40"})
	generations, err := s.store.Dictionaries.Dictionaries(ctx, appID, 9)
	if err != nil || len(generations) != 1 {
		t.Fatalf("dictionaries %v, %v", generations, err)
	}
	if _, err := s.eng.Fold(ctx, s.app(), "user33"); err != nil {
		t.Fatal(err)
	}
	if err := s.store.Histories.ScanBlocks(ctx, appID, "", "", func(_ store.BlockName, value []byte) error {
		if bytes.Contains(value, []byte("something nice")) {
			t.Error("a block has the text")
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	value, err := s.store.Dictionaries.ReadDictionary(ctx, appID, generations[0])
	if err != nil || !bytes.Contains(value, []byte("shade of red")) || bytes.Contains(value, []byte("of user")) || bytes.Contains(value, []byte("Red")) {
		t.Errorf("dictionary %q, %v", value, err)
	}
	if again, err := s.store.Dictionaries.Dictionaries(ctx, appID, 9); err != nil || len(again) != 1 {
		t.Errorf("dictionaries %v, %v", again, err)
	}
}

// changeDictionaries stores the next dictionary of the simulation's app, or loses or
// damages one.
func (w *simulation) changeDictionaries() {
	if !w.terms {
		return
	}
	if w.generation == 0 || rapid.Bool().Draw(w.t, "another dictionary") {
		w.generation++
		w.storeDictionary(w.generation, value(0, int(w.generation)%2), value(1, 0))
		return
	}
	generation := rapid.Int64Range(1, w.generation).Draw(w.t, "dictionary")
	must.Succeed(w.t, w.store.Dictionaries.DeleteDictionary(ctx, w.appID, generation))
	if !rapid.Bool().Draw(w.t, "lost") {
		w.storeDictionary(generation, "c9.9", "c8.8")
	}
}

func (w *simulation) storeDictionary(generation int64, colors ...string) {
	if _, err := w.store.Dictionaries.CreateDictionary(ctx, w.appID, generation, terms(generation, colors...)); err != nil {
		w.t.Fatal(err)
	}
}
