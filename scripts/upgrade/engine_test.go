package upgrade

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/local/emulator"
	"github.com/affinityengine/affinity/shared/local/gcloudtest"
	"github.com/affinityengine/affinity/shared/local/must"
)

// buildEarlier builds the affinity command of a commit of this repository in a
// worktree of its own.
func buildEarlier(t *testing.T, commit string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "earlier")
	runIn(t, ".", "git", "worktree", "add", "--detach", "--quiet", dir, commit)
	t.Cleanup(func() { runIn(t, ".", "git", "worktree", "remove", "--force", dir) })
	return build(t, dir)
}

// build builds the affinity command of the checkout at root.
func build(t *testing.T, root string) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "affinity")
	runIn(t, root, "go", "build", "-o", binary, "./scripts/affinity")
	return binary
}

func runIn(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

// backends are the servers that both engines use.
type backends struct {
	environment []string
	bigtable    string // host:port
	// shared is whether the engines share configuration and messages too, not
	// only Bigtable.
	shared bool
}

// startBackends starts the official emulators where tests may start them. Otherwise
// the engines share an in-process Bigtable, and each has its own configuration
// and messages.
func startBackends(t *testing.T) backends {
	t.Helper()
	if os.Getenv(must.Emulators) == "1" {
		addr := gcloudtest.Bigtable(t)
		return backends{bigtable: addr, environment: []string{
			"BIGTABLE_EMULATOR_HOST=" + addr,
			"PUBSUB_EMULATOR_HOST=" + gcloudtest.PubSub(t),
			"FIRESTORE_EMULATOR_HOST=" + gcloudtest.Firestore(t),
		}, shared: true}
	}
	server, err := emulator.StartBttest()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	return backends{bigtable: server.Addr, environment: []string{"BIGTABLE_EMULATOR_HOST=" + server.Addr, "PUBSUB_EMULATOR_HOST=", "FIRESTORE_EMULATOR_HOST="}}
}

// engine is `affinity up` in a process of its own.
type engine struct {
	*client.Client
	name   string // "old" or "new"
	cmd    *exec.Cmd
	stderr *tail
}

const (
	key          = "upgrade-key"
	startTimeout = 2 * time.Minute
	stopTimeout  = time.Minute
)

// startEngine starts an engine and returns when it is ready. It ends with the test.
func startEngine(t *testing.T, name, binary, app, schema string, b backends, environment ...string) *engine {
	t.Helper()
	e := &engine{name: name, stderr: &tail{}}
	e.cmd = exec.Command(binary, "up", "--addr", "127.0.0.1:0", "--app", app+":"+key, "--schema", schema,
		"--retention-days", fmt.Sprint(retentionDays))
	e.cmd.Env, e.cmd.Stderr = slices.Concat(os.Environ(), b.environment, environment), e.stderr
	out, err := e.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := e.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		e.stop(t)
		if t.Failed() {
			t.Logf("the %s engine printed:\n%s", name, e.stderr)
		}
	})
	ready := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(out).ReadString('\n') // an early end is no line
		ready <- strings.TrimSpace(line)
	}()
	select {
	case line := <-ready:
		url, ok := strings.CutPrefix(line, "ready ")
		if !ok {
			t.Fatalf("the %s engine ended before it was ready: %q\n%s", name, line, e.stderr)
		}
		e.connect(t, url, app)
		return e
	case <-time.After(startTimeout):
		t.Fatalf("the %s engine was not ready after %s\n%s", name, startTimeout, e.stderr)
		return nil
	}
}

// connect makes the client. It repeats what the engine refuses for a moment.
func (e *engine) connect(t *testing.T, url, app string) {
	t.Helper()
	c, err := client.New(client.Config{URL: url, App: app, Key: key, Retry: client.Retry{Total: 30 * time.Second}})
	if err != nil {
		t.Fatal(err)
	}
	e.Client = c
}

// stop ends the engine as a deployment does: it completes the work under way.
func (e *engine) stop(t *testing.T) {
	t.Helper()
	if e.cmd == nil {
		return
	}
	cmd := e.cmd
	e.cmd = nil
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("stop the %s engine: %v", e.name, err)
	}
	kill := time.AfterFunc(stopTimeout, func() { _ = cmd.Process.Kill() })
	defer kill.Stop()
	_ = cmd.Wait() // the error is that a signal ended it
}

// tail keeps the last bytes that a process printed.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const tailBytes = 8 << 10

func (w *tail) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text = append(w.text, p...)
	if over := len(w.text) - tailBytes; over > 0 {
		w.text = bytes.Clone(w.text[over:])
	}
	return len(p), nil
}

func (w *tail) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return string(w.text)
}

// poll calls done about five times a second until it reports true, for at most
// limit.
func poll(ctx context.Context, limit time.Duration, done func() bool) bool {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
	}
	return true
}
