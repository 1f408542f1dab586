package rank

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/fault"
)

// The encoder writes what package json writes, but for the form of numbers.
func TestEncode(t *testing.T) {
	fallback, asOf := api.FallbackPopularity, api.AtMillis(1_795_176_000_000)
	for _, a := range []api.RankAnswer{
		{ID: "a", Items: []api.RankedItem{}},
		{ID: "a", Took: 3, StrategyVersion: 2, ScoringVersion: 1, CrowdAsOf: &asOf, Fallback: &fallback, Items: []api.RankedItem{
			{ObjectID: "plain", Score: 1.25},
			{ObjectID: "q\"uote\\ \x00\n<&>\u2028\uFFFD é", Score: -0.25},
			{ObjectID: "tiny", Score: 5e-324}, {ObjectID: "large", Score: math.MaxFloat64}, {ObjectID: "million", Score: 1e6}, {ObjectID: "0", Score: 1e-7},
			{ObjectID: "nothing speaks for it", Features: []api.RankFeature{}},
			{ObjectID: "explained", Score: 0.1, Features: []api.RankFeature{{Name: "affinity", Value: 0.1, Parts: []api.RankPart{{Name: "a:b", Value: 0.1}}}}},
		}},
	} {
		encoded, err := encode(nil, a)
		if err != nil {
			t.Fatal(err)
		}
		want, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		var got, wanted any
		if err := json.Unmarshal(encoded, &got); err != nil {
			t.Fatalf("%v: %s", err, encoded)
		}
		if err := json.Unmarshal(want, &wanted); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(wanted, got); diff != "" {
			t.Errorf("(-json +encode):\n%s", diff)
		}
	}
}

func bodies(b *testing.B) (ids, items []byte) {
	b.Helper()
	byID, byItem := api.RankRequest{UserToken: "u", Index: "i"}, api.RankRequest{UserToken: "u", Index: "i"}
	for i := range 1000 {
		id := fmt.Sprintf("product-%06d", i*7919%100_000)
		byID.ObjectIDs = append(byID.ObjectIDs, id)
		byItem.Items = append(byItem.Items, api.RankItem{ID: id, Fields: []api.RankField{{Name: api.FieldRelevancy, Value: 20 - float64(i)/100}}})
	}
	var err error
	if ids, err = json.Marshal(byID); err == nil {
		items, err = json.Marshal(byItem)
	}
	if err != nil {
		b.Fatal(err)
	}
	return ids, items
}

// BenchmarkDecode decodes a request with 1,000 candidates.
func BenchmarkDecode(b *testing.B) {
	ids, items := bodies(b)
	for name, body := range map[string][]byte{"objectIDs": ids, "items": items} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				r, err := decode(body, nil)
				if err != nil || len(r.Candidates) != 1000 {
					b.Fatal(len(r.Candidates), err)
				}
				r.release()
			}
		})
	}
}

// BenchmarkEncode encodes an answer with 1,000 items.
func BenchmarkEncode(b *testing.B) {
	a := api.RankAnswer{ID: "4f1c2a0d9b7e4c63a5d8f0e1b2c3d4e5"}
	for i := range 1000 {
		a.Items = append(a.Items, api.RankedItem{ObjectID: fmt.Sprintf("product-%06d", i), Score: 1 / float64(i+3)})
	}
	var buffer []byte
	b.ReportAllocs()
	for b.Loop() {
		var err error
		if buffer, err = encode(buffer[:0], a); err != nil {
			b.Fatal(err)
		}
	}
}

// The options of any URL are read, or refused in words.
func FuzzDecodeBoost(f *testing.F) {
	for _, query := range []string{
		"engine=algolia", "engine=algolia&impact=0&limit=100&halfLife=12h&fields=a,b&fieldMap=a:x.y:z,b:%C3%BC&consistency=strong&mode=m",
		"engine=a;b", "engine=%zz", "engine=a&engine=b", "fields=,", "fieldMap=a:", "fieldMap=:", "engine=&limit=%2B5", "x-algolia-agent=%FF&engine=%FF", "&&==",
	} {
		f.Add(query)
	}
	f.Fuzz(func(t *testing.T, query string) {
		q, err := decodeBoost(query)
		var refused *fault.Error
		if err != nil {
			if !errors.As(err, &refused) || refused.Kind != fault.Invalid || refused.Message == "" || len(refused.Message) > 1000 {
				t.Fatalf("%q: %v", query, err)
			}
			return
		}
		if q.Limit < 1 || q.Limit > api.MaxBoostAffinities || q.Impact < 0 || q.Impact > 100 || len(q.Fields) > api.MaxBoostFields || len(q.FieldMap) > api.MaxBoostFields {
			t.Fatalf("%q: %+v", query, q)
		}
		for facet, field := range q.FieldMap {
			if facet == "" || field == "" {
				t.Fatalf("%q: %q is mapped to %q", query, facet, field)
			}
		}
	})
}
