package profile_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/store"
)

// fatTo returns an event that gives a user more values than the memory of all holds.
func fatTo(user string, ms int64) store.LogEvent {
	e := bought(user, ms)
	for i := range 20 {
		e.Counts = append(e.Counts, affinity.Count{Facet: "color", Value: fmt.Sprint("shade ", i), N: 1})
	}
	return e
}

// newAlone returns an engine whose memory holds 5 values of a user.
func newAlone(t *testing.T) *fixture {
	b := newFixture(t, 90, plain)
	b.eng.SetMemory(5)
	return b
}

// While another user is computed alone, the users of a message, a read and a
// recompute do not wait for the one who has very many values. After a while this one
// fails in a read, and a message leaves a marker.
func TestWaitingToBeAloneFailsAlone(t *testing.T) {
	b := newAlone(t)
	b.eng.SetPatience(0)
	leave := b.eng.ComputeAlone()
	b.apply(bought("u0", b.clock), fatTo("fat", b.clock), bought("u1", b.clock))
	if _, err := b.eng.Read(ctx, b.app(), "fat", 0); err == nil || !strings.Contains(err.Error(), "fat") {
		t.Errorf("read: %v, want an error that names the user", err)
	}
	for _, u := range []string{"u0", "u1"} {
		if r := b.read(u); red(r) != 30 || !r.Stored {
			t.Errorf("%s: %v (stored: %v), want 30", u, red(r), r.Stored)
		}
	}
	b.setStrategy(plainer)
	b.setStrategy(plain)
	faulty := profile.Faulty{}
	results, err := b.eng.ReadMany(ctx, b.app(), []string{"u0", "fat", "u1"}, 0)
	if !errors.As(err, &faulty) || len(faulty) != 1 || faulty["fat"] == nil || len(results) != 2 || red(results["u1"]) != 30 {
		t.Errorf("read many: %v, %d results", err, len(results))
	}
	p, err := b.eng.Recompute(ctx, b.app(), store.Range{}, profile.RecomputeOptions{}, func(profile.Progress) error { return nil })
	if err != nil || p.Faulty != 1 || p.Written != 2 {
		t.Errorf("recompute: %+v, %v; want two profiles written", p, err)
	}
	leave()
	if r := b.read("fat"); red(r) != 30 || r.Total != 21 {
		t.Errorf("after the wait: %v of %d values, want 30 of 21", red(r), r.Total)
	}
}

// A message of ordinary users is acknowledged while a user of the same refresh waits
// to be computed alone.
func TestNobodyWaitsForLargeUser(t *testing.T) {
	b := newAlone(t)
	leave := b.eng.ComputeAlone()
	done := make(chan error)
	go func() {
		_, err := b.eng.Apply(ctx, b.app(), []store.LogEvent{bought("u0", b.clock), fatTo("fat", b.clock)})
		done <- err
	}()
	b.eng.AwaitFlight(appID + ",fat")
	limited, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if _, err := b.eng.Apply(limited, b.app(), []store.LogEvent{bought("u0", b.clock-1)}); err != nil {
		t.Fatalf("another message of u0: %v", err)
	}
	if r := b.read("u0"); red(r) != 60 || !r.Stored {
		t.Errorf("u0: %v (stored: %v), want 60", red(r), r.Stored)
	}
	leave()
	must.Succeed(t, <-done)
	if r := b.read("fat"); red(r) != 30 || !r.Stored {
		t.Errorf("fat: %v (stored: %v), want 30", red(r), r.Stored)
	}
}

// A computation in passes finds that a block is lost, and draws another ticket. An event
// that another process has counted before that ticket is in the profile, although it is
// later than the clock of this one.
func TestAloneCountsEventsBeforeItsTicket(t *testing.T) {
	for requests, ended := 0, false; !ended; requests++ {
		s := newHarness(t, storetest.NewWithClient)
		s.apply(fatTo("u", s.clock-day+hour), fatTo("u", s.clock-day+5*hour))
		s.fold()
		block := s.manifest().Blocks[0].ID
		slow := s.neverFolding()
		slow.SetMemory(5)
		a := s.startApply(slow, s.at(6))
		for range requests {
			if a.before != "" {
				s.step(a, 1)
			}
		}
		ended = a.before == ""
		must.Succeed(t, s.store.Histories.DeleteBlocks(ctx, appID, "u", []history.BlockID{block}))
		ahead := bought("u", s.clock+30*second)
		if _, err := s.eng.Import(ctx, s.app(), []store.LogEvent{ahead}); err != nil {
			t.Fatal(err)
		}
		s.finish(a)
		if r := s.read("u"); red(r) != 120 {
			t.Errorf("after %d requests: %v (stored: %v), want 120", requests, red(r), r.Stored)
		}
	}
}
