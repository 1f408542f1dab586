package store

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"cloud.google.com/go/bigtable"
)

// In an app whose users live in several regions each user has a location: a row whose key holds a keyed hash of the
// user and no token. That in the region of the app decides; the others are copies. The rules are those of
// functions/docs/design/regions.md, "Where a person lives".

// Location says in which region a user lives. The zero value is that of a user who has none.
type Location struct {
	Region string
	// Since is the instant from which on they do, in microseconds. No two locations of a user have the same.
	Since int64
}

// columnRegion holds a location: 8 bytes of the instant, and the region.
const columnRegion = "r"

const locationHead = 8 // bytes before the region

// errNoSecret reports that a deployment cannot have users in regions of their own.
var errNoSecret = errors.New("the users of the app have regions of their own, and this deployment has no secret of " +
	"locations: set LOCATION_SECRET")

// locationKey returns the key of the row of a user. The hash is that of one app: nobody can tell that two apps have
// the same user.
func (s *Store) locationKey(app, user string) (string, error) {
	if s.locationSecret == "" {
		return "", fmt.Errorf("app %s: %w", app, errNoSecret)
	}
	mac := hmac.New(sha256.New, []byte(s.locationSecret))
	fmt.Fprintf(mac, "%s,%s", app, user)
	return fmt.Sprintf("%s,%x", app, mac.Sum(nil)), nil
}

func (l Location) appendBinary(dst []byte) []byte {
	return append(binary.BigEndian.AppendUint64(dst, uint64(l.Since)), l.Region...)
}

func parseLocation(value []byte) (Location, error) {
	if len(value) <= locationHead {
		return Location{}, fmt.Errorf("column %q: %x is no location", familyLocation+":"+columnRegion, value)
	}
	return Location{string(value[locationHead:]), int64(binary.BigEndian.Uint64(value))}, nil
}

// Find returns the location of a user, or the zero value.
func (s Locations) Find(ctx context.Context, app, user string) (Location, error) {
	key, err := s.locationKey(app, user)
	if err != nil {
		return Location{}, err
	}
	row, err := s.tables.of(app, allUsers).locations.ReadRow(ctx, key, newestCells)
	if err != nil {
		return Location{}, fmt.Errorf("read a location of app %s: %w", app, err)
	}
	for _, item := range row[familyLocation] {
		return parseLocation(item.Value)
	}
	return Location{}, nil
}

// write returns the mutation that makes a row say a location, or deletes it for the zero value.
func (l Location) write() *bigtable.Mutation {
	m := bigtable.NewMutation()
	if l == (Location{}) {
		m.DeleteRow()
		return m
	}
	m.DeleteCellsInColumn(familyLocation, columnRegion)
	m.Set(familyLocation, columnRegion, bigtable.Timestamp(l.Since).TruncateToMilliseconds(), l.appendBinary(nil))
	return m
}

// Copy writes a location of a user over what the row says, or deletes the row for the zero value.
func (s Locations) Copy(ctx context.Context, app, user string, to Location) error {
	key, err := s.locationKey(app, user)
	if err == nil {
		err = s.copyLocation(ctx, app, key, to)
	}
	return err
}

// Uncopy deletes the row of a key.
func (s Locations) Uncopy(ctx context.Context, app, key string) error {
	return s.copyLocation(ctx, app, key, Location{})
}

func (s *Store) copyLocation(ctx context.Context, app, key string, to Location) error {
	if err := s.tables.of(app, allUsers).locations.Apply(ctx, key, to.write()); err != nil {
		return fmt.Errorf("copy a location of app %s: %w", app, err)
	}
	return nil
}

// Change replaces the location of a user if it is still from; the zero value is that there is none. It returns false if
// the row says something else, or if the first answer was lost; then it may have been changed.
func (s Locations) Change(ctx context.Context, app, user string, from, to Location) (bool, error) {
	key, err := s.locationKey(app, user)
	if err != nil {
		return false, err
	}
	return s.changeLocation(ctx, app, key, from, to)
}

// Remove is Change to no location, by the key of the row.
func (s Locations) Remove(ctx context.Context, app, key string, from Location) (bool, error) {
	return s.changeLocation(ctx, app, key, from, Location{})
}

// Each calls fn with each location of an app, and the key of its row.
func (s Locations) Each(ctx context.Context, app string, fn func(key string, l Location) error) error {
	var failed error
	err := s.tables.of(app, allUsers).locations.ReadRows(ctx, bigtable.PrefixRange(app+","), func(row bigtable.Row) bool {
		for _, item := range row[familyLocation] {
			var l Location
			if l, failed = parseLocation(item.Value); failed == nil {
				failed = fn(row.Key(), l)
			}
		}
		return failed == nil
	}, newestCells)
	if err = errors.Join(err, failed); err != nil {
		return fmt.Errorf("read the locations of app %s: %w", app, err)
	}
	return nil
}

func (s *Store) changeLocation(ctx context.Context, app, key string, from, to Location) (bool, error) {
	cell := []bigtable.Filter{bigtable.ColumnFilter(columnRegion), bigtable.LatestNFilter(1)}
	change := bigtable.NewCondMutation(bigtable.ChainFilters(cell...), nil, to.write())
	if from != (Location{}) {
		now := from.appendBinary(nil)
		cell = append(cell, bigtable.ValueRangeFilter(now, append(now[:len(now):len(now)], 0)))
		change = bigtable.NewCondMutation(bigtable.ChainFilters(cell...), to.write(), nil)
	}
	var matched bool
	err := retryAtomic(ctx, func() error {
		return s.tables.of(app, allUsers).locations.Apply(ctx, key, change, bigtable.GetCondMutationResult(&matched))
	})
	if err != nil {
		return false, fmt.Errorf("change a location of app %s: %w", app, err)
	}
	return matched == (from != (Location{})), nil
}
