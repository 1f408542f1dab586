package function_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	// The programs that these tests build need it in go.mod.
	_ "github.com/GoogleCloudPlatform/functions-framework-go/funcframework"

	"github.com/affinityengine/affinity/shared/local/must"
)

// build builds one function as it is deployed: its package and the framework's
// server.
func build(tb testing.TB, function string) string {
	tb.Helper()
	must.Start(tb, must.Builds)
	dir := tb.TempDir()
	source := filepath.Join(dir, "main.go")
	main := fmt.Sprintf(`package main

import (
	"log"
	"os"

	"github.com/GoogleCloudPlatform/functions-framework-go/funcframework"
	_ "github.com/affinityengine/affinity/functions/%s"
)

func main() { log.Fatal(funcframework.StartHostPort("127.0.0.1", os.Getenv("PORT"))) }
`, function)
	must.Succeed(tb, os.WriteFile(source, []byte(main), 0o600))
	here, err := os.Getwd()
	must.Succeed(tb, err)
	// The overlay adds the file to the module without writing into it.
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(here, "program", "main.go"): source}})
	must.Succeed(tb, err)
	must.Succeed(tb, os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600))
	program := filepath.Join(dir, function)
	out, err := exec.Command("go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-o", program, "./program").CombinedOutput()
	if err != nil {
		tb.Fatalf("build: %v\n%s", err, out)
	}
	return program
}

// firstAnswer starts a function, and returns its first answer and the time from
// the start to that answer.
func firstAnswer(tb testing.TB, logged io.Writer, program, target string, env ...string) (int, string, time.Duration) {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.Succeed(tb, err)
	addr := l.Addr().String()
	_, port, _ := net.SplitHostPort(addr)
	must.Succeed(tb, l.Close())
	cmd := exec.Command(program)
	cmd.Env = append([]string{"PORT=" + port, "FUNCTION_TARGET=" + target}, env...)
	cmd.Stderr = logged
	began := time.Now()
	must.Succeed(tb, cmd.Start())
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	for time.Since(began) < time.Minute {
		res, err := http.Get("http://" + addr + "/1/events")
		if err != nil {
			continue // not listening yet
		}
		took := time.Since(began)
		body, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		must.Succeed(tb, err)
		return res.StatusCode, string(body), took
	}
	tb.Fatal("no answer within a minute")
	return 0, "", 0
}

func TestUnconfiguredFunctionListsAllFaults(t *testing.T) {
	var out bytes.Buffer
	code, body, _ := firstAnswer(t, &out, build(t, "ingest"), "Ingest", "PUBSUB_PROJECT=p")
	if code != http.StatusServiceUnavailable || strings.Contains(body, "BIGTABLE") {
		t.Errorf("%d %s, want 503 without details", code, body)
	}
	logged := out.String()
	for _, variable := range []string{"BIGTABLE_PROJECT", "BIGTABLE_INSTANCE", "FIRESTORE_PROJECT"} {
		if !strings.Contains(logged, variable) {
			t.Errorf("%s does not say that %s is missing", logged, variable)
		}
	}
	if strings.Contains(logged, "PUBSUB_PROJECT") {
		t.Errorf("%s names a variable that is set", logged)
	}
}

// The program of console also holds the functions whose requests it makes. It serves the one
// that it is started for, and no other.
func TestConsoleServesNoOtherFunction(t *testing.T) {
	var out bytes.Buffer
	code, body, _ := firstAnswer(t, &out, build(t, "console"), "Console", "CONSOLE_API_URL=https://api.example.com")
	if code != http.StatusServiceUnavailable || !strings.Contains(out.String(), "CONSOLE_SECRET") || strings.Contains(out.String(), "CONSOLE_API_URL") {
		t.Errorf("/1/events is answered %d %s, not by console: %s", code, body, &out)
	}
}

// BenchmarkFirstAnswer measures from the start of a function's process to its
// first answer, with backends that cannot be reached.
func BenchmarkFirstAnswer(b *testing.B) {
	program := build(b, "ingest")
	var total time.Duration
	for range b.N {
		_, _, took := firstAnswer(b, io.Discard, program, "Ingest", "PUBSUB_PROJECT=p", "BIGTABLE_PROJECT=p", "BIGTABLE_INSTANCE=i", "FIRESTORE_PROJECT=p", "FIRESTORE_KEYS_DATABASE=k",
			"BIGTABLE_EMULATOR_HOST=127.0.0.1:1", "PUBSUB_EMULATOR_HOST=127.0.0.1:1", "FIRESTORE_EMULATOR_HOST=127.0.0.1:1")
		total += took
	}
	b.ReportMetric(float64(total.Milliseconds())/float64(b.N), "ms/start")
}
