package config

import (
	"maps"
	"slices"

	"github.com/affinityengine/affinity/shared/fault"
)

// TrackNames are types of events by names of track calls, which SDKs of Segment and
// RudderStack send: view, click or conversion. They count more than the types of Segment's
// specification.
type TrackNames map[string]string

// An app may give maxTrackNames names a type, each of 1 to maxTrackName characters: most
// requests read the app's document, which has them.
const (
	maxTrackNames = 200
	maxTrackName  = 64 // that of an event's name
)

// With returns the names with a change: an empty type takes that of a name away. The error
// says which name or type is refused, or that there are too many.
func (n TrackNames) With(change TrackNames) (TrackNames, error) {
	with := maps.Clone(n)
	if with == nil {
		with = TrackNames{}
	}
	for _, name := range slices.Sorted(maps.Keys(change)) {
		switch kind := change[name]; kind {
		case "":
			delete(with, name)
			continue
		case "view", "click", "conversion":
		default:
			return nil, fault.New(fault.Invalid, "names: the type of %.100q must be view, click or conversion, got %.50q",
				name, kind)
		}
		if !validTrackName(name) {
			return nil, fault.New(fault.Invalid, "names: %.100q must have 1 to %d visible ASCII characters, with single "+
				"spaces between words", name, maxTrackName)
		}
		with[name] = change[name]
	}
	switch {
	case len(with) > maxTrackNames:
		return nil, fault.New(fault.Invalid, "names: an app may give %d names a type, and these are %d", maxTrackNames,
			len(with))
	case len(with) == 0:
		return nil, nil
	}
	return with, nil
}

// validTrackName reports whether a name can be that of an event, and is one that a call's name
// is compared with.
func validTrackName(name string) bool {
	space := true // before the first word
	for _, c := range []byte(name) {
		if c < ' ' || c > '~' || c == ' ' && space {
			return false
		}
		space = c == ' '
	}
	return !space && len(name) <= maxTrackName
}
