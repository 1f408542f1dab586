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
	"github.com/affinityengine/affinity/shared/local/power"
	"github.com/affinityengine/affinity/shared/local/stack"
)

// failuresVariable is how often TestPowerFails cuts the power. Default: 2.
const failuresVariable = "AFFINITY_POWER_FAILURES"

// TestPowerFails cuts the power of an engine that syncs, at random moments under load, and starts it again with
// what the disk has kept: all that was synced, and of the rest some pages by chance. Whatever was
// acknowledged is there, and each event counts once.
func TestPowerFails(t *testing.T) {
	if testing.Short() {
		t.Skip("-short cuts no power")
	}
	failures := 2
	if text := os.Getenv(failuresVariable); text != "" {
		var err error
		if failures, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	seed := uint64(time.Now().UnixNano())
	t.Log("seed", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	data := filepath.Join(t.TempDir(), "data")
	files, err := power.NewFS(data)
	must(t, err)
	start := func() (*stack.Stack, *client.Client) {
		s, err := stack.Start(context.Background(), stack.Options{Data: data, Sync: true, Files: files,
			Apps: []stack.App{{ID: "demo", Key: stack.DemoKey}}, ConfigTTL: 100 * time.Millisecond})
		must(t, err)
		c, err := client.New(client.Config{URL: s.URL, App: "demo", Key: stack.DemoKey, Retry: client.NoRetry})
		must(t, err)
		return s, c
	}
	engine, c := start()
	defer func() { must(t, engine.Close()) }()
	acked := newAcknowledged(0)
	must(t, c.Strategies().SetJSON(t.Context(), acked.strategy(1), client.SetOptions{}))
	for range failures {
		ctx, stop := context.WithCancel(t.Context())
		var load sync.WaitGroup
		for w := range killWorkers + 1 {
			load.Go(func() { acked.load(ctx, c, w) })
		}
		moment := time.Duration(1+random.IntN(400)) * time.Millisecond
		<-time.After(moment)
		acked.mu.Lock()
		after := files.Fail(random.IntN(101), random.Uint64())
		acked.cut = true
		acked.mu.Unlock()
		stop()
		load.Wait()
		must(t, engine.Close())
		files, acked.cut = after, false
		engine, c = start()
		if err := acked.check(t, c); err != nil {
			t.Fatalf("the power failed %v after the load began: %v", moment, err)
		}
	}
	t.Logf("%d failures; %d events, %d objects, %d strategies and %d deletions were acknowledged", failures, acked.events,
		len(acked.objects), acked.score, len(acked.gone))
}
