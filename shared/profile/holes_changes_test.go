package profile_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/store"
)

// packed is what a process has packed of a user: the score, and its cut.
type packed struct {
	cut   store.ChangeSlot
	score float64
}

// pack packs the profile of the user.
func (s *harness) pack() packed {
	s.t.Helper()
	return packed{store.CutAt(time.UnixMilli(s.clock)), red(s.read("u"))}
}

// expectFrom checks that a query over the packed profile counts so many events. It reads
// the profile again if the user is listed since the cut.
func (s *harness) expectFrom(p packed, events int, when string) {
	s.t.Helper()
	listed, _, err := s.store.Changes.List(ctx, appID, p.cut, 0)
	must.Succeed(s.t, err)
	if _, ok := listed["u"]; ok {
		p.score = red(s.read("u"))
	}
	if want := 30 * float64(events); p.score != want {
		s.t.Errorf("%s: %v from the packed profile, want %v; listed: %v", when, p.score, want, listed)
	}
}

func (s *harness) setSegments() {
	s.t.Helper()
	must.Succeed(s.t, s.apps.SetSegments(ctx, appID, true))
}

// pass advances the clock, which a process that has been stopped at a request may read.
func (s *harness) pass(ms int64) { atomic.AddInt64(&s.clock, ms) }

// packAnywhere packs the profile of the user before each request of a process in turn, a
// minute after the request before it.
func packAnywhere(t *testing.T, open opener, want int, prepare func(*harness), start func(*harness) *actor) {
	s := newHarness(t, open)
	s.setSegments()
	for requests, ended := 0, false; !ended; requests++ {
		s.clear()
		prepare(s)
		s.pass(60 * second)
		a := start(s)
		for range requests {
			if ended = a.before == ""; ended {
				break
			}
			s.step(a, 1)
		}
		s.pass(60 * second)
		p := s.pack()
		s.finish(a)
		s.expectFrom(p, want, "packed in between")
	}
}

// The write of the profile takes a minute. The older profile is packed in that minute, and
// the first entry lies before the cut.
func TestSlowWriteIsListedAgain(t *testing.T) {
	onEveryBigtable(t, func(t *testing.T, open opener) {
		packAnywhere(t, open, 2, func(s *harness) { s.apply(s.at(1)) }, func(s *harness) *actor {
			return s.startApply(s.neverFolding(), s.at(2))
		})
	})
}

func TestSlowAdditionIsListedAgain(t *testing.T) {
	onEveryBigtable(t, func(t *testing.T, open opener) {
		packAnywhere(t, open, 2, func(s *harness) { s.apply(s.at(1)) }, func(s *harness) *actor {
			return s.startApply(s.adding(), s.at(2))
		})
	})
}

// An entry takes a minute to arrive, twice. A process that has packed the older profile has
// read the list in each of these minutes, without the entry, and asks for later slots only.
func TestSlowEntryIsListedAgain(t *testing.T) {
	onEveryHarness(t, func(t *testing.T, s *harness) {
		s.setSegments()
		s.apply(s.at(1))
		s.pass(60 * second)
		a := s.startApply(s.neverFolding(), s.at(2))
		s.stepTo(a, entryRequest)
		s.pass(60 * second)
		p := s.pack()
		s.step(a, 1)
		s.stepTo(a, entryRequest)
		s.pass(60 * second)
		p.cut = store.CutAt(time.UnixMilli(s.clock))
		s.finish(a)
		s.expectFrom(p, 2, "the list was read before the entries arrived")
	})
}

// A late event counts from the time on at which its range is uncovered.
func TestLateEventIsListedAfterUncovering(t *testing.T) {
	onEveryBigtable(t, func(t *testing.T, open opener) {
		prepare := func(s *harness) {
			s.applyFolded()
			s.setStrategy(plainer)
			s.setStrategy(plain) // so that the read that packs computes
		}
		packAnywhere(t, open, 3, prepare, func(s *harness) *actor { return s.startApply(s.neverFolding(), s.at(3)) })
	})
}

func TestMarksAreListed(t *testing.T) {
	marks := map[string]func(*profile.Engine, context.Context, config.App, []store.LogEvent) error{
		"import": func(e *profile.Engine, ctx context.Context, app config.App, events []store.LogEvent) error {
			_, err := e.Import(ctx, app, events)
			return err
		},
		"write window": func(e *profile.Engine, ctx context.Context, app config.App, events []store.LogEvent) error {
			app.Limits.WriteWindowMs = 2000
			e.SetLater(func(context.Context, config.App, []string) {})
			_, err := e.Apply(ctx, app, events)
			return err
		},
		"abandon": func(e *profile.Engine, ctx context.Context, app config.App, events []store.LogEvent) error {
			return e.Abandon(ctx, app, events)
		},
	}
	for name, mark := range marks {
		t.Run(name, func(t *testing.T) {
			onEveryBigtable(t, func(t *testing.T, open opener) {
				prepare := func(s *harness) {
					s.apply(s.at(1))
					if name == "abandon" { // what failed has written the log
						must.Succeed(t, s.store.Events.Log(appID, s.app().Log).Append(ctx, []store.LogEvent{s.at(2)}))
					}
				}
				packAnywhere(t, open, 2, prepare, func(s *harness) *actor {
					app, e, events := s.app(), s.neverFolding(), []store.LogEvent{s.at(2)}
					return s.start(name, func(ctx context.Context) error { return mark(e, ctx, app, events) })
				})
			})
		})
	}
}

func TestDeletionIsListed(t *testing.T) {
	onEveryBigtable(t, func(t *testing.T, open opener) {
		packAnywhere(t, open, 0, func(s *harness) { s.apply(s.at(1)) }, func(s *harness) *actor {
			return s.startDelete(s.neverFolding())
		})
	})
}

func TestOptOutIsListed(t *testing.T) {
	onEveryBigtable(t, func(t *testing.T, open opener) {
		packAnywhere(t, open, 0, func(s *harness) { s.apply(s.at(1)) }, func(s *harness) *actor {
			e := s.neverFolding()
			return s.start("opt out", func(ctx context.Context) error {
				_, err := e.OptOut(ctx, appID, "u")
				return err
			})
		})
	})
}

// An entry that fails fails its message. The process does not take it for written.
func TestFailedEntryFailsItsMessage(t *testing.T) {
	onEveryHarness(t, func(t *testing.T, s *harness) {
		s.setSegments()
		s.apply(s.at(1))
		s.pass(60 * second)
		p, e := s.pack(), s.neverFolding()
		a := s.startApply(e, s.at(2))
		s.stepTo(a, entryRequest)
		for v := crash; a.before != ""; v = proceed { // the entry alone fails
			s.answer(a, v)
		}
		if a.err == nil {
			t.Error("the message is acknowledged, and its user is not listed")
		}
		s.applyTo(e, s.at(2))
		s.expectFrom(p, 2, "delivered again")
	})
}

// A process leaves out an entry only if it has listed the user in the same slot.
func TestEachSlotIsListed(t *testing.T) {
	onEveryHarness(t, func(t *testing.T, s *harness) {
		s.setSegments()
		for hours := range int64(3) {
			p := s.pack()
			s.clock += hours * second
			s.apply(s.at(hours))
			s.expectFrom(p, int(hours)+1, "another refresh")
			s.pass(60 * second)
		}
	})
}

// The clock of the writer is 10 s behind, and its write takes another 5 s.
func TestCutAllowsForClocks(t *testing.T) {
	onEveryBigtable(t, func(t *testing.T, open opener) {
		for offset := int64(0); offset < 10; offset++ { // of the slot
			s := newHarness(t, open)
			s.setSegments()
			s.apply(s.at(1))
			s.clock += 60*second + offset*second
			behind := profile.New(s.store, s.apps, config.NewCached(s.apps, 0),
				func() time.Time { return time.UnixMilli(s.clock - 10*second) }, slog.New(slog.DiscardHandler))
			a := s.startApply(behind, s.at(2))
			s.stepToWrite(a)
			s.clock += 5 * second
			p := s.pack()
			s.finish(a)
			s.expectFrom(p, 2, "a writer whose clock is behind")
		}
	})
}
