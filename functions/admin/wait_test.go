package admin_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/functions/admin"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/local/functiontest"
)

// noIndex is a store of jobs whose index over all apps is still being built.
type noIndex struct{ job.Jobs }

func (noIndex) Before(context.Context, string, time.Time) (int, error) {
	return 0, errors.New("the index is being built")
}

// Without its place a job is answered all the same.
func TestJobWithoutPlace(t *testing.T) {
	s := functiontest.Start(t)
	h := admin.New(s.Backends.ForAdmin())
	start := func() string {
		t.Helper()
		status, answer := functiontest.Call(h, "admin", "POST", "/1/reenrich", "")
		if status != 200 || !strings.Contains(answer, `"dryRun":false`) {
			t.Fatal(status, answer)
		}
		return answer
	}
	if answer := start(); strings.Contains(answer, `"state":"planning"`) && !strings.Contains(answer, `"jobsBefore":0`) {
		t.Errorf("%s, want its place", answer)
	}
	s.Backends.Crowd.Jobs = noIndex{s.Backends.Crowd.Jobs}
	if answer := start(); strings.Contains(answer, "jobsBefore") {
		t.Errorf("%s, want no place", answer)
	}
}
