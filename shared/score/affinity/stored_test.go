package affinity_test

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// readStored is ParseProfile through Stored.
func readStored(s *affinity.Stored, b []byte) (affinity.Profile, error) {
	if err := s.Begin(b); err != nil {
		return affinity.Profile{}, err
	}
	p := s.Outline
	for {
		facet, value, scores, ok := s.Next()
		if !ok {
			return p, s.End()
		}
		p.Affinities = append(p.Affinities, affinity.Affinity{
			Facet: string(s.Facets()[facet]), Value: string(value), Scores: slices.Clone(scores),
		})
	}
}

// A Stored reads profile after profile as ParseProfile does.
func TestStoredReadsAsParseDoes(t *testing.T) {
	var s affinity.Stored
	rapid.Check(t, func(t *rapid.T) {
		p := drawProfile(t)
		got, err := readStored(&s, p.AppendBinary(nil))
		if err != nil {
			t.Fatal(err)
		}
		if s.LeavesOut != (len(p.LeftOut) > 0) {
			t.Fatalf("leaves out %v, and %d facets do", s.LeavesOut, len(p.LeftOut))
		}
		p.Total, p.LeftOut = 0, nil
		if diff := cmp.Diff(p, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}

// Older code stored profiles that list more than the bounds permit.
func TestStoredReadsWithinTheBounds(t *testing.T) {
	p := affinity.Profile{Until: math.MaxInt64}
	for i := range 1_500 {
		p.Affinities = append(p.Affinities, affinity.Affinity{Facet: "f", Value: fmt.Sprint(i), Scores: []float64{float64(2_000 - i)}})
	}
	p.Total = len(p.Affinities)
	var s affinity.Stored
	got, err := readStored(&s, p.AppendBinary(nil))
	if err != nil || len(got.Affinities) != 1_000 || !s.LeavesOut {
		t.Errorf("%d affinities, leaves out %v, %v; want 1000", len(got.Affinities), s.LeavesOut, err)
	}
}

func FuzzStored(f *testing.F) {
	for _, p := range []affinity.Profile{
		{HalfLives: strategy.InDays(30, 7), Known: true, Until: 5, Affinities: []affinity.Affinity{{Facet: "a", Value: "b", Scores: []float64{2, 1}}}, Total: 1},
		{Until: math.MaxInt64, Affinities: []affinity.Affinity{{Facet: "a", Value: "b", Scores: []float64{2}}}, Total: 5},
	} {
		f.Add(p.AppendBinary(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 5 {
			binary.LittleEndian.PutUint32(b[1:], crc32.Checksum(b[5:], crc32.MakeTable(crc32.Castagnoli)))
		}
		var s affinity.Stored
		got, err := readStored(&s, b)
		p, wrong := affinity.ParseProfile(b, 0)
		if wrong != nil {
			return
		}
		p.Total, p.LeftOut = 0, nil
		if diff := cmp.Diff(p, got, cmpopts.EquateEmpty()); diff != "" || err != nil {
			t.Fatalf("%v (-want +got):\n%s", err, diff)
		}
	})
}
