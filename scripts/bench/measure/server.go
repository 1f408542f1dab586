package measure

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/local/disk"
	"github.com/affinityengine/affinity/shared/local/emulator"
	"github.com/affinityengine/affinity/shared/local/rows"
	"google.golang.org/grpc"
)

// A Server is a Bigtable on loopback for one measurement.
type Server struct {
	Addr  string
	Count func() (Counts, error) // since its start
	Close func() error
}

// A Starter starts a server that keeps its data in a folder, or in memory if that is "".
type Starter func(ctx context.Context, dir string) (Server, error)

// InProcess starts a server in this process. Processor time and memory then include
// the server's.
func InProcess(_ context.Context, dir string) (Server, error) {
	return start(dir)
}

// start starts a local engine's Bigtable, and counts what it answers.
func start(dir string) (Server, error) {
	log := slog.New(slog.DiscardHandler)
	d, err := disk.InMemory(rows.Join, log)
	if dir != "" {
		d, err = disk.Open(dir, rows.Join, log)
	}
	if err != nil {
		return Server{}, err
	}
	n := &counter{}
	s, err := emulator.StartBigtable(d, grpc.UnaryInterceptor(n.unary), grpc.StreamInterceptor(n.stream))
	if err != nil {
		return Server{}, errors.Join(err, d.Close())
	}
	return Server{Addr: s.Addr, Count: n.counts, Close: func() error { s.Close(); return d.Close() }}, nil
}

// killAfter is how long a child may take to end.
const killAfter = 10 * time.Second

// Child returns a Starter for a server in a process of its own: a command line that
// calls Serve, and ends with the folder if there is one. Its stderr is passed on.
func Child(stderr io.Writer, name string, args ...string) Starter {
	return func(ctx context.Context, dir string) (Server, error) {
		arguments := args
		if dir != "" {
			arguments = append(slices.Clip(args), dir)
		}
		cmd := exec.CommandContext(ctx, name, arguments...)
		cmd.Stderr = stderr
		stdin, err := cmd.StdinPipe()
		if err != nil {
			return Server{}, fmt.Errorf("start a server: %w", err)
		}
		cmd.Cancel, cmd.WaitDelay = stdin.Close, killAfter
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			return Server{}, fmt.Errorf("start a server: %w", err)
		}
		if err := cmd.Start(); err != nil {
			return Server{}, fmt.Errorf("start a server: %w", err)
		}
		end := func() error {
			return errors.Join(ignoreClosed(stdin.Close()), cmd.Wait())
		}
		answers := bufio.NewReader(stdout)
		line, err := answers.ReadString('\n')
		if err != nil {
			return Server{}, fmt.Errorf("start a server: it printed no address: %w", errors.Join(err, end()))
		}
		return Server{Addr: strings.TrimSpace(line), Count: func() (Counts, error) { return ask(stdin, answers) },
			Close: end}, nil
	}
}

// ask asks a child for its counts. Serve answers each line with one.
func ask(question io.Writer, answers *bufio.Reader) (n Counts, err error) {
	if _, err := fmt.Fprintln(question); err != nil {
		return Counts{}, fmt.Errorf("ask a server for its counts: %w", err)
	}
	line, err := answers.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &n)
	}
	if err != nil {
		return Counts{}, fmt.Errorf("ask a server for its counts: %w", err)
	}
	return n, nil
}

func ignoreClosed(err error) error {
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}

// Serve serves a Bigtable on loopback until in or ctx ends, and writes its address
// to out. It answers each line of in with its counts as a line of JSON.
func Serve(ctx context.Context, dir string, in io.Reader, out io.Writer) (err error) {
	s, err := start(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if _, err := fmt.Fprintln(out, s.Addr); err != nil {
		return fmt.Errorf("print the address: %w", err)
	}
	ended := make(chan error, 1)
	go func() {
		questions := bufio.NewScanner(in)
		var failed error
		for failed == nil && questions.Scan() {
			var counts Counts
			if counts, failed = s.Count(); failed == nil {
				failed = json.NewEncoder(out).Encode(counts)
			}
		}
		ended <- errors.Join(failed, questions.Err())
	}()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return nil
	}
}
