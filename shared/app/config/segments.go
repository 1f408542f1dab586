package config

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/fault"
)

// Segments is whether users of an app can be found by their affinities. While they are
// on, every writer of a profile adds the user to the list of changes.
type Segments struct {
	// Since is when they were turned on, by the store's clock; zero if they are off. Two
	// TTLs later every process knows it.
	Since time.Time
}

// On reports whether segments are on.
func (s Segments) On() bool { return !s.Since.IsZero() }

// WithSegments returns the app with segments on or off, and reports whether that
// changes the app.
func (a App) WithSegments(on bool) (App, bool) {
	if a.Segments.On() == on {
		return a, false
	}
	a.ChangedAt = Stamp(time.Time{})
	a.Segments = Segments{}
	if on {
		a.Segments.Since = a.ChangedAt
	}
	return a, true
}

// SavedSegment is a segment that has a name, as it is stored. Package segment decodes
// its condition.
type SavedSegment struct {
	Name  string
	Where string // the condition, as JSON
	// SetAt is when the condition became that of the name, by the engine's clock, to the
	// microsecond. Sizes before it are those of another condition.
	SetAt time.Time
}

// MaxSavedSegments is how many segments an app may save.
const MaxSavedSegments = 50

// ErrTooManySegments says that an app has saved as many segments as it may.
var ErrTooManySegments error = fault.New(fault.Invalid, "The app has saved %d segments, as many as it may: delete one first", MaxSavedSegments)

// Among returns a segment as it is stored once it is set among those that an app has
// saved, and whether that changes anything. With create it refuses to replace one, with
// ErrExists. Implementations of Store share it.
func (s SavedSegment) Among(saved []SavedSegment, create bool) (set SavedSegment, changed bool, err error) {
	s.SetAt = Stamp(s.SetAt)
	i := slices.IndexFunc(saved, func(other SavedSegment) bool { return other.Name == s.Name })
	switch {
	case i >= 0 && create:
		return SavedSegment{}, false, fmt.Errorf("segment %q: %w", s.Name, ErrExists)
	case i >= 0 && saved[i].Where == s.Where:
		return saved[i], false, nil
	case i < 0 && len(saved) >= MaxSavedSegments:
		return SavedSegment{}, false, ErrTooManySegments
	}
	return s, true, nil
}

func (m *memory) SavedSegment(ctx context.Context, appID, name string) (SavedSegment, error) {
	var s SavedSegment
	err := m.with(ctx, appID, func(a *memoryApp) error {
		var ok bool
		if s, ok = a.segments[name]; !ok {
			return fmt.Errorf("segment %q of app %q: %w", name, appID, ErrNotFound)
		}
		return nil
	})
	return s, err
}

func (m *memory) SavedSegments(ctx context.Context, appID string) (saved []SavedSegment, err error) {
	err = m.with(ctx, appID, func(a *memoryApp) error {
		saved = a.savedSegments()
		return nil
	})
	return saved, err
}

func (a *memoryApp) savedSegments() []SavedSegment {
	return slices.SortedFunc(maps.Values(a.segments), func(a, b SavedSegment) int { return strings.Compare(a.Name, b.Name) })
}

func (m *memory) SaveSegment(ctx context.Context, appID string, s SavedSegment, create bool) (set SavedSegment, changed bool, err error) {
	err = m.change(ctx, appID, func(a *memoryApp) error {
		if set, changed, err = s.Among(a.savedSegments(), create); err == nil && changed {
			a.segments[s.Name] = set
		}
		return err
	})
	return set, changed, err
}

func (m *memory) DeleteSegment(ctx context.Context, appID, name string) error {
	return m.change(ctx, appID, func(a *memoryApp) error {
		if _, ok := a.segments[name]; !ok {
			return fmt.Errorf("segment %q of app %q: %w", name, appID, ErrNotFound)
		}
		delete(a.segments, name)
		return nil
	})
}
