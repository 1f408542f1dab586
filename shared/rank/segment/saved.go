package segment

import (
	"regexp"
	"slices"

	"github.com/affinityengine/affinity/shared/fault"
)

var nameForm = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// reserved are words of routes.
var reserved = []string{"query", "histogram", "refresh", "export", "values"}

// CheckName returns a *fault.Error if no saved segment can have that name.
func CheckName(name string) error {
	switch {
	case !nameForm.MatchString(name):
		return fault.New(fault.Invalid, "the name of a segment has 1 to 64 of A-Z, a-z, 0-9, _ and -, got %q",
			name[:min(len(name), 100)])
	case slices.Contains(reserved, name):
		return fault.New(fault.Invalid, "a segment cannot be named %s: the word is part of a route", name)
	}
	return nil
}
