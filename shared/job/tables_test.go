package job_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/affinityengine/affinity/shared/job"
)

// Work on tables goes on where the task before has stopped, in whatever table and behind
// whatever key; a table may be there for two steps.
func TestTables(t *testing.T) {
	tables := []string{"objects", "crowd", "objects", "usage"}
	keys := map[string][]string{"objects": {"app,a,1", "app,a,2~%"}, "crowd": {"app,"}, "usage": {"app,x"}}
	shard := job.Shard{Part: "all"}
	var took []string
	for tasks := 0; ; tasks++ {
		p, err := job.Tables(shard, tables, func() bool { return true }, func(p job.Progress) error { shard.Next = p.Next; return nil },
			func(step int, after string, done func(int, string) error) error {
				for _, key := range keys[tables[step]] {
					if key > after {
						took = append(took, fmt.Sprint(step, " ", key))
						if err := done(1, key); err != nil {
							return err
						}
					}
				}
				return nil
			})
		if err != nil {
			t.Fatal(err)
		}
		if p.Done {
			break
		}
		if tasks > 10 {
			t.Fatal("the tasks do not end")
		}
	}
	want := []string{"0 app,a,1", "0 app,a,2~%", "1 app,", "2 app,a,1", "2 app,a,2~%", "3 app,x"}
	if !slices.Equal(took, want) {
		t.Errorf("took %q, want %q", took, want)
	}
}

// A place of a version with other tables goes by the table's name, and one that cannot be
// read by nothing.
func TestTablesOfAnotherVersion(t *testing.T) {
	stop := errors.New("stop")
	for next, want := range map[string]string{
		"":                    "0 ",
		",00,usage,app%2Cx":   "2 app,x",
		",02,usage,app%2Cx":   "2 app,x",
		",07,objects,app%2Ca": "0 app,a",
		",01,gone,app%2Ca":    "0 ",
		",01,usage,%":         "0 ",
		"user":                "0 ",
	} {
		got := ""
		_, err := job.Tables(job.Shard{Part: "all", Next: next}, []string{"objects", "dated", "usage"}, func() bool { return false }, nil,
			func(step int, after string, _ func(int, string) error) error {
				got = fmt.Sprint(step, " ", after)
				return stop
			})
		if !errors.Is(err, stop) || got != want {
			t.Errorf("place %q: %q, %v, want %q", next, got, err, want)
		}
	}
}
