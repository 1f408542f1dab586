package rank

import (
	"errors"
	"testing"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/fault"
)

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
