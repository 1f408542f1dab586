package history_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/wire"
)

// filtered returns an event with one count of each "facet:value".
func filtered(name string, filters ...string) affinity.Event {
	e := affinity.Event{Time: now, Type: event.View, Name: name}
	for _, f := range filters {
		facet, value, _ := strings.Cut(f, ":")
		e.Counts = append(e.Counts, affinity.Count{Facet: facet, Value: value, N: 1})
	}
	return e
}

// sampleVocabulary has Red of five users, Blue of four, and Pink of two.
func sampleVocabulary() *history.Vocabulary {
	v := history.NewVocabulary()
	for i := range 5 {
		user := fmt.Sprint("u", i)
		v.Add(user, filtered("Viewed", "color:Red", "brand:Acme"))
		if i < 4 {
			v.Add(user, filtered("Viewed", "color:Blue"))
		}
		if i < 2 {
			v.Add(user, filtered("Seen by "+user, "color:Pink", "secret:of two"))
		}
	}
	return v
}

func sampleDictionary() *history.Dictionary {
	return sampleVocabulary().Dictionary(7, history.Limits{})
}

func TestDictionaryHoldsCommonTerms(t *testing.T) {
	d := sampleDictionary()
	stored := string(d.AppendBinary(nil))
	for _, text := range []string{"Viewed", "color", "brand", "Red", "Blue", "Acme"} {
		if !strings.Contains(stored, text) {
			t.Errorf("%q is not in the dictionary, though three users have it", text)
		}
	}
	for _, text := range []string{"Pink", "secret", "Seen by"} {
		if strings.Contains(stored, text) {
			t.Errorf("%q is in the dictionary, though only two users have it", text)
		}
	}
	if strings.Index(stored, "Red") > strings.Index(stored, "Blue") {
		t.Error("Blue has a shorter id than Red, though fewer users have it")
	}
	if d.Len() != 6 || d.Generation() != 7 || d.Bytes() != len(stored) {
		t.Errorf("%d terms, generation %d, %d bytes; want 6, 7, %d", d.Len(), d.Generation(), d.Bytes(), len(stored))
	}
	if history.NewVocabulary().Dictionary(1, history.Limits{}) != nil {
		t.Error("no terms make a dictionary")
	}
}

// TestOneUserIsNoCrowd: a user who comes back between others is one user.
func TestOneUserIsNoCrowd(t *testing.T) {
	v := history.NewVocabulary()
	for range 10 {
		v.Add("a", filtered("Viewed", "note:private"))
		v.Add("b", filtered("Viewed", "note:private"))
		v.Add("c", filtered("Viewed"))
	}
	if stored := v.Dictionary(1, history.Limits{}).AppendBinary(nil); bytes.Contains(stored, []byte("private")) {
		t.Errorf("the dictionary holds a value of two users: %q", stored)
	}
}

func TestDictionaryLimits(t *testing.T) {
	v := history.NewVocabulary()
	for user := range 3 {
		for i := range 300 {
			v.Add(fmt.Sprint(user), filtered("Viewed", fmt.Sprintf("facet%d:value %d", i%7, i), "long:"+strings.Repeat("x", 300)))
		}
	}
	for _, l := range []history.Limits{{Entries: 1}, {Entries: 100}, {Bytes: 40}, {Bytes: 1000}, {Entries: 50, Bytes: 300}, {}} {
		d := v.Dictionary(1, l)
		if d == nil {
			continue
		}
		if l.Entries > 0 && d.Len() > l.Entries || l.Bytes > 0 && d.Bytes() > l.Bytes {
			t.Errorf("limits %+v: %d entries, %d bytes", l, d.Len(), d.Bytes())
		}
		if l == (history.Limits{}) && d.Len() != 1+7+1+300 { // without the long value
			t.Errorf("%d terms without limits", d.Len())
		}
	}
}

// TestVocabularyIsBounded: what many users have survives any number of terms that
// few have.
func TestVocabularyIsBounded(t *testing.T) {
	v := history.NewVocabulary()
	v.Bound(history.Limits{Entries: 100, Bytes: 2000})
	for user := range 2000 {
		v.Add(fmt.Sprint(user), filtered("Viewed", "color:Red", fmt.Sprintf("number:%d", user)))
		if terms, bytes := v.Counted(); terms > 100 || bytes > 2000 {
			t.Fatalf("%d terms, %d bytes", terms, bytes)
		}
	}
	d := v.Dictionary(1, history.Limits{})
	if stored := d.AppendBinary(nil); d.Len() != 4 || !bytes.Contains(stored, []byte("Red")) {
		t.Errorf("%d terms: %q", d.Len(), stored)
	}
}

func FuzzDictionary(f *testing.F) {
	f.Add(sampleDictionary().AppendBinary(nil))
	f.Add(common.AppendBinary(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, b := range [][]byte{b, resealed(b)} {
			d, err := history.ParseDictionary(b)
			if err != nil {
				continue
			}
			if !bytes.Equal(d.AppendBinary(nil), b) || d.Len() > len(b) {
				t.Errorf("%d terms of %d bytes: %x", d.Len(), len(b), d.AppendBinary(nil))
			}
			builder := history.NewBuilder()
			builder.Use(d)
			events := []affinity.Event{filtered("Viewed", "color:Red", "color:Pink", "brand:Acme", ":")}
			builder.Add(events[0])
			var got []affinity.Event
			for e, err := range history.Events(builder.AppendBlock(nil), shelf{d.Generation(): d}) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, e)
			}
			if !slices.EqualFunc(tidy(events), tidy(got), sameEvent) {
				t.Errorf("got %+v", got)
			}
		}
	})
}

func TestDictionaryIsDeterministic(t *testing.T) {
	one, two := sampleDictionary(), sampleDictionary()
	if !bytes.Equal(one.AppendBinary(nil), two.AppendBinary(nil)) {
		t.Error("the same events make two dictionaries")
	}
	parsed, err := history.ParseDictionary(one.AppendBinary(nil))
	if err != nil || !bytes.Equal(parsed.AppendBinary(nil), one.AppendBinary(nil)) || parsed.Len() != one.Len() {
		t.Errorf("parsed as %+v: %v", parsed, err)
	}
}

func TestDictionaryDamageIsDetected(t *testing.T) {
	stored := sampleDictionary().AppendBinary(nil)
	for n := range stored {
		if _, err := history.ParseDictionary(stored[:n]); !errors.Is(err, history.ErrNoDictionary) {
			t.Errorf("cut to %d of %d bytes: %v", n, len(stored), err)
		}
		for bit := range 8 {
			damaged := slices.Clone(stored)
			damaged[n] ^= 1 << bit
			_, err := history.ParseDictionary(damaged)
			if newer := n == 0 && damaged[0] > 1; errors.Is(err, wire.ErrNewer) != newer || errors.Is(err, history.ErrNoDictionary) == newer {
				t.Errorf("with bit %d of byte %d turned over: %v", bit, n, err)
			}
		}
	}
	for name, body := range map[string][]byte{
		"nothing in it":     {},
		"bytes left over":   {2, 0, 0, 0},
		"countless kinds":   {2, 255, 255, 255, 255, 15, 0},
		"countless values":  {2, 0, 1, 1, 'f', 255, 255, 255, 255, 15},
		"a text cut short":  {2, 0, 1, 9, 'f', 0},
		"a missing section": {2, 0, 1, 1, 'f'},
	} {
		if _, err := history.ParseDictionary(sealDictionary(append(make([]byte, 5), body...))); !errors.Is(err, history.ErrNoDictionary) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// sealDictionary makes the first bytes of b those of a dictionary, so that what follows
// them is read.
func sealDictionary(b []byte) []byte {
	b[0] = 1
	binary.LittleEndian.PutUint32(b[1:], crc32.Checksum(b[5:], crc32.MakeTable(crc32.Castagnoli)))
	return b
}
