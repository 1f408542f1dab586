// Package gcloudtest starts Google's own emulators for tests: Firestore,
// Bigtable and Pub/Sub of the Google Cloud CLI. The in-process servers of
// package emulator are faster and need no installation. With AFFINITY_REQUIRE_EMULATORS=1
// the same tests run against both. All data is in memory and ends with the test.
//
// Each function returns the host:port for the usual variable
// (FIRESTORE_EMULATOR_HOST and so on). If the variable is set, the function
// returns its value and starts no emulator. The test is skipped unless
// AFFINITY_REQUIRE_EMULATORS is 1; with it, it fails where the emulator is not installed.
//
// Starting takes seconds: start one emulator in a test and share it among the
// subtests.
package gcloudtest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/ports"
)

const (
	// startTimeout bounds one start. An idle machine needs 1 to 6 seconds, a
	// busy one up to ten times that.
	startTimeout = 60 * time.Second
	// attempts is the number of starts, because another process may take the free
	// port before the emulator does.
	attempts = 3
	// killTimeout bounds the wait for the server's end, which takes
	// milliseconds.
	killTimeout  = 10 * time.Second
	pollInterval = 50 * time.Millisecond
)

// errLate is the error of a start for which a second attempt would not help.
var errLate = errors.New("no server within the time limit")

// Firestore returns the address of a Firestore emulator that runs until the
// test ends.
func Firestore(t testing.TB) string {
	t.Helper()
	return emulator(t, "FIRESTORE_EMULATOR_HOST", "emulators", "firestore", "start")
}

// Bigtable returns the address of a Bigtable emulator that runs until the test
// ends. It collects garbage by the wall clock, whatever clock the test uses.
func Bigtable(t testing.TB) string {
	t.Helper()
	return emulator(t, "BIGTABLE_EMULATOR_HOST", "beta", "emulators", "bigtable", "start")
}

// PubSub returns the address of a Pub/Sub emulator that runs until the test
// ends. It delivers pushes and retries them, but never forwards to a
// dead-letter topic.
func PubSub(t testing.TB) string {
	t.Helper()
	return emulator(t, "PUBSUB_EMULATOR_HOST", "beta", "emulators", "pubsub", "start", "--project=affinity-test")
}

// emulator returns the address in the variable, or that of an emulator it
// starts with the gcloud command.
func emulator(t testing.TB, variable string, command ...string) string {
	t.Helper()
	if host := os.Getenv(variable); host != "" {
		return host
	}
	must.Start(t, must.Emulators)
	p, err := start(t.TempDir(), command)
	if err != nil {
		t.Fatalf("no emulator: %v; install its gcloud component, or set %s to a running one", err, variable)
	}
	t.Cleanup(p.kill)
	return p.addr
}

// start tries a few free ports in turn.
func start(dir string, command []string) (*process, error) {
	if _, err := exec.LookPath("gcloud"); err != nil {
		return nil, err
	}
	var failures []error
	for range attempts {
		p, err := startOnce(dir, command)
		if err == nil {
			return p, nil
		}
		failures = append(failures, err)
		if errors.Is(err, errLate) {
			break
		}
	}
	return nil, errors.Join(failures...)
}

// process is a running emulator: gcloud and the server that it started, in a
// session of their own.
type process struct {
	addr   string
	cmd    *exec.Cmd
	ended  chan struct{} // closed when gcloud has ended
	leash  *os.File      // closing it ends the session
	output string        // the file that holds what gcloud printed
}

// leashed runs a command and kills its process group when file descriptor 3 is
// closed. A test binary that is killed or times out runs no cleanup, and would
// otherwise leave its emulator running.
const leashed = `{ read -r _ <&3; kill -KILL -$$; } & exec "$@" 3<&-`

// javaOptions are those of emulators in Java. They run for seconds, in which the second
// compiler and collectors on several threads cost more than they save.
const javaOptions = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

// startOnce starts the emulator on one free port and waits until it accepts
// connections.
func startOnce(dir string, command []string) (*process, error) {
	addr, err := ports.Free()
	if err != nil {
		return nil, err
	}
	output, err := os.Create(filepath.Join(dir, "gcloud.log"))
	if err != nil {
		return nil, fmt.Errorf("create the emulator's log: %w", err)
	}
	defer output.Close()
	end, leash, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("create the emulator's leash: %w", err)
	}
	defer end.Close()

	args := append([]string{"-c", leashed, "sh", "gcloud"}, command...)
	cmd := exec.Command("sh", append(args, "--host-port="+addr)...)
	cmd.Env = append(os.Environ(), "JAVA_TOOL_OPTIONS="+javaOptions)
	cmd.Stdout, cmd.Stderr = output, output
	cmd.ExtraFiles = []*os.File{end}
	// gcloud leaves the process group it was started in, unless it leads a
	// session.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		leash.Close()
		return nil, fmt.Errorf("start gcloud: %w", err)
	}
	p := &process{addr: addr, cmd: cmd, ended: make(chan struct{}), leash: leash, output: output.Name()}
	go func() {
		// Its output says more than its exit code.
		_ = cmd.Wait()
		close(p.ended)
	}()
	if err := p.wait(); err != nil {
		p.kill()
		return nil, err
	}
	return p, nil
}

// wait returns when the emulator accepts connections, or the reason why it will
// not.
func (p *process) wait() error {
	poll := time.NewTicker(pollInterval)
	defer poll.Stop()
	late := time.After(startTimeout)
	for !p.accepts() {
		select {
		case <-p.ended:
			return fmt.Errorf("gcloud ended without a server: %s", p.lastOutput())
		case <-late:
			return fmt.Errorf("%w of %v on %s: %s", errLate, startTimeout, p.addr, p.lastOutput())
		case <-poll.C:
		}
	}
	return nil
}

// accepts reports whether the emulator accepts connections.
func (p *process) accepts() bool {
	conn, err := net.Dial("tcp", p.addr)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

// lastOutput returns the end of what gcloud printed.
func (p *process) lastOutput() string {
	b, err := os.ReadFile(p.output)
	if err != nil {
		return err.Error()
	}
	const maxBytes = 500
	return strings.TrimSpace(string(b[max(0, len(b)-maxBytes):]))
}

// kill ends gcloud and every process it started, and returns when the server is
// gone.
func (p *process) kill() {
	// It fails only if all processes have ended.
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	p.leash.Close()
	<-p.ended
	poll := time.NewTicker(pollInterval)
	defer poll.Stop()
	late := time.After(killTimeout)
	for p.accepts() {
		select {
		case <-late:
			return
		case <-poll.C:
		}
	}
}
