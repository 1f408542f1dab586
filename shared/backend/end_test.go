package backend_test

import (
	"bufio"
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/affinityengine/affinity/shared/app/usage"
	"github.com/affinityengine/affinity/shared/backend"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/store"
)

const counting = "AFFINITY_TEST_COUNTING"

var place = store.Config{Project: "p", Instance: "i", FilterColumns: 6}

// TestMain is also the process that TestSIGTERMFlushesUsage ends.
func TestMain(m *testing.M) {
	if os.Getenv(counting) == "" {
		os.Exit(m.Run())
	}
	b, err := backend.Open(context.Background(), slog.Default(), backend.Settings{
		Store: place, Firestore: backend.FirestoreSettings{Project: "p", Database: "d", Keys: "k"},
	})
	if err != nil {
		panic(err)
	}
	b.Usage.Reads("shop", 7)
	os.Stdout.WriteString("counted\n")
	time.Sleep(time.Minute)
}

func TestSIGTERMFlushesUsage(t *testing.T) {
	t.Setenv("BIGTABLE_EMULATOR_HOST", storetest.Start(t))
	t.Setenv("FIRESTORE_EMULATOR_HOST", "127.0.0.1:1")
	admin, err := bigtable.NewAdminClient(t.Context(), place.Project, place.Instance)
	must.Succeed(t, err)
	must.Succeed(t, errors.Join(store.CreateTables(t.Context(), admin), admin.Close()))
	self, err := os.Executable()
	must.Succeed(t, err)
	process := exec.Command(self)
	process.Env, process.Stderr = append(os.Environ(), counting+"=1"), os.Stderr
	out, err := process.StdoutPipe()
	must.Succeed(t, err)
	must.Succeed(t, process.Start())
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "counted\n" {
		t.Fatalf("the process printed %q, %v", line, err)
	}
	must.Succeed(t, process.Process.Signal(syscall.SIGTERM))
	if err := process.Wait(); err != nil {
		t.Errorf("the process ended with %v", err)
	}
	s, err := store.Open(t.Context(), place)
	must.Succeed(t, err)
	defer s.Close()
	today := usage.DayOf(time.Now())
	days, err := s.Usage.Usage(t.Context(), "shop", today-1, today)
	must.Succeed(t, err)
	if got := days[today].Reads + days[today-1].Reads; got != 7 {
		t.Errorf("%d reads are stored, want 7", got)
	}
}
