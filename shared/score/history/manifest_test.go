package history_test

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/local/affinitytest"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/wire"
)

func TestPosOrder(t *testing.T) {
	ordered := []history.Pos{{Time: math.MinInt64}, {}, {ID: "a"}, {ID: "a\x00"}, {ID: "ab"}, {Time: 1}, history.End}
	for i, p := range ordered {
		for j, q := range ordered {
			if got, want := p.Compare(q), (history.Pos{Time: int64(i)}).Compare(history.Pos{Time: int64(j)}); got != want {
				t.Errorf("%v against %v: %d, want %d", p, q, got, want)
			}
		}
	}
	if next := (history.Pos{Time: 1, ID: "a"}).Next(); next != (history.Pos{Time: 1, ID: "a\x00"}) {
		t.Errorf("next is %v", next)
	}
}

// holds reports whether a range contains a position, computed without the
// package's own methods.
func holds(r history.Range, p history.Pos) bool { return r.From.Compare(p) <= 0 && p.Compare(r.To) < 0 }

func TestManifestCoverage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawManifest(t)
		for i, b := range m.Blocks {
			if b.From.Compare(b.To) >= 0 || i > 0 && m.Blocks[i-1].To.Compare(b.From) > 0 {
				t.Fatalf("block %d is empty or out of order: %+v", i, m.Blocks)
			}
		}
		from, p := drawPos(t, "from"), drawPos(t, "place")
		gaps := m.Gaps(from)
		for i, g := range gaps {
			if g.From.Compare(g.To) >= 0 || i > 0 && gaps[i-1].To.Compare(g.From) >= 0 {
				t.Fatalf("gap %d is empty, out of order or next to another: %+v", i, gaps)
			}
		}
		b, covered := m.Covering(p)
		if want := slices.ContainsFunc(m.Blocks, func(b history.Block) bool { return holds(b.Range, p) }); covered != want {
			t.Fatalf("%v is covered: %v, want %v", p, covered, want)
		}
		if covered && !holds(b.Range, p) {
			t.Fatalf("%v is said to be in %+v", p, b)
		}
		inGap := slices.ContainsFunc(gaps, func(g history.Range) bool { return holds(g, p) })
		if want := !covered && from.Compare(p) <= 0 && p.Compare(history.End) < 0; inGap != want {
			t.Fatalf("%v is in a gap of %v: %v, want %v", p, gaps, inGap, want)
		}
	})
}

func TestWithReplacesOverlaps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, add := drawManifest(t), drawBlock(t)
		before := slices.Clone(m.Blocks)
		var want []history.Block
		for _, b := range m.Blocks {
			if b.To.Compare(add.From) <= 0 || add.To.Compare(b.From) <= 0 {
				want = append(want, b)
			}
		}
		want = append(want, add)
		slices.SortFunc(want, func(a, b history.Block) int { return a.From.Compare(b.From) })
		got := m.With(add)
		if diff := cmp.Diff(want, got.Blocks); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
		if got.Version != m.Version || got.Complete != m.Complete || got.Announced != m.Announced {
			t.Fatalf("more than blocks changed: %+v", got)
		}
		if diff := cmp.Diff(before, m.Blocks, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("the manifest itself changed:\n%s", diff)
		}
	})
}

func TestWithout(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawManifest(t)
		before, p := slices.Clone(m.Blocks), drawPos(t, "place")
		drop := func(b history.Block) bool { return b.From.Compare(p) < 0 }
		want := slices.DeleteFunc(slices.Clone(m.Blocks), drop)
		got := m.Without(drop)
		if diff := cmp.Diff(want, got.Blocks, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(before, m.Blocks, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("the manifest itself changed:\n%s", diff)
		}
		if len(want) == len(before) {
			if got.Complete != m.Complete || got.Announced != m.Announced {
				t.Fatalf("no block went, but %+v became %+v", m, got)
			}
		} else if got.Complete != 0 || got.Announced != nil {
			t.Fatalf("a block went, but %+v is left", got)
		}
	})
}

// The stored form of a manifest lies where OfVersion says of its version, and of no other.
func TestOfVersion(t *testing.T) {
	if none := history.OfVersion(0); none[0] != nil || none[1] != nil {
		t.Errorf("without a manifest: %x", none)
	}
	rapid.Check(t, func(t *rapid.T) {
		m := drawManifest(t)
		m.Version = rapid.Int64Range(2, 1<<62).Draw(t, "version")
		b := string(m.AppendBinary(nil))
		for step, want := range []bool{false, true, false} {
			version := m.Version - 1 + int64(step)
			if of := history.OfVersion(version); (b >= string(of[0]) && b < string(of[1])) != want {
				t.Fatalf("version %d lies where %d does, %x: want %v", m.Version, version, of, want)
			}
		}
	})
}

func TestManifestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawManifest(t)
		b := m.AppendBinary([]byte("kept"))
		if string(b[:4]) != "kept" {
			t.Fatal("AppendBinary overwrote dst")
		}
		b = b[4:]
		got, err := history.ParseManifest(b)
		if err != nil {
			t.Fatal(err)
		}
		clear(b) // the manifest must not depend on it any more
		if diff := cmp.Diff(m, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}

func TestEmptyManifest(t *testing.T) {
	m, err := history.ParseManifest(nil)
	if diff := cmp.Diff(history.Manifest{}, m); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}

// foldedManifest is what a year of folds of 30 days leaves.
func foldedManifest() history.Manifest {
	m := history.Manifest{Version: 900, Complete: 0, Announced: &history.Announcement{
		Range: history.Range{From: history.Pos{Time: now}, To: history.Pos{Time: now + dayMS}}, Ticket: 225}}
	for i := range int64(12) {
		from := now - (12-i)*30*dayMS
		newest := from + 30*dayMS - 77_000
		m = m.With(history.Block{
			Range: history.Range{From: history.Pos{Time: from, ID: "AbCdEfGhIjK"}, To: history.Pos{Time: newest, ID: "LmNoPqRsTuV"}.Next()},
			ID:    history.BlockID{Ticket: 100 + 10*i}, Newest: newest, Events: 160, Bytes: 11_000,
		})
	}
	return m
}

func TestStoredManifestSize(t *testing.T) {
	m := foldedManifest()
	if got, most := len(m.AppendBinary(nil)), 60+45*len(m.Blocks); got > most {
		t.Errorf("%d blocks take %d bytes, want at most %d", len(m.Blocks), got, most)
	}
}

func TestManifestDamageIsDetected(t *testing.T) {
	b := foldedManifest().AppendBinary(nil)
	affinitytest.DetectsDamage(t, b, func(b []byte) bool {
		_, err := history.ParseManifest(b)
		return err == nil && len(b) > 0 // nothing is a manifest without blocks
	})
}

func TestParseManifestErrors(t *testing.T) {
	at := func(ms int64) history.Pos { return history.Pos{Time: ms} }
	block := func(from, to int64) history.Block {
		return history.Block{Range: history.Range{From: at(from), To: at(to)}}
	}
	inline := func(from, to int64) history.Block {
		b := block(from, to)
		b.Inline = true
		return b
	}
	sealed := func(m history.Manifest) []byte { return m.AppendBinary(nil) }
	whole := sealed(history.Manifest{})
	tests := map[string]struct {
		stored []byte
		want   string
	}{
		"another format":         {append([]byte{3}, whole[1:]...), "format 3, want 2"},
		"no format":              {append([]byte{0}, whole[1:]...), "not a manifest"},
		"cut short":              {whole[:5], "not a manifest"},
		"damage":                 {append(slices.Clone(whole), 0), "checksum does not match"},
		"bytes left over":        {sealManifest(append(slices.Clone(whole), 0)), "damaged, though"},
		"blocks that overlap":    {sealed(history.Manifest{Blocks: []history.Block{block(0, 2), block(1, 3)}}), "damaged, though"},
		"blocks out of order":    {sealed(history.Manifest{Blocks: []history.Block{block(2, 3), block(1, 2)}}), "damaged, though"},
		"an empty block":         {sealed(history.Manifest{Blocks: []history.Block{block(1, 1)}}), "damaged, though"},
		"an empty announcement":  {sealed(history.Manifest{Announced: &history.Announcement{}}), "damaged, though"},
		"unknown flags":          {sealManifest(append(slices.Clone(whole[:14]), 2, 0)), "damaged, though"},
		"countless blocks":       {sealManifest(append(slices.Clone(whole[:15]), 255, 255, 255, 255, 255, 1)), "damaged, though"},
		"two inline":             {sealed(history.Manifest{Blocks: []history.Block{inline(0, 1), inline(1, 2)}}), "damaged, though"},
		"the first has a before": {sealManifest(append(slices.Clone(whole[:15]), 1, 1, 2, 0, 0, 0, 0, 0, 0)), "damaged, though"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := history.ParseManifest(test.stored)
			wantDamage(t, name, err, test.want)
		})
	}
}

// sealManifest makes the format and the checksum of b right, so that what
// follows them is read.
func sealManifest(b []byte) []byte {
	return seal(b, 9)
}

// seal makes the format of b right, and the checksum at a place, which covers all but itself.
func seal(b []byte, at int) []byte {
	b[0] = 2
	table := crc32.MakeTable(crc32.Castagnoli)
	binary.LittleEndian.PutUint32(b[at:], crc32.Update(crc32.Checksum(b[:at], table), table, b[at+4:]))
	return b
}

// wantDamage checks the error of a stored record. name says in which way it is damaged.
func wantDamage(t *testing.T, name string, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got error %v, want %q", err, want)
	}
	if newer := errors.Is(err, wire.ErrNewer); newer != (name == "another format") {
		t.Errorf("of a newer version: %v", newer)
	}
}

func FuzzManifest(f *testing.F) {
	f.Add([]byte{})
	f.Add(history.Manifest{}.AppendBinary(nil))
	f.Add(foldedManifest().AppendBinary(nil))
	inline := foldedManifest()
	inline.Blocks[0].Inline = true
	f.Add(inline.AppendBinary(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		if m, err := history.ParseManifest(b); err == nil {
			checkManifest(t, b, m)
		}
		if len(b) < 13 {
			return
		}
		if m, err := history.ParseManifest(sealManifest(slices.Clone(b))); err == nil {
			checkManifest(t, b, m)
		}
	})
}

// checkManifest holds a manifest that was read from b to what all keep.
func checkManifest(t *testing.T, b []byte, m history.Manifest) {
	if 8*len(m.Blocks) > len(b) {
		t.Errorf("%d blocks from %d bytes", len(m.Blocks), len(b))
	}
	for i, block := range m.Blocks {
		if block.From.Compare(block.To) >= 0 || i > 0 && m.Blocks[i-1].To.Compare(block.From) > 0 {
			t.Errorf("block %d is empty or out of order", i)
		}
		if got, ok := m.Covering(block.From); !ok || got != block {
			t.Errorf("block %d does not cover where it begins", i)
		}
	}
	again, err := history.ParseManifest(m.AppendBinary(nil))
	if diff := cmp.Diff(m, again, cmpopts.EquateEmpty()); err != nil || diff != "" {
		t.Errorf("not read back: %v\n%s", err, diff)
	}
}
