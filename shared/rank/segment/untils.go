package segment

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/affinityengine/affinity/shared/wire"
)

const (
	minute = 60 * 1000 // ms
	hour   = 60 * minute
)

// UntilColumn returns the column of a row of kind Untils that holds the profiles that
// expire in the hour of an instant (ms). Columns sort by time.
func UntilColumn(at int64) string {
	hours := min(max(at/hour, 0), math.MaxUint32)
	return string(binary.BigEndian.AppendUint32(nil, uint32(hours)))
}

// expiry is a user of a part whose profile expires at a time (ms).
type expiry struct {
	until   int64
	ordinal uint16
}

// untilCells returns the cells of expiries, which it sorts.
func untilCells(expiries []expiry) []Cell {
	slices.SortFunc(expiries, func(a, b expiry) int {
		if a, b := a.until/hour, b.until/hour; a != b {
			return int(min(max(a-b, -1), 1))
		}
		return int(a.ordinal) - int(b.ordinal)
	})
	var cells []Cell
	var ordinals []uint16
	for len(expiries) > 0 {
		column, n := UntilColumn(expiries[0].until), 0
		ordinals = ordinals[:0]
		for n < len(expiries) && UntilColumn(expiries[n].until) == column {
			ordinals = append(ordinals, expiries[n].ordinal)
			n++
		}
		b := binary.AppendUvarint([]byte{format}, uint64(n))
		b = appendOrdinals(b, ordinals)
		for _, e := range expiries[:n] {
			b = append(b, byte(e.until%hour/minute))
		}
		cells = append(cells, Cell{column, wire.Seal(b, 0)})
		expiries = expiries[n:]
	}
	return cells
}

// GoneCell returns the cell of a row of kind Untils which says that a user has expired for
// ever: the token has been blanked, so that nobody can find the user's place any more. It
// has a column of its own, of an hour between 1970 and 1977.
func GoneCell(ordinal uint16) Cell {
	b := appendOrdinals(binary.AppendUvarint([]byte{format}, 1), []uint16{ordinal})
	return Cell{UntilColumn((1 + int64(ordinal)) * hour), wire.Seal(append(b, 0), 0)}
}

// Expired passes the ordinals in cells of a row of kind Untils whose profiles expire up to
// an instant (ms), rounded up to a minute.
func Expired(cells []Cell, at int64, fn func(ordinal uint16)) error {
	for _, cell := range cells {
		r, err := unseal(cell.Value)
		if err != nil {
			return fmt.Errorf("read expiries: %w", err)
		}
		n := r.Size(2)
		ordinals := r.ordinals(make([]uint16, 0, n), n)
		minutes := r.Take(n)
		if err := r.End(); err != nil || len(cell.Column) != 4 {
			return fmt.Errorf("read expiries: %w", wire.ErrDamaged)
		}
		begin := int64(binary.BigEndian.Uint32([]byte(cell.Column))) * hour
		for i, o := range ordinals {
			if begin+int64(minutes[i])*minute <= at {
				fn(o)
			}
		}
	}
	return nil
}
