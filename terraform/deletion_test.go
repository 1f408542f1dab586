package terraform_test

import (
	"os"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/job/kinds/deletion"
)

// The last shard of a deletion begins when no request or task of the app runs any
// more: each began at most five minutes after the app ended, see package config.
func TestDeletionsOutwaitRequests(t *testing.T) {
	text, err := os.ReadFile("sizes.tf")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`timeout_seconds = (\d+)`).FindAllSubmatch(text, -1)
	if len(found) < 10 {
		t.Fatalf("sizes.tf has %d timeouts", len(found))
	}
	for _, m := range found {
		seconds, err := strconv.Atoi(string(m[1]))
		if err != nil {
			t.Fatal(err)
		}
		if longest := time.Duration(seconds)*time.Second + 5*time.Minute; longest > deletion.Late {
			t.Errorf("a request of %d s may still run %s after the end of its app, and a deletion waits only %s", seconds, longest, deletion.Late)
		}
	}
}
