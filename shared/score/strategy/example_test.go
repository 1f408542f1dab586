package strategy_test

import (
	"fmt"
	"log"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

func ExampleDecode() {
	s, err := strategy.Decode([]byte(`{
		"eventsScoring": [{"eventType": "conversion", "eventName": "Product Bought", "score": 50}],
		"facetsScoring": [{"facetName": "color", "score": 100}],
		"personalizationImpact": 50,
		"halfLives": [30, 180],
		"aliases": {"color": {"Rouge": "Red"}}
	}`))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(s.EventScore(event.Conversion, "Product Bought"), s.FacetScore("color"), s.Alias("color", "Rouge"), s.HalfLives)
	// Output: 50 100 Red [30 180]
}

// Decode refuses a misspelt key and names it.
func ExampleDecode_misspelt() {
	_, err := strategy.Decode([]byte(`{"eventScoring": [], "facetsScoring": [], "personalizationImpact": 0}`))
	fmt.Println(err)
	// Output: Unknown field "eventScoring"
}
