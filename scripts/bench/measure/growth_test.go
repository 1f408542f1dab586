package measure

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func grown(dir string) Growth {
	return Growth{Dir: dir, Totals: []int{70, 210}, Recompute: Recompute{Events: []int{7, 10}, Facets: 2, Values: 2, Selected: 1, Repeat: 1, Readers: Readers}}
}

// A run that is broken off anywhere goes on, and its profiles are those of the formula: else Run fails.
func TestGrowthGoesOn(t *testing.T) {
	o := grown(t.TempDir())
	for _, at := range []string{"0 of 10 users", "folding 10", "recomputing 10", "checking 30", "checking 7"} {
		ctx, cancel := context.WithCancel(t.Context())
		o.Progress = func(line string) {
			if strings.HasPrefix(line, at) {
				cancel()
			}
		}
		if _, err := o.Run(ctx, InProcess); !errors.Is(err, context.Canceled) && !strings.Contains(err.Error(), "canceled") {
			t.Fatalf("broken off at %q: %v", at, err)
		}
		cancel()
	}
	o.Progress = nil
	report, err := o.Run(t.Context(), InProcess)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range report.Series {
		if s.EventsPerUser != o.Events[i] || len(s.Sizes) != 2 || s.Users != 210/o.Events[i] {
			t.Fatalf("%+v", s)
		}
		for j, x := range s.Sizes {
			if !x.Done || x.Events != o.Totals[j] || x.Import.Events != o.Totals[0]*(j+1) || x.Fold.Events != x.Import.Events || x.Recompute.Events != x.Events ||
				x.Import.Seconds <= 0 || x.Fold.Requests == 0 || x.Recompute.ClientCPUSeconds <= 0 || x.DiskBytes == 0 || x.PeakHeapBytes == 0 {
				t.Errorf("%d events a user: %+v", s.EventsPerUser, x)
			}
		}
	}
	if got := report.Series[0].Sizes[0].Breaks; got != 2 {
		t.Errorf("the first size was broken off %d times after its first record, want 2", got)
	}
	var out bytes.Buffer
	if err := report.Print(&out); err != nil || !strings.Contains(out.String(), "broken off 2 times") {
		t.Errorf("%v:\n%s", err, out.String())
	}
	again, err := o.Run(t.Context(), InProcess)
	if err != nil || cmp.Diff(report.Series, again.Series) != "" {
		t.Errorf("a run of what is measured: %v, %s", err, cmp.Diff(report.Series, again.Series))
	}
}

func TestGrowthRefuses(t *testing.T) {
	dir := t.TempDir()
	if _, err := grown(dir).Run(t.Context(), InProcess); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*Growth){
		"name these, or another --dir": func(o *Growth) { o.Facets = 3 },
		"holds 30 users":               func(o *Growth) { o.Totals = []int{140} },
		"GB free: name a --dir":        func(o *Growth) { o.Totals, o.Events = []int{1 << 50}, []int{1 << 30} },
		"must be larger than":          func(o *Growth) { o.Totals = []int{210, 210} },
		"must be 1 to 10000000 users":  func(o *Growth) { o.Totals = []int{5} },
		"a process of its own":         func(o *Growth) { o.InProcess = true },
	} {
		o := grown(dir)
		change(&o)
		if _, err := o.Run(t.Context(), InProcess); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
