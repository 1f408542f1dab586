package terraform_test

import (
	"os"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/deadline"
)

// No request or task of a function is cut off before the platform would end it.
func TestTimeoutsAreWithinLongest(t *testing.T) {
	text, err := os.ReadFile("sizes.tf")
	if err != nil {
		t.Fatal(err)
	}
	timeouts := regexp.MustCompile(`timeout_seconds = (\d+)`).FindAllStringSubmatch(string(text), -1)
	if len(timeouts) < 10 {
		t.Fatalf("sizes.tf has %d timeouts, so it has another form", len(timeouts))
	}
	for _, m := range timeouts {
		seconds, err := strconv.Atoi(m[1])
		if err != nil || time.Duration(seconds)*time.Second > deadline.Longest {
			t.Errorf("a function has %s s, %v; its requests live for %v", m[1], err, deadline.Longest)
		}
	}
}
