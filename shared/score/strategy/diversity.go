package strategy

import (
	"errors"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	// DefaultLambda is the lambda of a Diversity that gives neither lambda nor
	// maxPerValue: an item with the filters of one before it loses 3/7. The
	// README of package ranking holds the measurements.
	DefaultLambda = 0.7
	// MaxPerValue is the highest maxPerValue: the candidates of a request.
	MaxPerValue = 5_000
)

// Diversity says how much the items of an order must differ from each other. A
// request gives it, or the definition of a feed. Package ranking defines what it
// does to an order.
type Diversity struct {
	// Facet is the facet by whose values items differ. Empty: by all filters.
	Facet string `json:"facet,omitempty"`
	// Lambda is above 0 and at most 1: 1 ranks by score alone, less takes more
	// from the score of an item for what it shares with those before it. 0 is
	// absent.
	Lambda float64 `json:"lambda,omitempty"`
	// MaxPerValue is how many items with the same value of Facet may stand before
	// the others, 1 to MaxPerValue. 0 is absent: no bound.
	MaxPerValue int `json:"maxPerValue,omitempty"`
}

// LambdaOrDefault returns the lambda that ranks: without one, DefaultLambda, or 1
// if MaxPerValue is given.
func (d Diversity) LambdaOrDefault() float64 {
	switch {
	case d.Lambda != 0:
		return d.Lambda
	case d.MaxPerValue != 0:
		return 1
	}
	return DefaultLambda
}

// Validate checks d against the limits. It returns the first fault as a
// *fault.Error, or nil.
func (d Diversity) Validate() error {
	switch {
	case len(d.Facet) > MaxName:
		return invalid("diversity.facet must have at most %d bytes, got %d", MaxName, len(d.Facet))
	case !(d.Lambda >= 0 && d.Lambda <= 1): // not a number is neither
		return lambdaFault(d.Lambda)
	case d.MaxPerValue < 0 || d.MaxPerValue > MaxPerValue:
		return maxPerValueFault(d.MaxPerValue)
	case d.MaxPerValue > 0 && d.Facet == "":
		return invalid("diversity.maxPerValue needs diversity.facet: the facet whose values it counts")
	}
	return nil
}

func lambdaFault(got float64) error {
	return invalid("diversity.lambda must be above 0 and at most 1, got %g", got)
}

func maxPerValueFault(got int) error {
	return invalid("diversity.maxPerValue must be an integer from 1 to %d, got %d", MaxPerValue, got)
}

// DecodeDiversity decodes the JSON value of a key diversity: an object with the
// optional keys facet, lambda and maxPerValue. null equals absent, for each of
// them and for the object, which is then nil. It refuses unknown and repeated
// keys, other types and values beyond the limits. Every error is a *fault.Error.
func DecodeDiversity(b []byte) (*Diversity, error) {
	var w *struct {
		Facet       *string  `json:"facet"`
		Lambda      *float64 `json:"lambda"`
		MaxPerValue *int     `json:"maxPerValue"`
	}
	if err := json.Unmarshal(b, &w, json.RejectUnknownMembers(true), jsontext.AllowInvalidUTF8(true)); err != nil {
		return nil, diversityFault(err)
	}
	if w == nil {
		return nil, nil
	}
	var d Diversity
	if w.Facet != nil {
		if d.Facet = *w.Facet; d.Facet == "" {
			return nil, invalid("diversity.facet must not be empty")
		}
	}
	if w.Lambda != nil {
		if d.Lambda = *w.Lambda; d.Lambda <= 0 {
			return nil, lambdaFault(d.Lambda)
		}
	}
	if w.MaxPerValue != nil {
		if d.MaxPerValue = *w.MaxPerValue; d.MaxPerValue <= 0 {
			return nil, maxPerValueFault(d.MaxPerValue)
		}
	}
	return &d, d.Validate()
}

// diversityFault converts the JSON library's error to a message that names the
// key.
func diversityFault(err error) error {
	var syntax *jsontext.SyntacticError
	var semantic *json.SemanticError
	switch {
	case errors.As(err, &syntax) && syntax.Err == jsontext.ErrDuplicateName:
		return invalid("diversity.%s is there twice", shorten(syntax.JSONPointer.LastToken()))
	case !errors.As(err, &semantic):
		return invalid("diversity cannot be read: %s", reason(err))
	case semantic.Err == json.ErrUnknownName:
		return invalid("Unknown field %s in diversity", quote(semantic.JSONPointer.LastToken()))
	}
	path := strings.TrimSuffix("diversity."+semantic.JSONPointer.LastToken(), ".")
	return invalid("%s must be %s, got %s", path, wanted(semantic.GoType), got(semantic))
}
