package segment_test

import (
	"strings"
	"testing"

	"github.com/affinityengine/affinity/shared/rank/segment"
)

func TestCheckName(t *testing.T) {
	for name, message := range map[string]string{
		"vip-2_A": "", "": "1 to 64", "a b": "1 to 64", strings.Repeat("a", 65): "1 to 64", "query": "part of a route", "histogram": "part of a route",
		"refresh": "part of a route", "export": "part of a route",
	} {
		err := segment.CheckName(name)
		if (err == nil) != (message == "") || err != nil && !strings.Contains(err.Error(), message) {
			t.Errorf("%q: %v, want %q", name, err, message)
		}
	}
}
