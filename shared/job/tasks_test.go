package job_test

import (
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/job"
)

func TestConfig(t *testing.T) {
	if err := (job.Settings{ShardUsers: 1, Budget: time.Second, Attempts: 1}).Validate(); err != nil {
		t.Error(err)
	}
	err := job.Settings{Budget: 9 * time.Minute}.Validate()
	for _, variable := range []string{"JOB_SHARD_USERS", "JOB_BUDGET", "JOB_ATTEMPTS"} {
		if err == nil || !strings.Contains(err.Error(), variable) {
			t.Errorf("error %v does not name %s", err, variable)
		}
	}
}

// FuzzDecodeTasks: malformed tasks are rejected, and no input causes a panic.
func FuzzDecodeTasks(f *testing.F) {
	f.Add([]byte(`{"app":"shop","job":"strategy-1","shard":1,"from":"a","to":"","step":2}`))
	f.Add([]byte(`{"app":"sh,op","job":"strategy-1"}`))
	f.Add([]byte(`{"app":"shop","job":"a/b","step":-1}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if p, err := (&job.Runner{}).Plans().Decode(body); err == nil && (!config.ValidAppID(p.App) || p.Job == "" || p.Step < 0) {
			t.Errorf("%s is taken for %+v", body, p)
		}
		if s, err := (&job.Runner{}).Shards().Decode(body); err == nil && (!config.ValidAppID(s.App) || s.Job == "" || s.Shard < 0 || s.Step < 0) {
			t.Errorf("%s is taken for %+v", body, s)
		}
	})
}
