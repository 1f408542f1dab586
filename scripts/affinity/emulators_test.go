package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/local/gcloudtest"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/local/testmain"
)

// TestKilledOnTheOfficialEmulators runs the engine as a process of its own on
// Google's emulators, kills it while it works and starts it again. Every accepted
// event must count once.
func TestKilledOnTheOfficialEmulators(t *testing.T) {
	t.Parallel()
	environment := append(os.Environ(), asTool+"=1",
		"BIGTABLE_EMULATOR_HOST="+gcloudtest.Bigtable(t),
		"PUBSUB_EMULATOR_HOST="+gcloudtest.PubSub(t),
		"FIRESTORE_EMULATOR_HOST="+gcloudtest.Firestore(t))
	engine := startProcess(t, environment)
	list := exec.Command(os.Args[0], "app", "list")
	list.Env = environment
	if out, err := list.CombinedOutput(); err != nil || !strings.Contains(string(out), "demo") {
		t.Fatalf("app list beside up, on one emulator: %v\n%s", err, out)
	}
	strategy := map[string]any{
		"eventsScoring":         []any{map[string]any{"eventName": "Seen", "eventType": "view", "score": 1}},
		"facetsScoring":         []any{map[string]any{"facetName": "color", "score": 1}},
		"personalizationImpact": 50,
	}
	if _, err := post(t.Context(), engine.stack(), "/1/strategies/personalization", strategy); err != nil {
		t.Fatal(err)
	}

	const users, perRound, rounds = 20, 10, 2 // the second with what the first left behind
	now := time.Now().UnixMilli()
	for round := range rounds {
		var refused []realEvent // not answered with 200: sent again, as a client does
		var mu sync.Mutex
		var sending sync.WaitGroup
		half := make(chan struct{})
		for u := range users {
			sending.Go(func() {
				for i := range perRound {
					if u == 0 && i == perRound/2 {
						close(half)
					}
					e := realEvent{"view", "Seen", fmt.Sprint("user", u), now - int64(round*perRound+i), "i", nil}
					if err := sendSeen(t.Context(), engine.stack(), e); err != nil {
						mu.Lock()
						refused = append(refused, e)
						mu.Unlock()
					}
				}
			})
		}
		<-half
		engine.kill(t)
		sending.Wait()
		engine = startProcess(t, environment)
		for _, e := range refused {
			must(t, sendSeen(t.Context(), engine.stack(), e))
		}
		t.Logf("round %d: killed, %d of %d events sent again", round, len(refused), users*perRound)
	}

	var want []realProfile
	for u := range users {
		want = append(want, realProfile{fmt.Sprint("user", u), now, map[string]map[string]float64{"color": {"Red": rounds * perRound}}})
	}
	engine.awaits(t, want)
	compare(t, engine.stack(), want)
}

// sendSeen sends one event with the filter color:Red.
func sendSeen(ctx context.Context, s *stack.Stack, e realEvent) error {
	_, err := post(ctx, s, "/1/events", map[string]any{"events": []any{map[string]any{
		"eventType": e.EventType, "eventName": e.EventName, "userToken": e.UserToken,
		"timestamp": e.Timestamp, "index": e.Index, "filters": []string{"color:Red"},
	}}})
	return err
}

// asTool is the variable that makes a process of this test binary the tool itself,
// so that a test that needs the tool in a process of its own links no other binary.
const asTool = "AFFINITY_TEST_AS_TOOL"

func TestMain(m *testing.M) {
	if os.Getenv(asTool) != "" {
		main()
	}
	os.Exit(testmain.Main(m))
}

// process is an engine in a process of its own.
type process struct {
	cmd *exec.Cmd
	url string
}

func (p *process) stack() *stack.Stack { return &stack.Stack{URL: p.url} }

func startProcess(t *testing.T, environment []string, args ...string) *process {
	t.Helper()
	return startTool(t, environment, os.Stderr, append([]string{"up", "--addr", "127.0.0.1:0"}, args...)...)
}

// startTool starts a command that serves an engine.
func startTool(t *testing.T, environment []string, stderr io.Writer, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(os.Args[0], args...)}
	p.cmd.Env, p.cmd.Stderr = environment, stderr
	out, err := p.cmd.StdoutPipe()
	must(t, err)
	must(t, p.cmd.Start())
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	scanner := bufio.NewScanner(out)
	for scanner.Scan() {
		if url, ok := strings.CutPrefix(scanner.Text(), "ready "); ok {
			p.url = url
			return p
		}
	}
	t.Fatalf("the engine ended before it was ready: %v", p.cmd.Wait())
	return nil
}

// kill ends the process without a shutdown.
func (p *process) kill(t *testing.T) {
	t.Helper()
	must(t, p.cmd.Process.Kill())
	_ = p.cmd.Wait() // the error is that it was killed
}

// awaits polls until every profile is complete, for a minute and a half at most:
// the Pub/Sub emulator delivers a dead process's messages again after their lease.
func (p *process) awaits(t *testing.T, want []realProfile) {
	t.Helper()
	deadline := time.Now().Add(90 * time.Second)
	for time.Now().Before(deadline) {
		if p.complete(t, want) {
			return
		}
		<-time.After(200 * time.Millisecond)
	}
}

func (p *process) complete(t *testing.T, want []realProfile) bool {
	t.Helper()
	var users []string
	for _, w := range want {
		users = append(users, w.UserToken)
	}
	got := profiles(t, p.stack(), users)
	for _, w := range want {
		if got[w.UserToken].Scores["color"]["Red"] < w.Scores["color"]["Red"] {
			return false
		}
	}
	return true
}
