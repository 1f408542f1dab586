package differ

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// operatorToken is what the campaign sets limits with, as the operator of the engine.
const operatorToken = "differ-operator-token-0123456789abcdef"

// startTime is how long an engine may take to start or to end.
const startTime = 2 * time.Minute

// engine is an engine in a process of its own, which is killed and started again.
type engine struct {
	program     string
	args        []string
	environment []string
	folder      string // log and data
	addr        string
	most        int64 // bytes of resident memory

	ctx  context.Context
	fail func(error) // ends the campaign

	mu      sync.Mutex
	run     *exec.Cmd
	ended   chan struct{} // of run
	up      chan struct{} // closed once the engine answers
	ending  bool          // run ends because the campaign wants it
	starts  int
	pending map[*request]bool
}

// freeAddress returns an address with a port below the range from which the kernel takes ports:
// no other program gets it between two starts of the engine.
func freeAddress() (string, error) {
	var last error
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(20_000))
		l, err := net.Listen("tcp", address)
		if err == nil {
			return address, l.Close()
		}
		last = err
	}
	return "", fmt.Errorf("find a free port: %w", last)
}

func newEngine(ctx context.Context, fail func(error), o Options, folder string, args ...string) (*engine, error) {
	addr, err := freeAddress() // that of all starts, so that a printed request can be repeated
	if err != nil {
		return nil, err
	}
	args = append([]string{"up", "--addr", addr, "--data", filepath.Join(folder, "data")}, args...)
	// The campaign's engine has no other services and apps than its own.
	environment := slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return strings.HasPrefix(name, "AFFINITY_") || strings.HasSuffix(name, "_EMULATOR_HOST")
	})
	environment = append(append(environment, "AFFINITY_OPERATOR="+operatorToken), o.Environment...)
	return &engine{program: o.Engine, args: args, environment: environment, folder: folder, addr: addr,
		most: o.Memory, ctx: ctx, fail: fail,
		up: make(chan struct{}), pending: map[*request]bool{}}, nil
}

// start starts the process. It does not wait until it is up.
func (e *engine) start() error {
	log, err := os.OpenFile(filepath.Join(e.folder, "engine.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	run := exec.Command(e.program, e.args...)
	run.Env = e.environment
	run.Stderr = log
	out, err := run.StdoutPipe()
	if err != nil {
		return err
	}
	if err := run.Start(); err != nil {
		return fmt.Errorf("start the engine: %w", err)
	}
	ended := make(chan struct{})
	e.mu.Lock()
	e.run, e.ended, e.ending = run, ended, false
	e.starts++
	up := e.up
	e.mu.Unlock()
	go e.watch(run, ended, out, up)
	go e.watchMemory(run.Process.Pid, ended)
	return nil
}

// watch opens up once the process is ready, and reports a process that ends by itself.
func (e *engine) watch(run *exec.Cmd, ended chan struct{}, out io.Reader, up chan struct{}) {
	slow := time.AfterFunc(startTime, func() { e.fail(errors.New("the engine is not ready after " + startTime.String())) })
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "ready ") && slow.Stop() {
			e.mu.Lock()
			if e.run == run && !e.ending {
				close(up)
			}
			e.mu.Unlock()
		}
	}
	slow.Stop()
	err := run.Wait()
	e.mu.Lock()
	ending := e.ending
	e.mu.Unlock()
	close(ended)
	if !ending && e.ctx.Err() == nil {
		e.fail(fmt.Errorf("the engine ended by itself: %w\n%s", err, e.tail()))
	}
}

// tail is the end of the engine's log.
func (e *engine) tail() string {
	b, err := os.ReadFile(filepath.Join(e.folder, "engine.log"))
	if err != nil {
		return err.Error()
	}
	return string(b[max(0, len(b)-4000):])
}

// ready waits until the engine answers.
func (e *engine) ready() error {
	e.mu.Lock()
	up := e.up
	e.mu.Unlock()
	select {
	case <-up:
		return nil
	case <-e.ctx.Done():
		return context.Cause(e.ctx)
	}
}

// stop ends the process with a signal and waits for it.
func (e *engine) stop(signal os.Signal) error {
	e.mu.Lock()
	run, ended := e.run, e.ended
	e.ending = true
	select {
	case <-e.up:
		e.up = make(chan struct{})
	default:
	}
	e.mu.Unlock()
	if err := run.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-ended:
	case <-time.After(startTime):
		_ = run.Process.Kill()
		<-ended
		return fmt.Errorf("the engine did not end %v after %v\n%s", startTime, signal, e.tail())
	}
	if code := run.ProcessState.ExitCode(); signal == os.Interrupt && code != 0 {
		return fmt.Errorf("the engine ended with exit code %d after an interrupt, want 0\n%s", code, e.tail())
	}
	return nil
}

// watchMemory ends the campaign if the process takes too much memory: an answer that grows
// without a bound would end the machine before its request times out.
func (e *engine) watchMemory(pid int, ended chan struct{}) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			return
		case <-tick.C:
		}
		if now := resident(pid); now > e.most {
			e.mu.Lock()
			e.ending = true
			d := &Difference{What: "memory", Engine: fmt.Sprintf("%d MB are resident", now>>20),
				Model: fmt.Sprintf("at most %d MB", e.most>>20)}
			var oldest *request
			for r := range e.pending {
				if oldest == nil || r.sent < oldest.sent {
					oldest = r
				}
			}
			if oldest != nil {
				d.Request = oldest.curl()
				d.Engine += fmt.Sprintf(", %d ms after the oldest request that waits for an answer",
					time.Now().UnixMilli()-oldest.sent)
			}
			run := e.run
			e.mu.Unlock()
			_ = run.Process.Kill()
			e.fail(d)
			return
		}
	}
}

// resident returns the bytes of resident memory of a process, 0 where no one tells.
func resident(pid int) int64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0
	}
	fields := bytes.Fields(b)
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(string(fields[1]), 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}

// count returns how often the engine was started.
func (e *engine) count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.starts
}
