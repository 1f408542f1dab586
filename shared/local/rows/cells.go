package rows

import (
	"cmp"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
)

// cell is one version of a column.
type cell struct {
	family    *family // nil where all cells are of one
	qualifier string
	ts        int64 // microseconds
	value     []byte
	labels    []string
}

// compare orders cells of a row as Bigtable answers them: by family, column and
// age, the newest first.
func compare(a, b cell) int {
	if a.family != b.family {
		return cmp.Compare(a.family.ID, b.family.ID)
	}
	return cmp.Or(strings.Compare(a.qualifier, b.qualifier), cmp.Compare(b.ts, a.ts))
}

// sameColumn reports whether two cells of a row are versions of one column.
func sameColumn(a, b cell) bool { return a.family == b.family && a.qualifier == b.qualifier }

// columns calls f with the cells of each column, the newest first, and returns what f
// leaves of them.
func columns(cells []cell, f func([]cell) []cell) []cell {
	var left []cell
	for len(cells) > 0 {
		n := slices.IndexFunc(cells, func(c cell) bool { return !sameColumn(c, cells[0]) })
		if n < 0 {
			n = len(cells)
		}
		left = append(left, f(cells[:n:n])...)
		cells = cells[n:]
	}
	return left
}

// set adds a cell to sorted cells, or replaces the one of its time.
func set(cells []cell, c cell) []cell {
	i, found := slices.BinarySearchFunc(cells, c, compare)
	if found {
		cells[i] = c
		return cells
	}
	return slices.Insert(cells, i, c)
}

// encode returns the cells of one family: for each column the length of its name, the
// name and the number of its cells, and for each cell its time, the length of its value
// and the value. Numbers are varints.
func encode(cells []cell) []byte {
	size := 0
	for _, c := range cells {
		size += len(c.qualifier) + len(c.value) + 20
	}
	b := make([]byte, 0, size)
	columns(cells, func(column []cell) []cell {
		b = binary.AppendUvarint(b, uint64(len(column[0].qualifier)))
		b = append(b, column[0].qualifier...)
		b = binary.AppendUvarint(b, uint64(len(column)))
		for _, c := range column {
			b = binary.AppendUvarint(b, uint64(c.ts))
			b = binary.AppendUvarint(b, uint64(len(c.value)))
			b = append(b, c.value...)
		}
		return nil
	})
	return b
}

var errDamaged = errors.New("the data folder holds a damaged row")

// decode adds the cells of a family to cells. They share the memory of b.
func decode(cells []cell, f *family, b []byte) ([]cell, error) {
	bad := false
	number := func() uint64 {
		n, size := binary.Uvarint(b)
		if size <= 0 {
			bad, b = true, nil
			return 0
		}
		b = b[size:]
		return n
	}
	text := func() []byte {
		n := number()
		if n > uint64(len(b)) {
			bad, b = true, nil
			return nil
		}
		t := b[:n:n]
		b = b[n:]
		return t
	}
	for len(b) > 0 && !bad {
		qualifier := string(text())
		for n := number(); n > 0 && !bad; n-- {
			ts := number()
			cells = append(cells, cell{family: f, qualifier: qualifier, ts: int64(ts), value: text()})
		}
	}
	if bad {
		return nil, errDamaged
	}
	return cells, nil
}

// Join joins encoded cells of one family, the oldest write first: of two cells of one
// column and time it keeps the later one. It is the disk.Merge of a folder with tables.
func Join(parts [][]byte) ([]byte, error) {
	var cells []cell
	for _, part := range parts {
		added, err := decode(nil, nil, part)
		if err != nil {
			return nil, err
		}
		for _, c := range added {
			cells = set(cells, c)
		}
	}
	return encode(cells), nil
}
