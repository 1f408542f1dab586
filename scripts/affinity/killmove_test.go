package main

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/local/operator"
	"github.com/affinityengine/affinity/shared/local/stack"
)

// movingKillsVariable is how often TestKilledWhileMoving kills the engine. It is a campaign of
// its own, because the phases of a move wait.
const movingKillsVariable = "AFFINITY_MOVING_KILLS"

// campaign returns how often a test kills the engine, by its variable. Without one the test is skipped.
func campaign(t *testing.T, variable, each string) int {
	t.Helper()
	kills, err := strconv.Atoi(os.Getenv(variable))
	if err != nil || kills < 1 {
		t.Skipf("a campaign of its own, about %s a kill: %s=20 go test ./scripts/affinity -run %s -v -timeout 1h", each, variable, t.Name())
	}
	return kills
}

// TestKilledWhileMoving kills an engine with a data folder at random moments of moves of an
// app, under load, and starts it again. The moves go on by themselves; whatever was acknowledged
// is there, and each event counts once.
func TestKilledWhileMoving(t *testing.T) {
	kills := campaign(t, movingKillsVariable, "ten seconds")
	seed := uint64(time.Now().UnixNano())
	t.Log("seed", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	token := operator.NewToken()
	environment := append(os.Environ(), asTool+"=1", operator.Variable+"="+token, "BIGTABLE_EMULATOR_HOST=", "PUBSUB_EMULATOR_HOST=", "FIRESTORE_EMULATOR_HOST=")
	data := filepath.Join(t.TempDir(), "data")
	start := func() (*process, *client.Client, *operator.Client) {
		p := startProcess(t, environment, "--data", data, "--regions", "eu,us", "--request-limit", "2s")
		c, err := client.New(client.Config{URL: p.url, App: "demo", Key: stack.DemoKey, Retry: client.NoRetry})
		must(t, err)
		moves, err := operator.NewClient(p.url, token)
		must(t, err)
		return p, c, moves
	}
	engine, c, moves := start()
	acked := newAcknowledged(100 * time.Millisecond)
	must(t, c.Strategies().SetJSON(t.Context(), acked.strategy(1), client.SetOptions{}))
	to, done, phases := "us", 0, map[string]int{}
	for killed := 0; killed < kills || done == 0; {
		status, err := moves.Moving(t.Context(), "demo")
		if err == nil && status.Move.Phase == "" {
			if status.Region == to {
				done++
				to = map[string]string{"eu": "us", "us": "eu"}[to]
			}
			_, err = moves.Move(t.Context(), "demo", to)
		}
		must(t, err)
		ctx, stop := context.WithCancel(t.Context())
		var load sync.WaitGroup
		for w := range killWorkers {
			load.Go(func() { acked.load(ctx, c, w) })
		}
		<-time.After(time.Duration(20+random.IntN(15_000)) * time.Millisecond)
		if status, err = moves.Moving(t.Context(), "demo"); err != nil {
			t.Fatal(err)
		}
		if killed < kills {
			killed++
			phases[string(status.Move.Phase)]++
			engine.kill(t)
			engine, c, moves = start()
		}
		stop()
		load.Wait()
		began := time.Now()
		if err := acked.check(t, c); err != nil {
			t.Fatalf("in phase %s: %v", status.Move.Phase, err)
		}
		t.Logf("phase %s, all was there after %v", status.Move.Phase, time.Since(began).Round(time.Millisecond))
	}
	t.Logf("%d moves ended, kills by phase %v, %d events, %d objects and %d strategies were acknowledged", done, phases, acked.events, len(acked.objects), acked.score)
}
