package shop_test

import (
	"math"
	"testing"

	"github.com/affinityengine/affinity/scripts/affinity/shop"
)

// What buyers do is on average what is expected of them, and does not depend on what they did before.
func TestBuyersDoWhatIsExpected(t *testing.T) {
	t.Parallel()
	s := shop.New(1)
	var visits, came, clicks, orders, expected, logs, squares float64
	for _, b := range s.Buyers(200) {
		for day := range 20 {
			page := s.Page(day)
			visits++
			if b.Comes(day) {
				came++
			}
			expected += b.Expects(page)
			for _, did := range b.Visit(day, page) {
				clicks++
				if did.Amount > 0 {
					log := math.Log(did.Amount / shop.OrderMedian)
					orders, logs, squares = orders+1, logs+log, squares+log*log
				}
			}
		}
	}
	for name, c := range map[string]struct{ got, want, slack float64 }{
		"share of the days on which they come": {came / visits, shop.ComeShare, 0.02},
		"clicks / expected ones":               {clicks / expected, 1, 0.06},
		"orders / clicks":                      {orders / clicks, shop.BuyShare, 0.06},
		"mean of the logarithm of orders":      {logs / orders, 0, 0.2},
		"mean square of the logarithm":         {squares / orders, shop.OrderSigma * shop.OrderSigma, 0.3},
	} {
		if math.Abs(c.got-c.want) > c.slack {
			t.Errorf("%s: %.3f, want %.3f", name, c.got, c.want)
		}
	}
}

// An order that shows what a buyer loves first makes them click more, and the same draws decide.
func TestBuyersPreferTheirTaste(t *testing.T) {
	t.Parallel()
	s := shop.New(1)
	worst, best := 0.0, 0.0
	for _, b := range s.Buyers(100) {
		page := s.Page(3)
		at := 0
		for i := range page { // the object with the highest chance first
			if b.Expects(page[i:i+1]) > b.Expects(page[at:at+1]) {
				at = i
			}
		}
		worst += b.Expects(page)
		page[0], page[at] = page[at], page[0]
		best += b.Expects(page)
	}
	if best < 1.3*worst {
		t.Errorf("%.1f clicks with the best product first, %.1f without", best, worst)
	}
}
