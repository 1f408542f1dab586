package affinity_test

import (
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/local/affinitytest"
	"github.com/affinityengine/affinity/shared/score/affinity"
)

// storedProfile is a profile as a user row holds it, beside the session.
var storedProfile = affinity.Profile{StrategyVersion: 7, Known: true}.AppendBinary(nil)

func TestSessionRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, w := drawStrategy(t), drawWindow(t)
		session := affinity.ReferenceSession(drawLog(t, w), s, w)
		b := session.AppendBinary([]byte("kept"), storedProfile)
		if string(b[:4]) != "kept" {
			t.Fatal("AppendBinary overwrote dst")
		}
		if again := session.AppendBinary(nil, storedProfile); !slices.Equal(again, b[4:]) {
			t.Fatal("one session has two stored forms")
		}
		got, err := affinity.ParseSession(b[4:], storedProfile)
		if err != nil {
			t.Fatal(err)
		}
		clear(b) // the session must not depend on it any more
		if diff := sameSession(got, session); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}

// sealSession sets the checksum of b, so that what follows it is read.
func sealSession(b []byte) []byte {
	b = seal(b)
	b[0] = 1 // the format of sessions, not of profiles
	return b
}

// benchSession is the session of benchEvents.
func benchSession() affinity.Session {
	log := benchEvents()
	sortEvents(log)
	for i := range log {
		log[i].Index, log[i].ObjectIDs = "products", []string{"o1", "o2"}
	}
	return affinity.ReferenceSession(log, benchStrategy(), affinity.Window{Now: now, RetentionDays: window})
}

func TestParseSessionDetectsDamage(t *testing.T) {
	b := benchSession().First(3).AppendBinary(nil, storedProfile)
	affinitytest.DetectsDamage(t, b, func(b []byte) bool {
		_, err := affinity.ParseSession(b, storedProfile)
		return err == nil
	})
}

// TestSessionOfAnotherReadingIsRefused: an old release writes a profile and not
// its session, perhaps at the ticket of a session that is there.
func TestSessionOfAnotherReadingIsRefused(t *testing.T) {
	other := affinity.Profile{StrategyVersion: 7, Known: true, Anchor: 1}.AppendBinary(nil)
	b := benchSession().AppendBinary(nil, storedProfile)
	for _, profile := range [][]byte{other, nil, {2}} {
		if _, err := affinity.ParseSession(b, profile); !errors.Is(err, affinity.ErrOtherProfile) {
			t.Errorf("parsed beside the profile %x with error %v, want %v", profile, err, affinity.ErrOtherProfile)
		}
	}
}

// TestParseSessionSkipsNewerSections: later versions add sections, and flags
// that say whether this version may still use the session.
func TestParseSessionSkipsNewerSections(t *testing.T) {
	want := benchSession().First(5)
	b := want.AppendBinary(nil, storedProfile)
	const header = 10
	section := append(binary.AppendUvarint(binary.AppendUvarint(nil, 300), 3), "new"...)
	for name, newer := range map[string][]byte{
		"before": slices.Concat(b[:header], section, b[header:]),
		"after":  slices.Concat(b, section, section),
		"empty":  append(slices.Clone(b), 2, 0),
	} {
		got, err := affinity.ParseSession(sealSession(newer), storedProfile)
		if err != nil {
			t.Errorf("a section %s: %v", name, err)
		} else if diff := sameSession(got, want); diff != "" {
			t.Errorf("a section %s (-want +got):\n%s", name, diff)
		}
	}
	for flag, want := range map[byte]string{1: "flags 1 are not known", 8: "flags 8 are not known", 16: "", 128: ""} {
		newer := slices.Clone(b)
		newer[header-1] = flag
		_, err := affinity.ParseSession(sealSession(newer), storedProfile)
		if err == nil && want != "" || err != nil && (want == "" || !strings.Contains(err.Error(), want)) {
			t.Errorf("flag %d: error %v, want %q", flag, err, want)
		}
	}
}

func TestParseSessionErrors(t *testing.T) {
	of := func(section ...byte) []byte {
		b := affinity.Session{}.AppendBinary(nil, storedProfile)[:10]
		return sealSession(append(append(b, 1, byte(len(section))), section...))
	}
	whole := affinity.Session{}.AppendBinary(nil, storedProfile)
	tests := map[string]struct {
		stored []byte
		want   string
	}{
		"nothing":            {nil, "0 bytes: too short"},
		"another format":     {append([]byte{9}, whole[1:]...), "format 9 is not known"},
		"damage":             {append(slices.Clone(whole), 0), "checksum does not match"},
		"no sections":        {sealSession(slices.Clone(whole[:10])), "damaged, though its checksum matches"},
		"an empty section":   {of(), "damaged"},
		"a long section":     {sealSession(append(slices.Clone(whole[:10]), 1, 2, 0)), "damaged"},
		"bytes left over":    {of(0, 0), "damaged"},
		"countless events":   {of(128, 128, 128, 128, 128, 128, 8), "damaged"},
		"a word not there":   {of(1, 0, 1, 0, 0, 0, 0), "damaged"},
		"a text not there":   {of(1, 0, 0, 9, 0, 0, 0), "damaged"},
		"countless objects":  {of(1, 0, 0, 0, 1, 1, 100, 0), "damaged"},
		"countless counts":   {of(1, 0, 0, 0, 1, 1, 0, 100), "damaged"},
		"a count of nothing": {of(1, 0, 0, 0, 1, 1, 0, 1, 1, 1, 0), "damaged"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s, err := affinity.ParseSession(test.stored, storedProfile)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %+v and error %v, want %q", s, err, test.want)
			}
		})
	}
}

func FuzzParseSession(f *testing.F) {
	f.Add(benchSession().AppendBinary(nil, storedProfile)[10:])
	f.Add(affinity.Session{}.AppendBinary(nil, storedProfile)[10:])
	header := affinity.Session{}.AppendBinary(nil, storedProfile)[:10]
	f.Fuzz(func(t *testing.T, sections []byte) {
		s, err := affinity.ParseSession(sealSession(slices.Concat(header, sections)), storedProfile)
		if err != nil {
			return
		}
		again, err := affinity.ParseSession(s.AppendBinary(nil, storedProfile), storedProfile)
		if err != nil {
			t.Fatalf("parsed %+v, and not what it encodes to: %v", s, err)
		}
		if diff := sameSession(again, s); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}
