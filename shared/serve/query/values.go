package query

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/affinityengine/affinity/shared/admission"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/rank/segment"
)

// Value is a value of a facet with the number of users who score it above 0.
type Value struct {
	Value string
	Users int
	// Events is how many events that score have the value, each counted once for each of
	// its objects that has it; -1: not known. CountEvents sets it.
	Events int64
}

// Values are the values of a facet that most users have.
type Values struct {
	Values []Value // by users, the most first, then by value
	Total  int     // of all values of the facet
	AsOf   int64   // ms: when the lists were built
}

// Values counts the holders of each value of a facet in the last build, whose numbers it
// reads: changes since do not count. It returns at most limit values. Its errors are
// those of Page.
func (r *Reader) Values(ctx context.Context, app config.App, facet string, limit int) (Values, error) {
	v, err := r.view(ctx, app)
	if err != nil {
		return Values{}, err
	}
	holders := map[string]int{}
	count := func(_ segment.PartID, cell []byte) error {
		return segment.EachValue(cell, func(f, value string, n int) error {
			if f != facet {
				return nil
			}
			if _, known := holders[value]; !known {
				if err := admission.Take(ctx, int64(valueBytes+len(value))); err != nil {
					return err
				}
				value = strings.Clone(value)
			}
			holders[value] += n
			return nil
		})
	}
	for _, of := range v.rooms {
		var parts []segment.PartID
		for _, p := range of.manifest.Parts {
			if !p.Delta {
				parts = append(parts, p.ID)
			}
		}
		if err := of.store.Segments.ScanSegmentValues(ctx, app.ID, parts, count); err != nil {
			return Values{}, err
		}
	}
	all := Values{Total: len(holders), AsOf: v.builtAt}
	for value, n := range holders {
		all.Values = append(all.Values, Value{value, n, -1})
	}
	slices.SortFunc(all.Values, func(a, b Value) int {
		return cmp.Or(b.Users-a.Users, strings.Compare(a.Value, b.Value))
	})
	all.Values = all.Values[:min(limit, len(all.Values))]
	return all, nil
}

// valueBytes is what a value takes beside its text while Values counts.
const valueBytes = 100
