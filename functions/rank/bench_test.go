package rank

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/affinityengine/affinity/shared/api"
)

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
