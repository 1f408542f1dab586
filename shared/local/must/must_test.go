package must_test

import (
	"errors"
	"testing"

	"github.com/affinityengine/affinity/shared/local/must"
)

type recorded struct{ fatal []any }

func (*recorded) Helper()             {}
func (r *recorded) Fatal(args ...any) { r.fatal = append(r.fatal, args...) }

func TestErrorEndsTest(t *testing.T) {
	var r recorded
	must.Succeed(&r, nil)
	must.Succeed(&r, errors.New("no table"))
	if len(r.fatal) != 1 || r.fatal[0].(error).Error() != "no table" {
		t.Errorf("the test ends with %v, want the one error", r.fatal)
	}
}
