package storetest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"

	"github.com/affinityengine/affinity/shared/local/cpu"
	"github.com/affinityengine/affinity/shared/local/disk"
	"github.com/affinityengine/affinity/shared/local/emulator"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/rows"
	"github.com/affinityengine/affinity/shared/local/testmain"
)

// role is the variable that makes a process of a test a Bigtable.
const role = "AFFINITY_STORETEST_ROLE"

// Main is the TestMain of a package that calls StartProcess. It runs tests as testmain.Main
// does.
func Main(m *testing.M) {
	if os.Getenv(role) == "" {
		os.Exit(testmain.Main(m))
	}
	if err := serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Process is an in-process Bigtable of another process, so that its processor time and
// memory are not those of the test.
type Process struct {
	Addr    string // for OpenAt
	stdin   io.Writer
	answers *bufio.Reader
}

// Counts counts what a Bigtable has answered to reads of rows, and the processor time
// that its process has used for everything.
type Counts struct {
	Requests, Rows, Cells, Bytes int64
	CPU                          time.Duration
}

// Sub returns what was counted since before.
func (c Counts) Sub(before Counts) Counts {
	return Counts{c.Requests - before.Requests, c.Rows - before.Rows, c.Cells - before.Cells,
		c.Bytes - before.Bytes, c.CPU - before.CPU}
}

// StartProcess starts a Bigtable that ends with the test. The TestMain of the package must
// be Main.
func StartProcess(tb testing.TB) *Process {
	tb.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env, cmd.Stderr = append(os.Environ(), role+"=bigtable", "GOMEMLIMIT=off"), os.Stderr
	stdin, err := cmd.StdinPipe()
	must.Succeed(tb, err)
	stdout, err := cmd.StdoutPipe()
	must.Succeed(tb, err)
	must.Succeed(tb, cmd.Start())
	tb.Cleanup(func() {
		_ = stdin.Close()
		if err := cmd.Wait(); err != nil {
			tb.Error(err)
		}
	})
	p := &Process{stdin: stdin, answers: bufio.NewReader(stdout)}
	addr, err := p.answers.ReadString('\n')
	if err != nil {
		tb.Fatal("the Bigtable printed no address: ", err)
	}
	p.Addr = strings.TrimSpace(addr)
	return p
}

// Counts returns the counts since the start.
func (p *Process) Counts(tb testing.TB) (c Counts) {
	tb.Helper()
	_, err := fmt.Fprintln(p.stdin)
	if err == nil {
		err = json.NewDecoder(p.answers).Decode(&c)
	}
	if err != nil {
		tb.Fatal("ask the Bigtable for its counts: ", err)
	}
	return c
}

// serve serves a Bigtable until in ends. It prints its address, and its counts for each
// line of in.
func serve(in io.Reader, out io.Writer) error {
	var n counter
	d, err := disk.InMemory(rows.Join, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer d.Close()
	server, err := emulator.StartBigtable(d, grpc.ChainStreamInterceptor(n.stream))
	if err != nil {
		return err
	}
	defer server.Close()
	_, err = fmt.Fprintln(out, server.Addr)
	questions := bufio.NewScanner(in)
	for err == nil && questions.Scan() {
		err = json.NewEncoder(out).Encode(n.counts())
	}
	if err != nil {
		return fmt.Errorf("serve a Bigtable: %w", err)
	}
	return nil
}

type counter struct{ requests, rows, cells, bytes atomic.Int64 }

func (n *counter) counts() Counts {
	return Counts{n.requests.Load(), n.rows.Load(), n.cells.Load(), n.bytes.Load(), cpu.Time()}
}

func (n *counter) stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo,
	handle grpc.StreamHandler) error {
	if info.FullMethod != btpb.Bigtable_ReadRows_FullMethodName {
		return handle(srv, stream)
	}
	n.requests.Add(1)
	return handle(srv, countedStream{stream, n})
}

type countedStream struct {
	grpc.ServerStream
	n *counter
}

// SendMsg counts what a message holds.
func (s countedStream) SendMsg(m any) error {
	s.n.sent(m.(*btpb.ReadRowsResponse))
	return s.ServerStream.SendMsg(m)
}

func (n *counter) sent(answer *btpb.ReadRowsResponse) {
	for _, c := range answer.Chunks {
		if c.GetCommitRow() {
			n.rows.Add(1)
		}
		if c.ValueSize == 0 { // the last piece of a cell
			n.cells.Add(1)
		}
		n.bytes.Add(int64(len(c.Value)))
	}
}
