package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/store"
)

// residentKillsVariable is how often TestKilledWhileUsersMove kills the engine.
const residentKillsVariable = "AFFINITY_RESIDENT_KILLS"

// TestKilledWhileUsersMove kills an engine with a data folder at random moments, under load, while users move between
// two regions, and starts it again. Whatever was acknowledged is there, and each event counts once. In the end no region
// holds anything of a user who lives in the other one.
func TestKilledWhileUsersMove(t *testing.T) {
	kills := campaign(t, residentKillsVariable, "three seconds")
	data := filepath.Join(t.TempDir(), "data")
	residing(t, data, func(s *stack.Stack) {
		for _, mode := range []config.ResidencyMode{config.ResidencyPrepare, config.ResidencyOn} {
			_, err := s.Backends.Config.SetResidency(t.Context(), "demo", config.Residency{Mode: mode, Regions: []string{"eu", "us"}}, 0)
			must(t, err)
		}
	})
	environment := append(os.Environ(), asTool+"=1", "BIGTABLE_EMULATOR_HOST=", "PUBSUB_EMULATOR_HOST=", "FIRESTORE_EMULATOR_HOST=")
	start := func() (*process, *client.Client) {
		p := startProcess(t, environment, "--data", data, "--regions", "eu,us", "--request-limit", "2s")
		c, err := client.New(client.Config{URL: p.url, App: "demo", Key: stack.DemoKey, Retry: client.NoRetry})
		must(t, err)
		return p, c
	}
	engine, c := start()
	acked := newAcknowledged(20 * time.Millisecond)
	must(t, c.Strategies().SetJSON(t.Context(), acked.strategy(1), client.SetOptions{}))
	moved := 0
	for range kills {
		ctx, stop := context.WithCancel(t.Context())
		var load sync.WaitGroup
		for w := range killWorkers {
			load.Go(func() { acked.load(ctx, c, w) })
		}
		load.Go(func() {
			for ctx.Err() == nil {
				user := fmt.Sprintf("user-%d-%d", 2+rand.IntN(killWorkers-2), rand.IntN(40))
				if at, err := c.Profiles().SetRegion(ctx, user, []string{"eu", "us"}[rand.IntN(2)]); err == nil && at.MovingTo == "" {
					moved++
				}
			}
		})
		<-time.After(time.Duration(20+rand.IntN(2500)) * time.Millisecond)
		engine.kill(t)
		stop()
		load.Wait()
		engine, c = start()
		if err := acked.check(t, c); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d kills, %d moves, %d events were acknowledged", kills, moved, acked.events)
	engine.kill(t)
	residing(t, data, func(s *stack.Stack) { apart(t, s, acked) })
}

// residing opens a data folder in this process.
func residing(t *testing.T, data string, do func(*stack.Stack)) {
	t.Helper()
	s, err := stack.Start(t.Context(), stack.Options{Data: data, Regions: []string{"eu", "us"}, ConfigTTL: time.Millisecond,
		Apps: []stack.App{{ID: "demo", Key: stack.DemoKey, Region: "eu"}}})
	must(t, err)
	do(s)
	must(t, s.Close())
}

// apart lets the job of the night clean, and looks for what lies elsewhere.
func apart(t *testing.T, s *stack.Stack, acked *acknowledged) {
	t.Helper()
	s.Backends.Residents.SetSettle(0)
	for night := range 3 {
		must(t, s.Backends.Residents.Nightly(t.Context(), "demo", job.Night{Date: fmt.Sprintf("2026-11-%d", 10+night)}))
		for {
			unfinished, err := s.Backends.Residents.Jobs.Unfinished(t.Context(), "demo")
			must(t, err)
			if len(unfinished) == 0 {
				break
			}
			<-time.After(10 * time.Millisecond)
		}
	}
	app, err := s.Backends.Config.App(t.Context(), "demo")
	must(t, err)
	living := map[string]int{}
	for user := range acked.in {
		lives, err := profile.ResidentsOf(s.Backends.Profiles).Region(t.Context(), app, user)
		must(t, err)
		living[lives]++
		other := s.Backends.Store.In(map[string]string{"eu": "us", "us": "eu"}[lives])
		row, err := other.Users.ReadPrimary(t.Context(), "demo", user, store.UserState)
		must(t, err)
		empty, err := other.Events.LogIsEmpty(t.Context(), "demo", user)
		must(t, err)
		if row.Exists || !empty {
			t.Errorf("%s lives in %s; the other region has the row %+v, and an empty log: %v", user, lives, row, empty)
		}
	}
	t.Logf("users live in %v", living)
}
