package jobs_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/kinds/move"
	"github.com/affinityengine/affinity/shared/job/kinds/residents"
	"github.com/affinityengine/affinity/shared/local/functiontest"
)

// A function that counts the jobs before another one knows the collections of all kinds by name.
func TestQueuedNamesAllKinds(t *testing.T) {
	all := functiontest.Start(t).Backends.Jobs
	all.Moves = &move.Runner{Runner: &job.Runner{Collection: move.Collection}}
	all.Residents = &residents.Runner{Runner: &job.Runner{Collection: residents.Collection}}
	var names []string
	for _, k := range all.Kinds() {
		names = append(names, k.Core().Collection.Name)
	}
	if slices.Sort(names); !slices.Equal(names, job.Queued) {
		t.Errorf("jobs of %q have a runner, those of %q are counted", names, job.Queued)
	}
}

// All that runs, resumes or counts jobs goes by Kinds.
func TestKindsAreAll(t *testing.T) {
	all := functiontest.Start(t).Backends.Jobs
	all.Moves, all.Residents = &move.Runner{}, &residents.Runner{}
	var want []job.Kind
	for _, runners := range []reflect.Value{reflect.ValueOf(all), reflect.ValueOf(all.Segmenting)} {
		for i := range runners.NumField() {
			if kind, ok := runners.Field(i).Interface().(job.Kind); ok {
				want = append(want, kind)
			}
		}
	}
	kinds := all.Kinds()
	for _, kind := range want {
		if !slices.Contains(kinds, kind) {
			t.Errorf("%T is missing among the kinds", kind)
		}
	}
	if len(kinds) != len(want) {
		t.Errorf("%d kinds, %d fields are runners", len(kinds), len(want))
	}
}
