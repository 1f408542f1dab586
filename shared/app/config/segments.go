package config

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/app/documents"
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

// maxSavedSegments is how many segments an app may save.
const maxSavedSegments = 50

// errTooManySegments says that an app has saved as many segments as it may.
var errTooManySegments error = fault.New(fault.Invalid,
	"The app has saved %d segments, as many as it may: delete one first", maxSavedSegments)

// Among returns a segment as it is stored once it is set among those that an app has
// saved, and whether that changes anything. With create it refuses to replace one, with
// ErrExists.
func (s SavedSegment) Among(saved []SavedSegment, create bool) (set SavedSegment, changed bool, err error) {
	s.SetAt = Stamp(s.SetAt)
	i := slices.IndexFunc(saved, func(other SavedSegment) bool { return other.Name == s.Name })
	switch {
	case i >= 0 && create:
		return SavedSegment{}, false, fmt.Errorf("segment %q: %w", s.Name, ErrExists)
	case i >= 0 && saved[i].Where == s.Where:
		return saved[i], false, nil
	case i < 0 && len(saved) >= maxSavedSegments:
		return SavedSegment{}, false, errTooManySegments
	}
	return s, true, nil
}

func segmentPath(appID, name string) string {
	return AppPath(appID) + "/savedSegments/" + documents.ID(name)
}

// SavedSegment returns the segment of that name, or ErrNotFound.
func (s *Store) SavedSegment(ctx context.Context, appID, name string) (SavedSegment, error) {
	var d segmentDocument
	if err := read(ctx, s.documents, segmentPath(appID, name), &d); err != nil {
		return SavedSegment{}, fmt.Errorf("read segment %q of app %q: %w", name, appID, err)
	}
	return d.segment(), nil
}

// SavedSegments returns all segments that an app has saved, sorted by name. It
// returns ErrNotFound if the app does not exist.
func (s *Store) SavedSegments(ctx context.Context, appID string) (saved []SavedSegment, err error) {
	all, err := below[segmentDocument](ctx, s, appID, documents.Query{Collection: "savedSegments"})
	if err != nil {
		return nil, fmt.Errorf("list the segments of app %q: %w", appID, err)
	}
	for _, d := range all {
		saved = append(saved, d.segment())
	}
	slices.SortFunc(saved, func(a, b SavedSegment) int { return strings.Compare(a.Name, b.Name) })
	return saved, nil
}

// SaveSegment stores a segment in place of the one of its name; with create it
// returns ErrExists if the name is in use. A segment with the same condition keeps
// its SetAt. It returns the stored segment, ErrNotFound if the app does not exist,
// and ErrTooManySegments if it has MaxSavedSegments others.
func (s *Store) SaveSegment(ctx context.Context, appID string, segment SavedSegment,
	create bool) (set SavedSegment, changed bool, err error) {
	err = s.changeApp(ctx, appID, func(app App) (App, []documents.Write, error) {
		saved, err := s.SavedSegments(ctx, appID)
		if err != nil {
			return app, nil, err
		}
		if set, changed, err = segment.Among(saved, create); err != nil || !changed {
			return app, nil, err
		}
		return app, []documents.Write{documents.Put(segmentPath(appID, segment.Name), segmentDocument(set))}, nil
	})
	if err != nil {
		return SavedSegment{}, false, fmt.Errorf("save segment %q of app %q: %w", segment.Name, appID, err)
	}
	return set, changed, nil
}

// DeleteSegment removes a segment. It returns ErrNotFound if the segment does not
// exist.
func (s *Store) DeleteSegment(ctx context.Context, appID, name string) error {
	if err := remove(ctx, s.documents, segmentPath(appID, name)); err != nil {
		return fmt.Errorf("delete segment %q of app %q: %w", name, appID, err)
	}
	return nil
}
