package measure

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestGuard(t *testing.T) {
	o := Guard{Runs: 3, Trials: 8, Cases: 200, Seed: 4}
	first, err := o.Run(t.Context(), InProcess)
	if err != nil {
		t.Fatal(err)
	}
	if first.Runs != 3 || first.Recommended > 3 || first.Share != float64(first.Recommended)/3 || first.ShareLow > first.Share || first.ShareHigh < first.Share {
		t.Errorf("report = %+v", first)
	}
	if first.Changed == 0 || first.FoundGain <= 0 {
		t.Errorf("no search found anything by chance, so nothing could be recommended: %+v", first)
	}
	second, err := o.Run(t.Context(), InProcess)
	if err != nil {
		t.Fatal(err)
	}
	if first.MeanGain != second.MeanGain || first.FoundGain != second.FoundGain {
		t.Errorf("two campaigns of one seed differ: %+v, %+v", first, second)
	}
	var text bytes.Buffer
	if err := first.Print(&text); err != nil || !strings.Contains(text.String(), "3 runs of 8 trials on 200 cases") {
		t.Errorf("printed %q, %v", text.String(), err)
	}
}

// Wilson's interval of 10 of 200, from a table: 2.74 % to 8.96 %.
func TestWilson(t *testing.T) {
	low, high := wilson(10, 200)
	if math.Abs(low-0.0274) > 0.0001 || math.Abs(high-0.0896) > 0.0001 {
		t.Errorf("interval = %.4f to %.4f", low, high)
	}
	if low, high := wilson(0, 10); low != 0 || high < 0.2 || high > 0.4 {
		t.Errorf("interval of none of ten = %.4f to %.4f", low, high)
	}
}

func TestGuardRefusals(t *testing.T) {
	for name, o := range map[string]Guard{
		"runs":     {Trials: 1, Cases: 1},
		"trials":   {Runs: 1, Trials: 301, Cases: 1},
		"cases":    {Runs: 1, Trials: 1},
		"too many": {Runs: 1, Trials: 1, Cases: 1_000_000},
		"events":   {Runs: 1, Trials: 1, Cases: 1, Events: []string{"e"}},
		"objects":  {Runs: 1, Trials: 1, Cases: 1, Objects: "o"},
	} {
		_, err := o.Run(t.Context(), InProcess)
		var flag FlagError
		if !errors.As(err, &flag) {
			t.Errorf("%s: error = %v, want one of the flags", name, err)
		}
	}
	path := filepath.Join(t.TempDir(), "s.json")
	if err := os.WriteFile(path, []byte(`{"eventsScoring":`), 0o600); err != nil {
		t.Fatal(err)
	}
	o := Guard{Runs: 1, Trials: 1, Cases: 1, Objects: path, Strategy: path, Events: []string{path}}
	if _, err := o.Run(t.Context(), InProcess); err == nil || !strings.Contains(err.Error(), "is not a JSON object") {
		t.Errorf("error of a damaged strategy = %v", err)
	}
}
