package affinity_test

import (
	"encoding/binary"
	"hash/crc32"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/local/affinitytest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

func TestProfileRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProfile(t)
		before := []byte("kept")
		b := p.AppendBinary(slices.Clone(before))
		if string(b[:4]) != "kept" {
			t.Fatal("AppendBinary overwrote dst")
		}
		limit := rapid.IntRange(-1, 25).Draw(t, "limit")
		got, err := affinity.ParseProfile(b[4:], limit)
		must.Succeed(t, err)
		want := p
		if limit > 0 && limit < len(want.Affinities) {
			want.Affinities = want.Affinities[:limit]
		}
		clear(b) // the profile must not depend on it any more
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("limit %d (-want +got):\n%s", limit, diff)
		}
	})
}

func TestComputedProfileRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, w := drawStrategy(t), drawWindow(t)
		p := score(drawEvents(t, w), s, w)
		got, err := affinity.ParseProfile(p.AppendBinary(nil), 0)
		must.Succeed(t, err)
		if diff := cmp.Diff(p, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}

// TestStoredFormats parses bytes that are written out here, so that a change of
// the codec cannot change the formats unnoticed.
func TestStoredFormats(t *testing.T) {
	score := binary.LittleEndian.AppendUint64(nil, math.Float64bits(1.5))
	stored := func(format byte, halfLife ...byte) []byte {
		b := append([]byte{format, 0, 0, 0, 0}, 14, 180, 1, 20, 0, 18, 22, 1, 1) // six numbers, known, one half-life
		b = append(b, halfLife...)
		return seal(append(append(b, 1, 1, 'f', 1, 0, 1, 'v'), score...))
	}
	for name, test := range map[string]struct {
		stored   []byte
		halfLife string
	}{
		"days":         {stored(2, 30), "30"},
		"many days":    {stored(2, 0x80|66, 28), "3650"},
		"days as text": {stored(3, 3, '3', '0', 'd'), "30d"},
		"hours":        {stored(3, 3, '1', '2', 'h'), "12h"},
		"minutes":      {stored(3, 2, '5', 'm'), "5m"},
	} {
		t.Run(name, func(t *testing.T) {
			want := affinity.Profile{
				StrategyVersion: 7, RetentionDays: 90, Anchor: 10, LastEventAt: 9, Until: 11, Known: true, Total: 1,
				HalfLives:  []strategy.HalfLife{parseHalfLife(t, test.halfLife)},
				Affinities: []affinity.Affinity{{Facet: "f", Value: "v", Scores: []float64{1.5}}},
			}
			got, err := affinity.ParseProfile(test.stored, 0)
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Errorf("error %v, (-want +got):\n%s", err, diff)
			}
			if b := want.AppendBinary(nil); string(b) != string(test.stored) {
				t.Errorf("written as\n% x, want\n% x", b, test.stored)
			}
		})
	}
}

func TestStoredProfileSize(t *testing.T) {
	p := benchProfile(30)
	b := p.AppendBinary(nil)
	values := 0
	for _, a := range p.Affinities {
		values += len(a.Value)
	}
	if most := values + 10*len(p.Affinities) + 80; len(b) > most {
		t.Errorf("%d affinities with %d bytes of values take %d bytes, want at most %d", len(p.Affinities), values, len(b), most)
	}
}

func TestParseProfileDetectsDamage(t *testing.T) {
	b := score(benchEvents()[:3], benchStrategy(30, 7), affinity.Window{Now: now}).AppendBinary(nil)
	affinitytest.DetectsDamage(t, b, func(b []byte) bool {
		_, err := affinity.ParseProfile(b, 1)
		return err == nil
	})
}

func TestParseProfileErrors(t *testing.T) {
	one := affinity.Profile{Affinities: []affinity.Affinity{{Facet: "f", Value: "v", Scores: []float64{1}}}}
	scored := func(score float64) []byte {
		p := one
		p.Affinities = []affinity.Affinity{{Facet: "f", Value: "v", Scores: []float64{score}}}
		return p.AppendBinary(nil)
	}
	tests := map[string]struct {
		stored []byte
		want   string
	}{
		"nothing":            {nil, "0 bytes: too short"},
		"another format":     {append([]byte{1}, one.AppendBinary(nil)[1:]...), "format 1 is not known"},
		"damage":             {append(one.AppendBinary(nil), 0), "checksum does not match"},
		"bytes left over":    {seal(append(one.AppendBinary(nil), 0)), "damaged, though its checksum matches"},
		"no header":          {seal(make([]byte, 5)), "damaged, though its checksum matches"},
		"a negative score":   {scored(-1), "damaged, though its checksum matches"},
		"an infinite score":  {scored(math.Inf(1)), "damaged, though its checksum matches"},
		"a score of nothing": {scored(math.NaN()), "damaged, though its checksum matches"},
		// Six numbers, flags and no half-life, then more facets or affinities
		// than there is room for.
		"countless facets":         {seal(append(make([]byte, 13), 128, 128, 128, 128, 128, 128, 8)), "damaged"},
		"countless affinities":     {seal(append(make([]byte, 14), 128, 128, 128, 128, 128, 128, 8)), "damaged"},
		"a half-life of 0 days":    {seal(append(make([]byte, 12), 1, 0, 0, 0)), "damaged"},
		"a half-life of ages":      {seal(append(make([]byte, 12), 1, 0x80|67, 28, 0, 0)), "damaged"},
		"an event half-life":       {seal(append(append([]byte{3}, make([]byte, 11)...), 1, 2, '2', 'e', 0, 0)), "damaged"},
		"a half-life of no length": {seal(append(append([]byte{3}, make([]byte, 11)...), 1, 0, 0, 0)), "damaged"},
		"a facet not there":        {seal(append(make([]byte, 14), 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)), "damaged"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p, err := affinity.ParseProfile(test.stored, 0)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %+v and error %v, want %q", p, err, test.want)
			}
		})
	}
}

// seal makes the first bytes of b right, so that what follows them is read.
func seal(b []byte) []byte {
	if b[0] != 3 {
		b[0] = 2
	}
	binary.LittleEndian.PutUint32(b[1:], crc32.Checksum(b[5:], crc32.MakeTable(crc32.Castagnoli)))
	return b
}

func FuzzParseProfile(f *testing.F) {
	f.Add(affinity.Profile{}.AppendBinary(nil), 0)
	f.Add(score(benchEvents()[:2], benchStrategy(), affinity.Window{Now: now}).AppendBinary(nil), 3)
	f.Add(score(benchEvents()[:2], benchStrategy(30, 7), affinity.Window{Now: now, RetentionDays: 90}).AppendBinary(nil), 0)
	hours := benchStrategy()
	hours.HalfLives = []strategy.HalfLife{parseHalfLife(f, "12h"), strategy.Days(30)}
	f.Add(score(benchEvents()[:2], hours, affinity.Window{Now: now}).AppendBinary(nil), 0)
	f.Fuzz(func(t *testing.T, b []byte, limit int) {
		if _, err := affinity.ParseProfile(b, limit); err == nil && len(b) < 5 {
			t.Error("parsed less than a header")
		}
		if len(b) < 5 {
			return
		}
		p, err := affinity.ParseProfile(seal(slices.Clone(b)), limit)
		if err != nil {
			return
		}
		if len(p.Affinities) > p.Total || limit > 0 && len(p.Affinities) > limit || len(p.Affinities)*10 > len(b) {
			t.Errorf("%d of %d affinities, limit %d, from %d bytes", len(p.Affinities), p.Total, limit, len(b))
		}
		p.Total = len(p.Affinities)
		again, err := affinity.ParseProfile(p.AppendBinary(nil), 0)
		if diff := cmp.Diff(p, again, cmpopts.EquateEmpty()); err != nil || diff != "" {
			t.Errorf("round trip: error %v\n%s", err, diff)
		}
	})
}
