package rows

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// staged is what the mutations of a row have done so far.
type staged struct {
	w    *writer
	row  []byte
	full map[*family][]cell // all cells of families that a mutation has looked at
	new  map[*family][]cell // cells that are added to others
}

// apply makes all mutations of a row, or none if it returns an error.
func (w *writer) apply(key []byte, mutations []*btpb.Mutation) error {
	if len(key) == 0 {
		return invalid("Row keys must be non-empty")
	}
	s := &staged{w, w.table.row(key), map[*family][]cell{}, map[*family][]cell{}}
	for _, m := range mutations {
		if err := s.mutate(m); err != nil {
			return err
		}
	}
	for f, cells := range s.new {
		if err := w.add(f, s.row, cells); err != nil {
			return err
		}
	}
	for f, cells := range s.full {
		w.keep(f, s.row, cells)
	}
	return nil
}

func (s *staged) family(name string) (*family, error) {
	f := s.w.table.family(name)
	if f == nil {
		return nil, fmt.Errorf("unknown family %q", name)
	}
	return f, nil
}

func (s *staged) mutate(m *btpb.Mutation) error {
	switch change := m.GetMutation().(type) {
	case *btpb.Mutation_SetCell_:
		return s.set(change.SetCell, m.GetTimestampOrigin())
	case *btpb.Mutation_DeleteFromColumn_:
		return s.deleteColumn(change.DeleteFromColumn)
	case *btpb.Mutation_DeleteFromFamily_:
		f, err := s.family(change.DeleteFromFamily.GetFamilyName())
		if err != nil {
			return err
		}
		s.clear(f)
	case *btpb.Mutation_DeleteFromRow_:
		for _, f := range s.w.table.Families {
			s.clear(f)
		}
	default:
		return status.Errorf(codes.Unimplemented, "the local Bigtable has no mutation of type %T", change)
	}
	return nil
}

func (s *staged) set(change *btpb.Mutation_SetCell, origin btpb.Mutation_TimestampOrigin) error {
	f, err := s.family(change.GetFamilyName())
	if err != nil {
		return err
	}
	ts, err := writeTime(change.GetTimestampMicros(), origin, s.w.now)
	if err != nil {
		return err
	}
	cells := s.new
	if _, ok := s.full[f]; ok {
		cells = s.full
	}
	all, some := cells[f]
	if !some {
		all = make([]cell, 0, rowCells)
	}
	cells[f] = set(all, cell{family: f, qualifier: string(change.GetColumnQualifier()), ts: ts,
		value: change.GetValue()})
	return nil
}

func (s *staged) deleteColumn(change *btpb.Mutation_DeleteFromColumn) error {
	f, err := s.family(change.GetFamilyName())
	if err != nil {
		return err
	}
	from, to, err := deletedTimes(change.GetTimeRange())
	if err != nil {
		return err
	}
	if _, ok := s.full[f]; !ok {
		old, err := s.w.load(f, s.row)
		if err != nil {
			return err
		}
		s.full[f] = slices.Clone(old)
		for _, c := range s.new[f] {
			s.full[f] = set(s.full[f], c)
		}
		delete(s.new, f)
	}
	qualifier := string(change.GetColumnQualifier())
	s.full[f] = slices.DeleteFunc(s.full[f], func(c cell) bool {
		return c.qualifier == qualifier && c.ts >= from && (to == 0 || c.ts < to)
	})
	return nil
}

func (s *staged) clear(f *family) {
	s.full[f] = nil
	delete(s.new, f)
}

// rowCells is how many cells of a family most changes set.
const rowCells = 4

// unit is the precision of times, in microseconds.
const unit = 1000

// writeTime returns the time of a written cell.
func writeTime(ts int64, origin btpb.Mutation_TimestampOrigin, now time.Time) (int64, error) {
	if ts == -1 { // the server's time
		return now.UnixMilli() * unit, nil
	}
	if origin == btpb.Mutation_CLIENT_AUTO_GENERATED {
		ts -= ts % unit
	}
	return ts, checkTime(ts)
}

func checkTime(ts int64) error {
	if ts < 0 || ts > math.MaxInt64-math.MaxInt64%unit {
		return invalid("invalid timestamp %d", ts)
	}
	if ts%unit != 0 {
		return invalid("Timestamp granularity mismatch: timestamp %d is not a multiple of %d microseconds, as "+
			"required by the table's MILLIS granularity", ts, unit)
	}
	return nil
}

// deletedTimes returns the range of times that a mutation deletes, [from, to); to is 0
// for no end.
func deletedTimes(r *btpb.TimestampRange) (from, to int64, err error) {
	from, to = r.GetStartTimestampMicros(), r.GetEndTimestampMicros()
	if err := errors.Join(checkTime(from), checkTime(to)); err != nil {
		return 0, 0, status.Error(codes.InvalidArgument, err.Error())
	}
	if from >= to && to != 0 {
		return 0, 0, invalid("inverted or invalid timestamp range [%d, %d]", from, to)
	}
	return from, to, nil
}
