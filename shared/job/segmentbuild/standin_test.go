package segmentbuild_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/local/emulator"
)

// role is the variable that says what a child process of the tests does.
const role = "AFFINITY_SEGMENTBUILD_ROLE"

func TestMain(m *testing.M) {
	if os.Getenv(role) == "bigtable" {
		serveBigtable()
		return
	}
	os.Exit(m.Run())
}

// serveBigtable serves a Bigtable until standard input ends.
func serveBigtable() {
	server, err := emulator.StartBigtable()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	defer server.Close()
	fmt.Println(server.Addr)
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// startBigtable starts a Bigtable in a process of its own, so that its processor time
// and memory are not counted, and returns its address.
func startBigtable(tb testing.TB) string {
	tb.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env, cmd.Stderr = append(os.Environ(), role+"=bigtable", "GOMEMLIMIT=off"), os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = stdin.Close()
		if err := cmd.Wait(); err != nil {
			tb.Error(err)
		}
	})
	addr, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		tb.Fatal("the Bigtable of the benchmark printed no address: ", err)
	}
	return strings.TrimSpace(addr)
}

// cpu returns the processor time of this process.
func cpu(tb testing.TB) time.Duration {
	tb.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
