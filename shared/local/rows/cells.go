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
func sameColumn(a, b *cell) bool { return a.family == b.family && a.qualifier == b.qualifier }

// eachColumn calls f with the cells of each column, the newest first.
func eachColumn(cells []cell, f func([]cell)) {
	for len(cells) > 0 {
		n := 1
		for n < len(cells) && sameColumn(&cells[n], &cells[0]) {
			n++
		}
		f(cells[:n:n])
		cells = cells[n:]
	}
}

// columns returns what f leaves of each column: a part of what it is called with, the newest cell first. It may return
// cells itself.
func columns(cells []cell, f func([]cell) []cell) []cell {
	whole := 0 // so many cells at the beginning are left as they are
	var left []cell
	eachColumn(cells, func(column []cell) {
		kept := f(column)
		if left == nil && len(kept) == len(column) {
			whole += len(column)
			return
		}
		if left == nil {
			left = append(make([]cell, 0, len(cells)), cells[:whole]...)
		}
		left = append(left, kept...)
	})
	if left == nil {
		return cells
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
	eachColumn(cells, func(column []cell) {
		b = binary.AppendUvarint(b, uint64(len(column[0].qualifier)))
		b = append(b, column[0].qualifier...)
		b = binary.AppendUvarint(b, uint64(len(column)))
		for _, c := range column {
			b = binary.AppendUvarint(b, uint64(c.ts))
			b = binary.AppendUvarint(b, uint64(len(c.value)))
			b = append(b, c.value...)
		}
	})
	return b
}

var errDamaged = errors.New("the data folder holds a damaged row")

// count returns how many cells decode will find, as far as nothing is damaged.
func count(b []byte) (cells int) {
	skip := func(n uint64, size int) {
		if size <= 0 || n > uint64(len(b)-size) {
			n, size = 0, len(b)
		}
		b = b[size+int(n):]
	}
	for len(b) > 0 {
		skip(binary.Uvarint(b))
		n, size := binary.Uvarint(b)
		for skip(0, size); n > 0 && len(b) > 0; n-- {
			_, size := binary.Uvarint(b)
			skip(0, size)
			skip(binary.Uvarint(b))
			cells++
		}
	}
	return cells
}

// decode adds the cells of a family to cells. They share the memory of b.
func decode(cells []cell, f *family, b []byte) ([]cell, error) {
	cells = slices.Grow(cells, count(b))
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
