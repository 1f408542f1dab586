package segment

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

func TestParseFilter(t *testing.T) {
	for text, want := range map[string]api.SegmentCondition{
		"brand:Nike":               {Filter: "brand:Nike"},
		" brand:Nike > 500 @30 ":   {Filter: "brand:Nike", Above: 500, HalfLife: strategy.Days(30)},
		"brand:Nike>0.5":           {Filter: "brand:Nike", Above: 0.5},
		"brand:Nike @30":           {Filter: "brand:Nike", HalfLife: strategy.Days(30)},
		"category:a > b > 2":       {Filter: "category:a > b", Above: 2},
		"category:a > b":           {Filter: "category:a > b"},
		"who:ann @home":            {Filter: "who:ann @home"},
		"category:Running shoes:x": {Filter: "category:Running shoes:x"},
	} {
		got, err := parseFilter(text)
		if err != nil || !cmp.Equal(got, want) {
			t.Errorf("%q: %+v, error %v; want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "brand", "brand:", ":Nike", "brand:Nike > -1", "> 5"} {
		if got, err := parseFilter(text); err == nil {
			t.Errorf("%q is %+v, want an error", text, got)
		}
	}
}
