package function_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/affinityengine/affinity/shared/backend/function"
)

// The platform's signal makes a process write what it keeps, all of it, and end.
func TestProcessWritesBeforeItEnds(t *testing.T) {
	const child = "FUNCTION_TEST_EXIT"
	if os.Getenv(child) != "" {
		function.AtExit(func(context.Context) error { fmt.Println("first written"); return errors.New("second may go on") })
		function.AtExit(func(context.Context) error { fmt.Println("second written"); return nil })
		if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		select {} // until the process ends
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), child+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"first written", "second written", "second may go on"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%s\ndoes not say %q", out, want)
		}
	}
}
