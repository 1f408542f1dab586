package stack_test

import (
	"encoding/json"
	"net/http"
	"regexp"
	"testing"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/local/stack"
)

func TestHealthNamesTheVersion(t *testing.T) {
	s := start(t, stack.Options{})
	code, answer := call(t, s, "GET", "/health", "")
	var got api.Health
	if err := json.Unmarshal([]byte(answer), &got); err != nil {
		t.Fatalf("answer %q: %v", answer, err)
	}
	if want := (api.Health{Status: 200, Message: "OK", Version: api.Version}); code != http.StatusOK || got != want {
		t.Errorf("%d %+v, want 200 %+v", code, got, want)
	}
	if semver := regexp.MustCompile(`^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`); !semver.MatchString(api.Version) {
		t.Errorf("version %q is not a semantic version", api.Version)
	}
}
