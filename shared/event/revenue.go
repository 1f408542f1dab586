package event

import (
	"regexp"
	"strconv"
	"strings"
)

// Revenue returns what a conversion has earned, and its currency in capital letters, "" if the event names none: the
// sum of price x quantity over its objects or, if none has a price, the value of the event. A quantity that is absent
// is 1. An addition to a cart earns nothing, and no other type of events does.
func (e *Event) Revenue() (amount float64, currency string) {
	if e.Type != Conversion || e.Subtype == "addToCart" || e.details == nil {
		return 0, ""
	}
	priced := false
	for _, o := range e.details.objectData {
		price, ok := o.price.amount()
		if !ok {
			continue
		}
		quantity := 1.0
		if o.quantity.kind == scalarNumber {
			quantity = o.quantity.number
		}
		amount, priced = amount+price*quantity, true
	}
	if !priced {
		amount, _ = e.details.value.amount()
	}
	return amount, strings.ToUpper(e.details.currency)
}

// decimal is a number with a currency or a symbol before or after it. A text with two numbers, or with commas, is
// none: nobody knows which comma is a point.
var decimal = regexp.MustCompile(`^[^0-9.,+-]*([+-]?[0-9]+(?:\.[0-9]+)?)[^0-9.,]*$`)

// amount returns the number that a scalar stands for, and false if it is none.
func (s scalar) amount() (float64, bool) {
	switch s.kind {
	case scalarNumber:
		return s.number, true
	case scalarString:
		if found := decimal.FindStringSubmatch(s.text); found != nil {
			n, err := strconv.ParseFloat(found[1], 64)
			return n, err == nil
		}
	}
	return 0, false
}
