package attack

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/local/stack"
)

// Starter starts an engine that may use some MiB of memory.
type Starter func(ctx context.Context, memory int) (*Engine, error)

// Engine is an engine in a process of its own.
type Engine struct {
	url, limit string
	cmd        *exec.Cmd
	stdin      io.Closer
	group      string          // control group; empty: none
	alive      context.Context // ends with the process
	closing    bool
}

// Serve runs an engine with the apps of a campaign until in ends, and writes its
// address to out.
func Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	s, err := stack.Start(ctx, stack.Options{Apps: []stack.App{{ID: goodApp, Key: goodKey},
		{ID: evilApp, Key: evilKey}}, RetentionDays: 90})
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(out, s.URL); err != nil {
		return fmt.Errorf("print the address: %w", err)
	}
	_, err = io.Copy(io.Discard, in)
	return errors.Join(err, s.Close())
}

// Child returns a Starter for a command line that calls Serve. Its soft limit,
// GOMEMLIMIT, is nine tenths of its memory, as in a deployment. A control group ends it
// at its memory, or the campaign does where it cannot make one. bigtable is the address
// of a Bigtable; if it is empty, the engine keeps its data in its own memory.
func Child(stderr io.Writer, bigtable, name string, args ...string) Starter {
	return func(ctx context.Context, memory int) (*Engine, error) {
		e := &Engine{cmd: exec.Command(name, args...)}
		e.cmd.Stderr = stderr
		e.cmd.Env = append(os.Environ(), fmt.Sprintf("GOMEMLIMIT=%dMiB", memory*9/10), "BIGTABLE_EMULATOR_HOST="+bigtable)
		stdin, err := e.cmd.StdinPipe()
		if err != nil {
			return nil, fmt.Errorf("start an engine: %w", err)
		}
		stdout, err := e.cmd.StdoutPipe()
		if err != nil {
			return nil, fmt.Errorf("start an engine: %w", err)
		}
		if err := e.cmd.Start(); err != nil {
			return nil, fmt.Errorf("start an engine: %w", err)
		}
		e.stdin = stdin
		alive, died := context.WithCancelCause(ctx)
		e.alive = alive
		e.enclose(memory)
		line, err := bufio.NewReader(stdout).ReadString('\n')
		go func() {
			died(errors.Join(errors.New("the process ended"), e.cmd.Wait()))
			e.release()
		}()
		if err != nil {
			return nil, errors.Join(fmt.Errorf("start an engine: it printed no address: %w", err), e.close())
		}
		e.url = strings.TrimSpace(line)
		return e, nil
	}
}

// enclose holds the process to its memory.
func (e *Engine) enclose(memory int) {
	pid := strconv.Itoa(e.cmd.Process.Pid)
	for root, file := range map[string]string{"/sys/fs/cgroup": "memory.max",
		"/sys/fs/cgroup/memory": "memory.limit_in_bytes"} {
		group := filepath.Join(root, "affinity-attack-"+pid)
		if _, err := os.Stat(filepath.Join(root, "cgroup.procs")); err != nil || os.Mkdir(group, 0o755) != nil {
			continue
		}
		err := os.WriteFile(filepath.Join(group, file), []byte(strconv.Itoa(memory<<20)), 0)
		if err == nil {
			err = os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte(pid), 0)
		}
		if err == nil {
			e.group, e.limit = group, "control group"
			return
		}
		_ = os.Remove(group)
	}
	e.limit = "watched"
	go func() {
		for pause(e.alive, 20*time.Millisecond) == nil {
			if e.status("VmRSS:") > float64(memory) {
				_ = e.cmd.Process.Kill()
			}
		}
	}()
}

func (e *Engine) release() {
	if e.group != "" {
		_ = os.Remove(e.group)
	}
}

// peak returns the largest resident memory of the process so far, in MiB; 0 where the
// system does not tell.
func (e *Engine) peak() float64 { return e.status("VmHWM:") }

// status returns a line of /proc/PID/status in MiB.
func (e *Engine) status(name string) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", e.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == name {
			kib, _ := strconv.ParseFloat(fields[1], 64)
			return kib / 1024
		}
	}
	return 0
}

// died reports whether the process ended before close.
func (e *Engine) died() bool { return e.alive.Err() != nil && !e.closing }

func (e *Engine) ended() error { return context.Cause(e.alive) }

// close ends the engine.
func (e *Engine) close() error {
	if e.alive.Err() != nil {
		return nil
	}
	e.closing = true
	if err := e.stdin.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return fmt.Errorf("end the engine: %w", err)
	}
	select {
	case <-e.alive.Done():
	case <-time.After(10 * time.Second):
		return e.cmd.Process.Kill()
	}
	return nil
}
