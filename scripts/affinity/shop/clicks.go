package shop

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
	"strconv"
)

// The model of clicks: a buyer looks at the product at a place of a page with a chance that falls with the place, and
// clicks a product that they look at with a chance that only their taste decides.
const (
	// BuyShare is the chance that a click is followed by an order of the product.
	BuyShare = 0.3
	// Orders are log-normal: half of them are above OrderMedian, in euros, and OrderSigma is the standard deviation of
	// their logarithm.
	OrderMedian = 40.0
	OrderSigma  = 1.0
	// ComeShare is the chance that a buyer comes on a day.
	ComeShare = 0.3
	// PageSize is the number of products on a page.
	PageSize = 30
)

// The chances that a buyer clicks a product that they look at, by what they love of it.
const (
	LeastClicked = 0.02 // nothing
	MostClicked  = 0.8  // category, brand and color
)

// Buyer is a person who clicks and buys what they are shown. Their taste is that of a persona, and hidden: an engine
// sees what they do.
type Buyer struct {
	Token string
	shop  *Shop
	n     int
	loves []Filter
}

// Action is what a buyer did at a place of a page: a click, and an order of that product.
type Action struct {
	Place  int     // from 1
	Amount float64 // in euros, of an order; 0: they bought nothing
}

// draw is what chance decides about an object of a day for a buyer.
type draw struct{ click, buy, amount float64 }

// Buyers returns the first n buyers, of all personas in turn.
func (s *Shop) Buyers(n int) []Buyer {
	all := make([]Buyer, n)
	for i := range all {
		p := s.personas[i%len(s.personas)]
		last := len(p.Phases) - 1
		all[i] = Buyer{"buyer-" + strconv.Itoa(i), s, i, tasteOf(p.ID, last, i/len(s.personas)).loves(p.Phases[last])}
	}
	return all
}

// Page returns the products of the shop's page of a day, in its own order: the same for everybody.
func (s *Shop) Page(day int) []Object {
	r := s.random(streamPages + uint64(day)<<8)
	page := make([]Object, PageSize)
	for i, at := range r.Perm(len(s.objects))[:PageSize] {
		page[i] = s.objects[at]
	}
	return page
}

// looks returns the chance that a buyer looks at a place, from 1.
func looks(place int) float64 { return 1 / float64(place) }

// attraction returns the chance that the buyer clicks an object that they look at.
func (b Buyer) attraction(o Object) float64 {
	chance := LeastClicked
	for _, f := range b.loves {
		switch f {
		case Filter{"categories.lvl0", o.Categories.Lvl0}:
			chance *= 10
		case Filter{"brand", o.Brand}, Filter{"color", o.Color}:
			chance *= 2
		}
	}
	return chance
}

// Comes reports whether the buyer visits the shop on a day.
func (b Buyer) Comes(day int) bool { return b.random(day).Float64() < ComeShare }

// Visit returns what the buyer does on a page that shows objects in an order. What they would look at, click and buy is
// drawn for each place and each object of the day, so two orders are compared by the same draws.
func (b Buyer) Visit(day int, shown []Object) []Action {
	r := b.random(day)
	r.Float64() // whether they come
	looked := make([]float64, len(shown))
	for i := range looked {
		looked[i] = r.Float64()
	}
	draws := map[string]draw{}
	for _, o := range b.shop.Page(day) {
		draws[o.ObjectID] = draw{r.Float64(), r.Float64(), r.NormFloat64()}
	}
	var did []Action
	for i, o := range shown {
		drawn := draws[o.ObjectID]
		if looked[i] >= looks(i+1) || drawn.click >= b.attraction(o) {
			continue
		}
		a := Action{Place: i + 1}
		if drawn.buy < BuyShare {
			a.Amount = math.Round(100*OrderMedian*math.Exp(OrderSigma*drawn.amount)) / 100
		}
		did = append(did, a)
	}
	return did
}

// Expects returns how often the buyer clicks on average on a page that shows objects in an order. What they order
// and pay is in proportion.
func (b Buyer) Expects(shown []Object) (clicks float64) {
	for i, o := range shown {
		clicks += looks(i+1) * b.attraction(o)
	}
	return clicks
}

// random returns the draws of the buyer on a day.
func (b Buyer) random(day int) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(strconv.Itoa(b.n) + " " + strconv.Itoa(day)))
	return rand.New(rand.NewPCG(b.shop.seed, h.Sum64()))
}
