package measure

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// A Server is a Bigtable on loopback for one measurement.
type Server struct {
	Addr  string
	Close func() error
}

// A Starter starts a server.
type Starter func(ctx context.Context) (Server, error)

// InProcess starts a server in this process. Processor time and memory then include
// the server's.
func InProcess(context.Context) (Server, error) {
	s, err := startLimited()
	if err != nil {
		return Server{}, err
	}
	return Server{Addr: s.Addr, Close: func() error { s.Close(); return nil }}, nil
}

// killAfter is how long a child may take to end.
const killAfter = 10 * time.Second

// Child returns a Starter for a server in a process of its own: a command line that
// calls Serve. Its stderr is passed on.
func Child(stderr io.Writer, name string, args ...string) Starter {
	return func(ctx context.Context) (Server, error) {
		cmd := exec.CommandContext(ctx, name, args...)
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
		line, err := bufio.NewReader(stdout).ReadString('\n')
		if err != nil {
			return Server{}, fmt.Errorf("start a server: it printed no address: %w", errors.Join(err, end()))
		}
		return Server{Addr: strings.TrimSpace(line), Close: end}, nil
	}
}

func ignoreClosed(err error) error {
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}

// Serve serves a Bigtable on loopback until in or ctx ends, and writes its address
// to out.
func Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	s, err := startLimited()
	if err != nil {
		return err
	}
	defer s.Close()
	if _, err := fmt.Fprintln(out, s.Addr); err != nil {
		return fmt.Errorf("print the address: %w", err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, in)
		ended <- err
	}()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return nil
	}
}
