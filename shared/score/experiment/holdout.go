package experiment

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/affinityengine/affinity/shared/fault"
)

// MaxHoldout is the largest share of the users of an app that may be held out.
const MaxHoldout = 0.2

// Holdout is the share of an app's users who get no personalization, so that the others can be compared with them.
// The zero Holdout holds nobody out.
type Holdout struct {
	// Share is that of the users, 0 to MaxHoldout, in steps of 1/10,000.
	Share float64 `json:"share,omitempty"`
	// Seed decides who they are. Another share under the same seed moves the fewest users.
	Seed string `json:"seed,omitempty"`
}

// On reports whether anybody is held out.
func (h Holdout) On() bool { return h.Share > 0 }

// Has reports whether the user of a unit is held out.
func (h Holdout) Has(unit string) bool { return h.On() && hash(h.Seed, unit) < h.Share }

// ID identifies who is held out: "" for nobody.
func (h Holdout) ID() string {
	if !h.On() {
		return ""
	}
	return fmt.Sprintf("%g of %s", h.Share, h.Seed)
}

// maxSeed is the size in bytes of the longest seed.
const maxSeed = 64

// validSeed reports whether a text can be a seed: people copy it from and to other programs.
func validSeed(s string) bool {
	unprintable := func(r rune) bool { return !unicode.IsPrint(r) }
	return s != "" && len(s) <= maxSeed && utf8.ValidString(s) && !strings.ContainsFunc(s, unprintable)
}

// Check returns what is wrong with the setting, of kind fault.Invalid.
func (h Holdout) Check() error {
	switch {
	case !(h.Share >= 0 && h.Share <= MaxHoldout):
		return fault.New(fault.Invalid, "holdout: share %g: must be from 0 to %g: who is held out gets no personalization",
			h.Share, MaxHoldout)
	case h.Share > 0 && h.Share < 1./steps:
		return fault.New(fault.Invalid, "holdout: share %g: must be 0, or at least %g", h.Share, 1./steps)
	case h.On() && !validSeed(h.Seed):
		return fault.New(fault.Invalid, "holdout: seed %.70q: want 1 to %d bytes of printable text", h.Seed, maxSeed)
	}
	return nil
}
