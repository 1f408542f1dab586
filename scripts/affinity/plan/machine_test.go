package plan_test

import (
	"math"
	"testing"

	"github.com/affinityengine/affinity/scripts/affinity/plan"
	"github.com/affinityengine/affinity/shared/judge/price"
)

// The smallest machine that is large enough is taken, with each line as a person computes it, and none beyond the largest.
func TestMachineByHand(t *testing.T) {
	prices := price.List()
	if err := prices.SetAll("vm_vcpu=0.03\nvm_disk=0.1\nvm_snapshots=0.05\nvm_address=0.005"); err != nil {
		t.Fatal(err)
	}
	w := small // 10 requests of 3 ms and 10 reads of 1 ms a second, twice as many in the busiest minute
	m := plan.ComputeMachine(w, simple, prices)
	const data = (8_640_000.0*1100 + 1000*10_000) / (1 << 30)
	want := []float64{730 * 0.5 * 0.03, math.Ceil(3*data)*0.1 + 1, data * 0.05, 3.65}
	if m.Type != "e2-small" || math.Abs(m.Cores-0.08) > 1e-9 || m.DiskGiB != math.Ceil(3*data) || len(m.Lines) != len(want) {
		t.Fatalf("the machine is %+v", m)
	}
	sum := 0.0
	for i, line := range m.Lines {
		if sum += *line.USD; math.Abs(*line.USD-want[i]) > 0.005 {
			t.Errorf("%s costs %v, want %v", line.What, *line.USD, want[i])
		}
	}
	if math.Abs(m.Sum-sum) > 0.005 {
		t.Errorf("the sum is %v, want %v", m.Sum, sum)
	}
	for _, step := range []struct {
		scale float64
		want  string
	}{{3.7, "e2-small"}, {3.8, "e2-medium"}, {7.6, "e2-standard-2"}, {14.9, "e2-standard-2"}, {15.1, ""}} {
		w.EventsPerDay, w.ReadsPerSecond = small.EventsPerDay*step.scale, small.ReadsPerSecond*step.scale
		got := plan.ComputeMachine(w, simple, prices)
		if got.Type != step.want || (len(got.Lines) == 0) != (step.want == "") || math.Abs(got.UpTo/small.EventsPerDay-15) > 1e-9 {
			t.Errorf("for %v times the load the machine is %+v, want %q", step.scale, got, step.want)
		}
	}
}
