package affinity_test

import (
	"math"
	"math/big"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/score/affinity"
)

// TestRoundedKeepsTwelveDigits compares with the decimal digits that strconv prints.
func TestRoundedKeepsTwelveDigits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := math.Pow10(rapid.IntRange(-280, 280).Draw(t, "exponent"))
		score := rapid.Float64Range(-10, 10).Draw(t, "mantissa") * size
		got := affinity.Rounded(score)
		want, err := strconv.ParseFloat(strconv.FormatFloat(score, 'e', 11, 64), 64)
		if err != nil {
			t.Fatal(err)
		}
		// One unit of the twelfth digit where the thirteenth is a 5 of the exact number.
		if off := math.Abs(got - want); off > 1.0001e-11*math.Abs(score) {
			t.Fatalf("Rounded(%v) = %v, want %v", score, got, want)
		}
		if again := affinity.Rounded(got); again != got {
			t.Fatalf("Rounded(%v) = %v, which rounds to %v", score, got, again)
		}
	})
}

func TestRoundedExchangesNoScores(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.Float64().Draw(t, "a")
		b := rapid.OneOf(rapid.Float64(), rapid.Just(math.Nextafter(a, 1)), rapid.Just(a*(1+1e-12))).Draw(t, "b")
		if low, high := affinity.Rounded(min(a, b)), affinity.Rounded(max(a, b)); low > high {
			t.Fatalf("%v < %v, but rounded %v > %v", min(a, b), max(a, b), low, high)
		}
	})
}

// A score of few decimal digits is one number, in whatever way it was computed.
func TestDecimalScoresRoundTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.IntRange(0, 1000), 1, 7).Draw(t, "thousandths")
		sum, exact := 0.0, new(big.Rat)
		for _, p := range parts {
			sum += float64(p) / 1000
			exact.Add(exact, big.NewRat(int64(p), 1000))
		}
		if want, _ := exact.Float64(); affinity.Rounded(sum) != want {
			t.Fatalf("%v thousandths add up to %v, rounded %v, want %v", parts, sum, affinity.Rounded(sum), want)
		}
	})
}

func TestRoundedAtTheEnds(t *testing.T) {
	for _, score := range []float64{
		0, math.Copysign(0, -1), 5e-324, 1e-300, math.MaxFloat64, -math.MaxFloat64, math.Inf(1), math.Inf(-1), 1, 10, 0.1, 0.01,
	} {
		if got := affinity.Rounded(score); got != score || math.Signbit(got) != math.Signbit(score) {
			t.Errorf("Rounded(%v) = %v", score, got)
		}
	}
	if got := affinity.Rounded(math.NaN()); !math.IsNaN(got) {
		t.Errorf("Rounded(NaN) = %v", got)
	}
}

func BenchmarkRounded(b *testing.B) {
	sum := 0.0
	for i := 0; b.Loop(); i++ {
		sum += affinity.Rounded(float64(i&1023) * 0.001)
	}
	_ = sum
}
