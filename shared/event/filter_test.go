package event_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/event"
)

// encodeURIComponent encodes as the function of that name in JavaScript.
func encodeURIComponent(s string) string {
	const plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.!~*'()"
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if strings.IndexByte(plain, s[i]) >= 0 {
			b.WriteByte(s[i])
		} else {
			fmt.Fprintf(&b, "%%%02X", s[i])
		}
	}
	return b.String()
}

// Whichever way a client encodes a filter, the same one is read.
func TestFilterEncodingsAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := event.Filter{
			Facet: rapid.StringMatching(`[^:]{1,20}`).Draw(t, "facet"),
			Value: rapid.OneOf(rapid.StringN(1, 30, -1), rapid.StringMatching(`[a%:+ 0-9]{1,20}`)).Draw(t, "value"),
		}
		encodings := map[string]string{
			"whole": encodeURIComponent(want.Facet + ":" + want.Value),
			"parts": encodeURIComponent(want.Facet) + ":" + encodeURIComponent(want.Value),
		}
		if !strings.Contains(want.Facet+want.Value, "%") {
			encodings["none"] = want.Facet + ":" + want.Value
		}
		for name, s := range encodings {
			if got, err := event.ParseFilter(s); err != nil || got != want {
				t.Errorf("%s: ParseFilter(%q) = %q, %v; want %q", name, s, got, err, want)
			}
		}
	})
}

// The limit is on what is stored, not on how it was encoded.
func TestFilterLengthIsDecoded(t *testing.T) {
	fits := "f:" + strings.Repeat("é", 1023)
	if _, err := event.ParseFilter(encodeURIComponent(fits)); err != nil {
		t.Errorf("a filter of %d bytes: %v", len(fits), err)
	}
	if _, err := event.ParseFilter(fits + "x"); err == nil {
		t.Errorf("a filter of %d bytes is accepted", len(fits)+1)
	}
}
