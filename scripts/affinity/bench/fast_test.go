package bench

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/affinity"
)

func scan(value []byte) (list []filterCount, err error) {
	var s scanner
	err = s.each(value, func(facet, value []byte, count int) {
		list = append(list, filterCount{string(facet), string(value), count})
	})
	return list, err
}

// What is written is read by both in the same way, whatever the names.
func TestFastReadsWhatIsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		counts := rapid.SliceOf(rapid.Custom(func(t *rapid.T) affinity.Count {
			text := rapid.OneOf(rapid.StringMatching(`[a-zA-Z0-9 _.-]*`), rapid.String(), rapid.StringOf(rapid.RuneFrom([]rune("\"\\<>&\u2028é\x00\x1f\x7f"))))
			return affinity.Count{Facet: text.Draw(t, "facet"), Value: text.Draw(t, "value"), N: rapid.IntRange(0, 999_999_999).Draw(t, "count")}
		})).Draw(t, "counts")
		value, _, err := appendNarrow(counts, nil)
		if err != nil {
			t.Fatal(err)
		}
		var want []filterCount
		if err := json.Unmarshal(value, &want); err != nil {
			t.Fatal(err)
		}
		got, err := scan(value)
		if err != nil {
			t.Fatalf("%s: %v", value, err)
		}
		if len(want) != len(got) || len(got) > 0 && !cmp.Equal(want, got) {
			t.Fatalf("%s: %v, want %v", value, got, want)
		}
	})
}

func TestFastRefuses(t *testing.T) {
	for _, value := range []string{
		"", "[", "]", "[]x", "[] ", "null", "{}", `[{}]`, `[{"facetName":"a","facetValue":"b","count":1}`, `[{"facetName":"a","facetValue":"b","count":1},]`,
		`[{"facetName":"a","facetValue":"b","count":01}]`, `[{"facetName":"a","facetValue":"b","count":-1}]`, `[{"facetName":"a","facetValue":"b","count":1.5}]`,
		`[{"facetName":"a","facetValue":"b","count":}]`, `[{"facetName":"a","facetValue":"b","count":1000000000}]`, `[{"facetName": "a","facetValue":"b","count":1}]`,
		`[{"facetValue":"b","facetName":"a","count":1}]`, `[{"facetName":"a\x","facetValue":"b","count":1}]`, "[{\"facetName\":\"a\n\",\"facetValue\":\"b\",\"count\":1}]",
		`[{"facetName":"a`, `[{"facetName":"a\`, `[{"facetName":"a\"`, `[{"facetName":"a","facetValue":"b","count":1}{"facetName":"a","facetValue":"b","count":1}]`,
	} {
		if list, err := scan([]byte(value)); err == nil {
			t.Errorf("%q is read as %v", value, list)
		}
	}
}

// Whatever it takes, encoding/json takes, and reads the same.
func FuzzFast(f *testing.F) {
	f.Add([]byte(`[]`))
	f.Add([]byte(`[{"facetName":"color","facetValue":"red \"x\" \u00e9 \ud83d\ude00","count":3},{"facetName":"","facetValue":"é","count":0}]`))
	f.Add([]byte(`[{"facetName":"a\ud800","facetValue":"\xff","count":999999999}]`))
	f.Fuzz(func(t *testing.T, value []byte) {
		got, err := scan(value)
		if err != nil {
			return
		}
		var want []filterCount
		if err := json.Unmarshal(value, &want); err != nil {
			t.Fatalf("%q is taken, encoding/json says %v", value, err)
		}
		if len(want) != len(got) || len(got) > 0 && !cmp.Equal(want, got) {
			t.Fatalf("%q: %v, want %v", value, got, want)
		}
	})
}
