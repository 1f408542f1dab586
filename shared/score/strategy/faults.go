package strategy

import (
	"errors"

	"github.com/affinityengine/affinity/shared/fault"
)

// maxFaults bounds how many faults of a strategy are reported.
const maxFaults = 50

// faults collects what is wrong with a strategy, in the order in which it is found. No
// field has two.
type faults struct {
	all []*fault.Error
	of  map[string]bool // fields that have one
}

// add adds the fault of a field that err is, unless the field has one already. It reports
// whether the field has one.
func (f *faults) add(field string, err error) bool {
	var found *fault.Error
	if f.of[field] || !errors.As(err, &found) {
		return f.of[field]
	}
	if f.of == nil {
		f.of = map[string]bool{}
	}
	f.of[field] = true
	f.all = append(f.all, found)
	return true
}

// err returns the first fault with the messages of the others, nil if there is none.
func (f *faults) err() error {
	if len(f.all) == 0 {
		return nil
	}
	first := *f.all[0]
	for _, other := range f.all[1:min(len(f.all), maxFaults)] {
		first.Others = append(first.Others, other.Message)
	}
	return &first
}
