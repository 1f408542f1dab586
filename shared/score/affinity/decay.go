package affinity

import "math"

const steps = 256 // per half-life; fractions holds 2^-(i/steps)

var fractions = func() (f [steps]float64) {
	for i := range f {
		f[i] = math.Exp2(-float64(i) / steps)
	}
	return f
}()

// exp2Neg returns 2^-x for x >= 0 with a relative error below 1e-15, in a
// fraction of the time of math.Exp2. It splits x into whole halvings, a table
// lookup for the next 8 bits, and a short Taylor series for the rest, which is
// at most 1/512.
func exp2Neg(x float64) float64 {
	if !(x < 1000) { // near the subnormals, where the exponent trick fails
		return math.Exp2(-x)
	}
	n := int(x*steps + 0.5)
	r := (x - float64(n)*(1.0/steps)) * -math.Ln2
	series := 1 + r*(1+r*(1.0/2+r*(1.0/6+r*(1.0/24))))
	return fractions[n%steps] * series * math.Float64frombits(uint64(1023-n/steps)<<52)
}
