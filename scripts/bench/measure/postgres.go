package measure

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// postgres runs a PostgreSQL cluster of its own.
type postgres struct{ programs string } // their directory

func findPostgres(dir string) (string, error) {
	if dir == "" {
		if found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb"); len(found) > 0 { // Debian; the pattern is right
			dir = filepath.Dir(slices.Max(found))
		} else if path, err := exec.LookPath("initdb"); err == nil {
			dir = filepath.Dir(path)
		}
	}
	for _, name := range []string{"initdb", "postgres", "psql"} {
		if !isFile(filepath.Join(dir, name)) {
			return "", fmt.Errorf("PostgreSQL was not measured: %s is not in %q; --postgres names the directory of its programs", name, dir)
		}
	}
	return dir, nil
}

func (p postgres) measure(ctx context.Context, data peerData, layout string, repeat int) (result taken, err error) {
	c, err := p.start(ctx)
	if err != nil {
		return taken{}, err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	if err := c.load(ctx, data, layout); err != nil {
		return taken{}, err
	}
	profiles := data.profiles(layout, "create unlogged table profiles")
	var all []taken
	for i := range repeat + 1 { // once to warm up
		t, err := c.time(ctx, "drop table if exists profiles", profiles)
		if err != nil {
			return taken{}, err
		}
		if i > 0 {
			all = append(all, t)
		}
	}
	_, err = c.psql(ctx, fmt.Sprintf(`\copy (%s) to %s csv`, export(layout),
		quoted(filepath.Join(data.dir, layout+".csv"))))
	return median(all), err
}

// cluster is a running PostgreSQL, which listens on a socket in a directory that only
// its user may enter.
type cluster struct {
	postgres
	dir    string
	server *exec.Cmd
}

func (p postgres) start(ctx context.Context) (c *cluster, err error) {
	dir, err := os.MkdirTemp("", "affinity-pg") // a socket's path has at most 107 bytes
	if err != nil {
		return nil, fmt.Errorf("make a directory for PostgreSQL: %w", err)
	}
	c = &cluster{postgres: p, dir: dir}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.stop())
		}
	}()
	as, err := unprivileged(dir)
	if err != nil {
		return nil, err
	}
	command := func(name string, args ...string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, filepath.Join(p.programs, name), args...)
		cmd.Dir, cmd.SysProcAttr, cmd.Env = dir, as, []string{"LC_ALL=C"}
		return cmd
	}
	base := filepath.Join(dir, "data")
	if out, err := command("initdb", "-D", base, "-U", "affinity", "-A", "trust", "-E", "UTF8",
		"--no-sync").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w: %s", err, out)
	}
	// One worker helps the process that computes. Nothing is written to disk for safety.
	args := []string{"-D", base, "-k", dir}
	for _, setting := range []string{"listen_addresses=", "fsync=off", "synchronous_commit=off",
		"full_page_writes=off", "autovacuum=off", "max_wal_size=8GB",
		"shared_buffers=1GB", "work_mem=512MB", "hash_mem_multiplier=4",
		fmt.Sprintf("max_parallel_workers_per_gather=%d", workers()-1),
		"min_parallel_table_scan_size=0", "parallel_setup_cost=0", "parallel_tuple_cost=0.001"} {
		args = append(args, "-c", setting)
	}
	server := command("postgres", args...)
	server.Cancel, server.WaitDelay = func() error { return server.Process.Signal(os.Interrupt) }, killAfter
	log, err := server.StderrPipe()
	if err != nil {
		return nil, fmt.Errorf("start PostgreSQL: %w", err)
	}
	if err := server.Start(); err != nil {
		return nil, fmt.Errorf("start PostgreSQL: %w", err)
	}
	c.server = server
	lines, said := bufio.NewScanner(log), []string(nil)
	for lines.Scan() {
		if strings.Contains(lines.Text(), "ready to accept connections") {
			go func() { _, _ = io.Copy(io.Discard, log) }() // so that it does not block
			return c, nil
		}
		said = append(said, lines.Text())
	}
	return nil, fmt.Errorf("start PostgreSQL: %s", strings.Join(said, "\n"))
}

// stop ends the server and removes its data.
func (c *cluster) stop() error {
	var err error
	if c.server != nil {
		err = c.server.Process.Signal(os.Interrupt) // ends connections, and then itself
		if errors.Is(err, os.ErrProcessDone) {
			err = nil
		}
		err = errors.Join(err, c.server.Wait())
	}
	if err != nil {
		err = fmt.Errorf("end PostgreSQL: %w", err)
	}
	return errors.Join(err, os.RemoveAll(c.dir))
}

func (c *cluster) load(ctx context.Context, data peerData, layout string) error {
	var commands []string
	for _, t := range peerTables {
		commands = append(commands, fmt.Sprintf("create unlogged table %s (%s)", t.name, t.columns),
			fmt.Sprintf(`\copy %s from %s csv`, t.name, quoted(data.file(t.name))))
	}
	if layout == "text" {
		commands = append(commands, strings.Replace(texts, "create table", "create unlogged table", 1))
	}
	_, err := c.psql(ctx, append(commands, "vacuum analyze")...)
	return err
}

// psql runs commands in one session and returns its output.
func (c *cluster) psql(ctx context.Context, commands ...string) (string, error) {
	args := []string{"-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", c.dir, "-U", "affinity", "-d", "postgres"}
	for _, command := range commands {
		args = append(args, "-c", command)
	}
	cmd := exec.CommandContext(ctx, filepath.Join(c.programs, "psql"), args...)
	var out, faults bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr = []string{"LC_ALL=C"}, &out, &faults
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("psql: %w: %s", err, strings.TrimSpace(faults.String()))
	}
	return out.String(), nil
}

// time runs a statement after another that is not timed. The processor time is that of
// the session's processes, which the server has collected once they have ended.
func (c *cluster) time(ctx context.Context, before, statement string) (taken, error) {
	cpu := ended(c.server.Process.Pid)
	out, err := c.psql(ctx, "select pg_backend_pid()", before, `\timing on`, statement)
	if err != nil {
		return taken{}, err
	}
	session, timed, _ := strings.Cut(out, "\n")
	fields := strings.Fields(timed) // Time: 12.345 ms
	if len(fields) < 3 || fields[0] != "Time:" {
		return taken{}, fmt.Errorf("psql printed %q, want a time", timed)
	}
	ms, err := strconv.ParseFloat(fields[1], 64)
	if err != nil {
		return taken{}, fmt.Errorf("psql printed %q: %w", timed, err)
	}
	for range 1000 { // until the session's process has ended
		if _, err := os.Stat("/proc/" + session); err != nil {
			break
		}
		time.Sleep(time.Millisecond)
	}
	return taken{seconds: ms / 1e3, cpu: ended(c.server.Process.Pid) - cpu}, nil
}

// clockTicks is the number of ticks of a second in /proc on Linux.
const clockTicks = 100

// ended is the processor time in seconds of the ended children of a process, and 0
// where the system does not tell.
func ended(pid int) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), ") ") // the name may have spaces
	fields := strings.Fields(rest)
	if len(fields) < 15 {
		return 0
	}
	user, err1 := strconv.ParseFloat(fields[13], 64) // cutime and cstime of proc(5)
	system, err2 := strconv.ParseFloat(fields[14], 64)
	if err1 != nil || err2 != nil {
		return 0
	}
	return (user + system) / clockTicks
}
