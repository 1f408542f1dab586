package store

import (
	"context"
	"encoding/binary"
	"fmt"

	"cloud.google.com/go/bigtable"
)

// In an app whose users live in several regions each user has a location: a row whose key holds a keyed hash of the
// user and no token. That in the region of the app decides; the others are copies. The rules are those of
// shared/profile/REGIONS.md, "Where a person lives".

// Location says in which region a user lives. The zero value is that of a user who has none.
type Location struct {
	Region string
	// Since is the instant from which on they do, in microseconds. No two locations of a user have the same.
	Since int64
}

// columnRegion holds a location: 8 bytes of the instant, and the region.
const columnRegion = "r"

const locationHead = 8 // bytes before the region

func locationKey(app string, hash []byte) string { return fmt.Sprintf("%s,%x", app, hash) }

func (l Location) appendBinary(dst []byte) []byte {
	return append(binary.BigEndian.AppendUint64(dst, uint64(l.Since)), l.Region...)
}

func parseLocation(value []byte) (Location, error) {
	if len(value) <= locationHead {
		return Location{}, fmt.Errorf("column %q: %x is no location", familyLocation+":"+columnRegion, value)
	}
	return Location{string(value[locationHead:]), int64(binary.BigEndian.Uint64(value))}, nil
}

// Find returns the location of a user, whose keyed hash is given, or the zero value.
func (s Locations) Find(ctx context.Context, app string, hash []byte) (Location, error) {
	row, err := s.tables.of(app, allUsers).locations.ReadRow(ctx, locationKey(app, hash), newestCells)
	if err != nil {
		return Location{}, fmt.Errorf("read a location of app %s: %w", app, err)
	}
	for _, item := range row[familyLocation] {
		return parseLocation(item.Value)
	}
	return Location{}, nil
}

// Change replaces a location if it is still from; the zero value is that there is none. It returns false if the row
// says something else, or if the first answer was lost; then it may have been changed.
func (s Locations) Change(ctx context.Context, app string, hash []byte, from, to Location) (bool, error) {
	m := bigtable.NewMutation()
	if to == (Location{}) {
		m.DeleteRow()
	} else {
		m.DeleteCellsInColumn(familyLocation, columnRegion)
		m.Set(familyLocation, columnRegion, bigtable.Timestamp(to.Since).TruncateToMilliseconds(), to.appendBinary(nil))
	}
	cell := []bigtable.Filter{bigtable.ColumnFilter(columnRegion), bigtable.LatestNFilter(1)}
	change := bigtable.NewCondMutation(bigtable.ChainFilters(cell...), nil, m)
	if from != (Location{}) {
		now := from.appendBinary(nil)
		cell = append(cell, bigtable.ValueRangeFilter(now, append(now[:len(now):len(now)], 0)))
		change = bigtable.NewCondMutation(bigtable.ChainFilters(cell...), m, nil)
	}
	var matched bool
	err := retryAtomic(ctx, func() error {
		return s.tables.of(app, allUsers).locations.Apply(ctx, locationKey(app, hash), change,
			bigtable.GetCondMutationResult(&matched))
	})
	if err != nil {
		return false, fmt.Errorf("change a location of app %s: %w", app, err)
	}
	return matched == (from != (Location{})), nil
}
