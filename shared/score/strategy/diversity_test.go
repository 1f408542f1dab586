package strategy_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/score/strategy"
)

func TestDecodeDiversity(t *testing.T) {
	for body, want := range map[string]strategy.Diversity{
		`{}`:                                   {},
		`{"facet":null,"lambda":null}`:         {},
		`{"lambda":1}`:                         {Lambda: 1},
		`{"lambda":5e-324}`:                    {Lambda: 5e-324},
		`{"facet":"brand","lambda":0.25}`:      {Facet: "brand", Lambda: 0.25},
		`{"maxPerValue":5000,"facet":"brand"}`: {Facet: "brand", MaxPerValue: 5000},
	} {
		d, err := strategy.DecodeDiversity([]byte(body))
		if err != nil || d == nil || *d != want {
			t.Errorf("%s = %+v, %v, want %+v", body, d, err, want)
			continue
		}
		stored, _ := json.Marshal(d) // as the definition of a feed keeps it
		if again, err := strategy.DecodeDiversity(stored); err != nil || !cmp.Equal(again, d) {
			t.Errorf("%s is stored as %s and read as %+v, %v", body, stored, again, err)
		}
	}
	if d, err := strategy.DecodeDiversity([]byte("null")); d != nil || err != nil {
		t.Errorf("null = %+v, %v", d, err)
	}
}

func TestDecodeDiversityRefuses(t *testing.T) {
	for body, want := range map[string]string{
		`{"lambda":0}`:                     "diversity.lambda must be above 0 and at most 1, got 0",
		`{"lambda":-0.1}`:                  "diversity.lambda must be above 0 and at most 1, got -0.1",
		`{"lambda":1.01}`:                  "diversity.lambda must be above 0 and at most 1, got 1.01",
		`{"lambda":1e999}`:                 "diversity.lambda must be a number, got 1e999",
		`{"lambda":"0.5"}`:                 "diversity.lambda must be a number, got a string",
		`{"facet":""}`:                     "diversity.facet must not be empty",
		`{"facet":["brand"]}`:              "diversity.facet must be a string, got a list",
		`{"maxPerValue":2}`:                "diversity.maxPerValue needs diversity.facet: the facet whose values it counts",
		`{"facet":"b","maxPerValue":0}`:    "diversity.maxPerValue must be an integer from 1 to 5000, got 0",
		`{"facet":"b","maxPerValue":2.5}`:  "diversity.maxPerValue must be an integer, got 2.5",
		`{"facet":"b","maxPerValue":5001}`: "diversity.maxPerValue must be an integer from 1 to 5000, got 5001",
		`{"Lambda":0.5}`:                   `Unknown field "Lambda" in diversity`,
		`{"lambda":1,"lambda":1}`:          "diversity.lambda is there twice",
		`"mmr"`:                            "diversity must be an object, got a string",
		`[]`:                               "diversity must be an object, got a list",
		`{"facet":"` + strings.Repeat("x", 501) + `"}`: "diversity.facet must have at most 500 bytes, got 501",
	} {
		if d, err := strategy.DecodeDiversity([]byte(body)); err == nil || err.Error() != want {
			t.Errorf("%.60s = %+v, %v, want %s", body, d, err, want)
		}
	}
	if err := (strategy.Diversity{Lambda: math.NaN()}).Validate(); err == nil {
		t.Error("a lambda that is not a number is valid")
	}
}

func TestLambdaOrDefault(t *testing.T) {
	for d, want := range map[strategy.Diversity]float64{
		{}: strategy.DefaultLambda, {Facet: "brand"}: strategy.DefaultLambda, {Lambda: 0.2}: 0.2,
		{Facet: "brand", MaxPerValue: 2}: 1, {Facet: "brand", MaxPerValue: 2, Lambda: 0.2}: 0.2,
	} {
		if got := d.LambdaOrDefault(); got != want {
			t.Errorf("lambda of %+v = %v, want %v", d, got, want)
		}
	}
}
