// Package gcloudtest starts Google's own emulators for tests: the Firestore, Bigtable and Pub/Sub ones that come with
// the Google Cloud CLI. The in-process stand-ins of the parent package are quicker and need nothing installed; these are
// the outside judge that the same tests run against where it is available. They keep their data in memory, and it ends
// with the test.
//
// Each function returns the host:port to put into the usual variable (FIRESTORE_EMULATOR_HOST and so on). Where that
// variable is set already, its emulator is used and none is started. Where the emulator cannot be had, the test is
// skipped with the reason; with AFFINITY_REQUIRE_EMULATORS=1 it fails instead, so that a machine that is meant to run
// these tests cannot lose them unseen.
//
// Starting takes seconds: start one in a test and share it among its subtests.
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
)

const (
	// requireVariable set to 1 turns a missing emulator from a skip into a failure.
	requireVariable = "AFFINITY_REQUIRE_EMULATORS"
	// startTimeout bounds one start. An idle machine needs 1 to 6 seconds; a busy one gets ten times that.
	startTimeout = 60 * time.Second
	// attempts covers another process taking the free port between its choice and the emulator's start.
	attempts = 3
	// killTimeout bounds the wait for the server's end; the kernel needs milliseconds for it.
	killTimeout  = 10 * time.Second
	pollInterval = 50 * time.Millisecond
)

// errLate marks a start that a second attempt would not quicken.
var errLate = errors.New("no server within the time limit")

// Firestore returns the address of a Firestore emulator that lives until the test ends.
func Firestore(t testing.TB) string {
	t.Helper()
	return emulator(t, "FIRESTORE_EMULATOR_HOST", "emulators", "firestore", "start")
}

// Bigtable returns the address of a Bigtable emulator that lives until the test ends. It collects garbage by the wall
// clock: cells older than an age rule vanish, whatever clock the test uses.
func Bigtable(t testing.TB) string {
	t.Helper()
	return emulator(t, "BIGTABLE_EMULATOR_HOST", "beta", "emulators", "bigtable", "start")
}

// PubSub returns the address of a Pub/Sub emulator that lives until the test ends. It delivers pushes and retries them,
// but never forwards to a dead-letter topic.
func PubSub(t testing.TB) string {
	t.Helper()
	return emulator(t, "PUBSUB_EMULATOR_HOST", "beta", "emulators", "pubsub", "start", "--project=affinity-test")
}

// emulator returns the address in the variable, or that of an emulator it starts with the gcloud command.
func emulator(t testing.TB, variable string, command ...string) string {
	t.Helper()
	if host := os.Getenv(variable); host != "" {
		return host
	}
	p, err := start(t.TempDir(), command)
	if err != nil {
		unavailable := t.Skipf
		if os.Getenv(requireVariable) == "1" {
			unavailable = t.Fatalf
		}
		unavailable("no emulator: %v; install its gcloud component, or set %s to a running one", err, variable)
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

// process is a running emulator: gcloud, and the server it started, in a session of their own.
type process struct {
	addr   string
	cmd    *exec.Cmd
	ended  chan struct{} // closed when gcloud has ended
	leash  *os.File      // closing it ends the session
	output string        // the file that holds what gcloud printed
}

// leashed runs a command and ends its whole process group when file descriptor 3 reaches its end. A test binary that is
// killed or times out runs no cleanup, and its emulator would otherwise stay behind for ever.
const leashed = `{ read -r _ <&3; kill -KILL -$$; } & exec "$@" 3<&-`

// startOnce starts the emulator on one free port and waits until it accepts connections.
func startOnce(dir string, command []string) (*process, error) {
	addr, err := freeAddr()
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
	cmd.Stdout, cmd.Stderr = output, output
	cmd.ExtraFiles = []*os.File{end}
	// gcloud leaves the process group it was started in, unless it leads a session.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		leash.Close()
		return nil, fmt.Errorf("start gcloud: %w", err)
	}
	p := &process{addr: addr, cmd: cmd, ended: make(chan struct{}), leash: leash, output: output.Name()}
	go func() {
		// How gcloud ended says nothing that its output does not; that it ended is what counts.
		_ = cmd.Wait()
		close(p.ended)
	}()
	if err := p.wait(); err != nil {
		p.kill()
		return nil, err
	}
	return p, nil
}

// freeAddr returns a loopback address that nothing listens on.
func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// wait returns when the emulator accepts connections, or the reason why it will not.
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

// accepts tells whether the emulator accepts connections.
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
	const most = 500
	return strings.TrimSpace(string(b[max(0, len(b)-most):]))
}

// kill ends gcloud and every process it started, and returns when the server is gone.
func (p *process) kill() {
	// The one error there can be is that all of them have ended.
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
