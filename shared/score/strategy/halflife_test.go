package strategy_test

import (
	"encoding/json"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/fault"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

func TestParseHalfLife(t *testing.T) {
	const day = 24 * 60 * 60 * 1000
	for text, want := range map[string]struct{ ms, events float64 }{
		"30": {30 * day, 0}, "1": {day, 0}, "3650": {3650 * day, 0},
		"30d": {30 * day, 0}, "12h": {day / 2, 0}, "45m": {45 * 60 * 1000, 0}, "1m": {60 * 1000, 0}, "3650d": {3650 * day, 0}, "87600h": {3650 * day, 0},
		"2e": {0, 2}, "0.5e": {0, 0.5}, "0.1e": {0, 0.1}, "50e": {0, 50}, "12.3e": {0, 12.3},
	} {
		h, err := strategy.ParseHalfLife(text)
		n, ok := h.Events()
		if err != nil || h.Millis() != want.ms || n != want.events || ok != (want.events > 0) || h.String() != text {
			t.Errorf("%q: %v ms, %v events (%v), text %q, error %v; want %+v", text, h.Millis(), n, ok, h, err, want)
		}
	}
}

func TestParseHalfLifeRefuses(t *testing.T) {
	for _, text := range []string{
		"", " ", "d", "0", "-1", "+1", "3651", "1.5", "1e2", "030", " 30", "30 ", "30D", "30s", "1w", "30dd", "1h30m", "NaN", "Infinity", "0x10", "1_0",
		"0d", "0h", "0m", "-1m", "+1m", "1.5h", "3651d", "87601h", "5256001m", "05m", "99999999999999999999d", "99999999999999999999",
		"0e", "0.05e", "0.15e", "1.25e", "50.1e", "-1e", "+1e", "2.0e", "02e", ".5e", "5.e", "nane", "infe", "99999999999999999999e", "\xff", "3\x000",
	} {
		h, err := strategy.ParseHalfLife(text)
		var refusal *fault.Error
		if !errors.As(err, &refusal) || refusal.Kind != fault.Invalid || !h.IsZero() {
			t.Errorf("%q: %v, %v; want a refusal", text, h, err)
		}
	}
}

func TestHalfLivesWrittenInTwoWays(t *testing.T) {
	number, text, hours := strategy.Days(30), halfLife(t, "30d"), halfLife(t, "720h")
	if number == text || text == hours {
		t.Error("half-lives that are written in two ways are equal, so one of them is not given back as set")
	}
	if !number.SameAs(text) || !text.SameAs(hours) {
		t.Error("half-lives of equal length are not the same")
	}
	if halfLife(t, "29d").SameAs(number) || halfLife(t, "2e").SameAs(halfLife(t, "3e")) || halfLife(t, "2e").SameAs(strategy.HalfLife{}) {
		t.Error("half-lives of different lengths are the same")
	}
	if n, ok := number.WholeDays(); n != 30 || !ok {
		t.Errorf("whole days of the number 30 = %d, %v", n, ok)
	}
	if _, ok := text.WholeDays(); ok {
		t.Error(`"30d" is a number`)
	}
}

func halfLife(t testing.TB, text string) strategy.HalfLife {
	t.Helper()
	h, err := strategy.ParseHalfLife(text)
	must.Succeed(t, err)
	return h
}

func TestHalfLifeRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := anyHalfLife(true).Draw(t, "half-life")
		b, err := json.Marshal(h)
		must.Succeed(t, err)
		var got strategy.HalfLife
		if err := json.Unmarshal(b, &got); err != nil || got != h {
			t.Fatalf("%s is read as %v, %v; want %v", b, got, err, h)
		}
		if again, err := strategy.ParseHalfLife(h.String()); err != nil || again != h {
			t.Fatalf("text %q is read as %v, %v", h, again, err)
		}
	})
}

func TestHalfLifeJSONRefuses(t *testing.T) {
	for _, value := range []string{`"30"`, `1.5`, `1e2`, `-0`, `true`, `[]`, `{}`, `""`, `"x"`, `"12 h"`, `99999999999999999999`} {
		var h strategy.HalfLife
		if err := json.Unmarshal([]byte(value), &h); err == nil && h != strategy.Days(0) {
			t.Errorf("%s is read as %v", value, h)
		}
	}
}

func FuzzParseHalfLife(f *testing.F) {
	for _, text := range []string{"30", "30d", "12h", "45m", "2e", "0.5e", "1e2", "3650d", "0m", "\x00"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		h, err := strategy.ParseHalfLife(text)
		if err != nil {
			return
		}
		n, events := h.Events()
		if h.String() != text || events == (h.Millis() > 0) {
			t.Errorf("%q: text %q, %v ms, %v events", text, h, h.Millis(), n)
		}
		const day = 24 * 60 * 60 * 1000
		if !events && (h.Millis() < 60_000 || h.Millis() > 3650*day) || events && (n < 0.1 || n > 50) {
			t.Errorf("%q is beyond the limits: %v ms, %v events", text, h.Millis(), n)
		}
	})
}
