package lift

import (
	"fmt"
	"math/big"
	"math/bits"
)

// sums are what an arm keeps of a metric: for each pair of buckets, that of a person's amount during the experiment
// and that of the days before it, the sums over the people in both. They are integers, so that sums of parts are
// exactly the sums of the whole, in any order. And a bound at the end of a bucket may be chosen later: the sums of
// bounded amounts follow from them. People with neither amount are in no cell.
type sums map[cell]*cellSums

// cell is a pair of buckets.
type cell struct{ now, before int16 }

// MarshalText returns the name of a cell in JSON.
func (c cell) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%d,%d", c.now, c.before), nil }

// UnmarshalText reads it.
func (c *cell) UnmarshalText(text []byte) error {
	if _, err := fmt.Sscanf(string(text), "%d,%d", &c.now, &c.before); err != nil {
		return fmt.Errorf("cell %q: must be two numbers: %w", text, err)
	}
	return nil
}

// cellSums are the sums of a cell: Y are amounts during the experiment, X those before it.
type cellSums struct {
	People int64   `json:"n"`
	Y      big.Int `json:"y"`
	X      big.Int `json:"x"`
	YY     big.Int `json:"yy"`
	XX     big.Int `json:"xx"`
	XY     big.Int `json:"xy"`
}

// bucket returns the bucket of an amount. Up to 7 each amount has its own. From there on, four buckets of equal width
// share the amounts between a power of two and the next one. The bucket of -v is minus that of v.
func bucket(v int64) int16 {
	if v < 0 {
		return -bucket(-v)
	}
	shift := max(bits.Len64(uint64(v))-3, 0)
	return int16(shift*4 + int(v>>shift))
}

// end returns the largest amount of a bucket that is not negative.
func end(b int16) int64 {
	shift := max((b-4)/4, 0)
	return (int64(b-4*shift)+1)<<shift - 1
}

func magnitude(b int16) int16 { return max(b, -b) }

// add counts a person.
func (s sums) add(y, x int64) {
	if y == 0 && x == 0 {
		return
	}
	at := cell{bucket(y), bucket(x)}
	c := s[at]
	if c == nil {
		c = &cellSums{}
		s[at] = c
	}
	c.People++
	var a, b, product big.Int
	a.SetInt64(y)
	b.SetInt64(x)
	c.Y.Add(&c.Y, &a)
	c.X.Add(&c.X, &b)
	c.YY.Add(&c.YY, product.Mul(&a, &a))
	c.XX.Add(&c.XX, product.Mul(&b, &b))
	c.XY.Add(&c.XY, product.Mul(&a, &b))
}

// merge adds the sums of other people.
func (s sums) merge(other sums) {
	for at, o := range other {
		c := s[at]
		if c == nil {
			c = &cellSums{}
			s[at] = c
		}
		c.People += o.People
		c.Y.Add(&c.Y, &o.Y)
		c.X.Add(&c.X, &o.X)
		c.YY.Add(&c.YY, &o.YY)
		c.XX.Add(&c.XX, &o.XX)
		c.XY.Add(&c.XY, &o.XY)
	}
}

// bounds are the buckets at whose end amounts are cut: an amount beyond counts as the end.
type bounds struct{ now, before int16 }

// bound returns the first bucket that leaves at most one in rare of the people with an amount beyond it, and how
// many it leaves there. people are their numbers by the magnitude of the bucket.
func bound(people map[int16]int64) (bucket int16, beyond int64) {
	var all int64
	for b, n := range people {
		bucket = max(bucket, b)
		all += n
	}
	for bucket > 0 && beyond+people[bucket] <= all/rare {
		beyond += people[bucket]
		bucket--
	}
	return bucket, beyond
}

// boundsOf returns the bounds of arms, which are one for all of them, and how many people have an amount beyond it.
func boundsOf(arms []sums) (b bounds, beyond int64) {
	now, before := map[int16]int64{}, map[int16]int64{}
	for _, s := range arms {
		for at, c := range s {
			if at.now != 0 {
				now[magnitude(at.now)] += c.People
			}
			if at.before != 0 {
				before[magnitude(at.before)] += c.People
			}
		}
	}
	b.now, beyond = bound(now)
	b.before, _ = bound(before)
	return b, beyond
}

// moments are the mean and the spread of the people of an arm, their amounts cut at bounds.
type moments struct {
	people, some float64 // some have an amount during the experiment
	y, x         float64 // means
	yy, xx, xy   float64 // variances and covariance
}

// moments returns those of an arm of so many people.
func (s sums) moments(people int64, b bounds) moments {
	total, some := &cellSums{}, int64(0)
	for at, c := range s {
		if at.now != 0 {
			some += c.People
		}
		total.addCut(at, c, b)
	}
	n := new(big.Int).SetInt64(people)
	mean := func(sum *big.Int) float64 { return ratio(sum, n) }
	covariance := func(product, a, b *big.Int) float64 {
		if people < 2 {
			return 0
		}
		var nominator, ab big.Int
		nominator.Sub(nominator.Mul(n, product), ab.Mul(a, b))
		return ratio(&nominator, new(big.Int).Mul(n, big.NewInt(people-1)))
	}
	return moments{
		people: float64(people), some: float64(some), y: mean(&total.Y), x: mean(&total.X),
		yy: covariance(&total.YY, &total.Y, &total.Y), xx: covariance(&total.XX, &total.X, &total.X),
		xy: covariance(&total.XY, &total.X, &total.Y),
	}
}

// addCut adds a cell, its amounts cut at bounds.
func (t *cellSums) addCut(at cell, c *cellSums, b bounds) {
	people := big.NewInt(c.People)
	y, x, yy, xx, xy := &c.Y, &c.X, &c.YY, &c.XX, &c.XY
	mul := func(a, b *big.Int) *big.Int { return new(big.Int).Mul(a, b) }
	if magnitude(at.now) > b.now { // each amount is the bound
		cut := cutAt(b.now, at.now)
		y, yy, xy = mul(people, cut), mul(people, mul(cut, cut)), mul(cut, x)
	}
	if magnitude(at.before) > b.before {
		cut := cutAt(b.before, at.before)
		x, xx, xy = mul(people, cut), mul(people, mul(cut, cut)), mul(cut, y)
	}
	t.Y.Add(&t.Y, y)
	t.X.Add(&t.X, x)
	t.YY.Add(&t.YY, yy)
	t.XX.Add(&t.XX, xx)
	t.XY.Add(&t.XY, xy)
}

// cutAt returns what an amount beyond the bound counts.
func cutAt(bound, like int16) *big.Int {
	if like < 0 {
		return big.NewInt(-end(bound))
	}
	return big.NewInt(end(bound))
}

// ratio returns a/b, 0 if b is 0.
func ratio(a, b *big.Int) float64 {
	if b.Sign() == 0 {
		return 0
	}
	f, _ := new(big.Rat).SetFrac(a, b).Float64()
	return f
}
