package consent

import (
	"regexp"
	"slices"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/fault"
)

// Purpose is what an app uses events for.
type Purpose struct {
	Name string `json:"name"`
	// Number names the purpose in the rows of users. An app gives no number twice.
	Number uint8 `json:"number"`
	// Default says whether the purpose is granted by users who were never asked.
	Default bool `json:"default,omitempty"`
	// Types, Names and Facets are the events and the facets that serve the purpose. An empty list means all.
	Types  []event.Type `json:"types,omitempty"`
	Names  []string     `json:"names,omitempty"`
	Facets []string     `json:"facets,omitempty"`
	// Signals are names by which the consent of an event speaks of the purpose, beside Name: of consent platforms, such
	// as ad_storage.
	Signals []string `json:"signals,omitempty"`
	// Surfaces are where events are used that were kept for the purpose.
	Surfaces []Surface `json:"surfaces,omitempty"`
}

// Surface is a place where an app uses what it knows of a user.
type Surface string

// The surfaces. Kept is none of them: it is all that is stored of a user.
const (
	Kept      Surface = ""
	Rank      Surface = "rank"
	Boosts    Surface = "boosts"
	Feeds     Surface = "feeds"
	Segments  Surface = "segments"
	Recommend Surface = "recommend"
	Export    Surface = "export"
)

// Surfaces returns all of them but Kept.
func Surfaces() []Surface { return slices.Clone(surfaces) }

var surfaces = []Surface{Rank, Boosts, Feeds, Segments, Recommend, Export}

// Setting is the purposes of an app. The zero Setting is that of an app without any, in which all events count.
type Setting struct {
	Purposes []Purpose `json:"purposes,omitempty"`
	// Last is the highest number that a purpose of the app ever had.
	Last uint8 `json:"last,omitempty"`
}

// On reports whether the app has purposes.
func (s Setting) On() bool { return len(s.Purposes) > 0 }

// Bounds of a setting. Every request reads it.
const (
	maxPurposes = 16
	maxNumber   = 255 // a byte of the row of a user
	maxListed   = 200 // names, and facets
	maxName     = 64
)

var nameForm = regexp.MustCompile(`^[A-Za-z0-9_-]{1,40}$`)

// With returns the setting with other purposes, whose numbers it gives: a name that is there keeps its number. The
// error, of kind fault.Invalid, says what is wrong with them.
func (s Setting) With(purposes []Purpose) (Setting, error) {
	if len(purposes) > maxPurposes {
		return s, fault.New(fault.Invalid, "purposes: an app may have %d at a time, and these are %d", maxPurposes,
			len(purposes))
	}
	next := Setting{Last: s.Last}
	for _, p := range purposes {
		if err := p.check(); err != nil {
			return s, err
		}
		if slices.ContainsFunc(next.Purposes, func(o Purpose) bool { return o.Name == p.Name }) {
			return s, fault.New(fault.Invalid, "purposes: %q is named twice", p.Name)
		}
		if i := slices.IndexFunc(s.Purposes, func(o Purpose) bool { return o.Name == p.Name }); i >= 0 {
			p.Number = s.Purposes[i].Number
		} else if next.Last == maxNumber {
			return s, fault.New(fault.Invalid, "purposes: an app may have %d in its life, and %q is one more; "+
				"use the name of one that is there", maxNumber, p.Name)
		} else {
			next.Last++
			p.Number = next.Last
		}
		next.Purposes = append(next.Purposes, p)
	}
	return next, nil
}

func (p *Purpose) check() error {
	if !nameForm.MatchString(p.Name) {
		return fault.New(fault.Invalid, "purposes: name %.100q: want 1 to 40 of letters, digits, _ and -", p.Name)
	}
	for _, t := range p.Types {
		if _, ok := event.TypesOf(t); !ok {
			return fault.New(fault.Invalid, "purpose %q: type %.50q must be view, click or conversion", p.Name, t)
		}
	}
	for _, s := range p.Surfaces {
		if !slices.Contains(surfaces, s) {
			return fault.New(fault.Invalid, "purpose %q: surface %.50q must be one of %v", p.Name, s, surfaces)
		}
	}
	for what, list := range map[string][]string{"names": p.Names, "facets": p.Facets,
		"signals": p.Signals} {
		if len(list) > maxListed {
			return fault.New(fault.Invalid, "purpose %q: may list %d %s, and these are %d", p.Name, maxListed, what,
				len(list))
		}
		for _, text := range list {
			if text == "" || len(text) > maxName {
				return fault.New(fault.Invalid, "purpose %q: %s: %.100q must have 1 to %d bytes", p.Name, what, text, maxName)
			}
		}
	}
	return nil
}

// Equal reports whether two settings say the same of events.
func (s Setting) Equal(o Setting) bool {
	return s.Last == o.Last && slices.EqualFunc(s.Purposes, o.Purposes, func(a, b Purpose) bool {
		return a.Name == b.Name && a.Number == b.Number && a.Default == b.Default && slices.Equal(a.Types, b.Types) &&
			slices.Equal(a.Names, b.Names) && slices.Equal(a.Facets, b.Facets) && slices.Equal(a.Surfaces, b.Surfaces) &&
			slices.Equal(a.Signals, b.Signals)
	})
}

// Unserved returns the types whose events no purpose keeps, whatever users grant.
func (s Setting) Unserved() []event.Type {
	if !s.On() {
		return nil
	}
	var none []event.Type
	for _, t := range event.AllTypes.List() {
		serves := func(p Purpose) bool { return len(p.Types) == 0 || slices.Contains(p.Types, t) }
		if !slices.ContainsFunc(s.Purposes, serves) {
			none = append(none, t)
		}
	}
	return none
}

// serves reports whether events of a type and name serve the purpose.
func (p *Purpose) serves(typ event.Type, name string) bool {
	return within(p.Types, typ) && within(p.Names, name)
}

// Denies reports whether an event serves a purpose of which the consent that it carries denies a name. Names of no
// purpose do not matter.
func (s Setting) Denies(denied []string, typ event.Type, name string) bool {
	return len(denied) > 0 && slices.ContainsFunc(s.Purposes, func(p Purpose) bool {
		return p.serves(typ, name) && slices.ContainsFunc(denied, func(said string) bool {
			return said == p.Name || slices.Contains(p.Signals, said)
		})
	})
}

// within reports whether a list, of which an empty one means all, holds a value.
func within[T comparable](list []T, value T) bool {
	return len(list) == 0 || slices.Contains(list, value)
}

// all reports whether all events and facets serve the purpose.
func (p *Purpose) all() bool { return len(p.Types)+len(p.Names)+len(p.Facets) == 0 }

// covers reports whether what serves another purpose serves this one, too.
func (p *Purpose) covers(o *Purpose) bool {
	return contains(p.Types, o.Types) && contains(p.Names, o.Names) && contains(p.Facets, o.Facets)
}

func contains[T comparable](list, part []T) bool {
	return len(list) == 0 ||
		len(part) > 0 && !slices.ContainsFunc(part, func(v T) bool { return !slices.Contains(list, v) })
}
