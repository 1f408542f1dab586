package rowstream

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"google.golang.org/grpc/mem"
)

// maxReserve bounds the memory that is reserved for a value of which the first part
// has arrived: the size is what the server says.
const maxReserve = 1 << 20

// decoder makes rows of chunks. It lives as long as a read, which may take several
// attempts.
type decoder struct {
	to      Receiver
	stopped error  // of the receiver
	last    []byte // key of the last row, or of the last one that was scanned
	rows    int64  // passed on
	limit   int64  // of rows, 0 if there is none
	record  *call  // of a Point that has none
	failed  *failedStream

	state state
	row   Row
	// The cell that a chunk continues or, if the chunk says nothing else, the cell
	// before.
	family, qualifier []byte
	time              int64
	value             []byte // the parts of a value that have arrived
	bytes             int    // of the row
	joined            []byte // reused memory for messages in several buffers
	kept              int    // number of cells that do not alias a message
}

type state int

const (
	betweenRows state = iota
	inRow
	inCell
)

// begin starts an attempt. The rest of a row that did not arrive is lost: the attempt
// reads the row again.
func (d *decoder) begin() { d.drop() }

// drop forgets the current row.
func (d *decoder) drop() {
	d.state, d.row.Key, d.row.Cells = betweenRows, nil, d.row.Cells[:0]
	d.family, d.qualifier, d.time, d.value, d.bytes, d.kept = nil, nil, 0, nil, 0, 0
}

// end ends an answer. It returns io.EOF, or an error if a row is not complete.
func (d *decoder) end() error {
	if d.state != betweenRows {
		return fmt.Errorf("the answer ends within row %q", d.row.Key)
	}
	return io.EOF
}

// read passes on the rows that a message completes, and frees the message.
func (d *decoder) read(m mem.BufferSlice) error {
	defer m.Free()
	if len(m) == 1 {
		return lend(m[0].ReadOnlyData(), d.message)
	}
	d.joined = d.joined[:0]
	for _, b := range m {
		d.joined = append(d.joined, b.ReadOnlyData()...)
	}
	return lend(d.joined, d.message)
}

// message does so for the bytes of a message.
func (d *decoder) message(b []byte) error {
	var scanned []byte
	for len(b) > 0 {
		f, rest, err := next(b)
		if err != nil {
			return err
		}
		switch b = rest; f.tag {
		case tagChunk:
			c, err := parseChunk(f.bytes)
			if err != nil {
				return err
			}
			if err := d.chunk(&c); err != nil {
				return err
			}
		case tagLastScanned:
			scanned = f.bytes
		}
	}
	if d.state != betweenRows {
		d.keep()
		if len(scanned) > 0 {
			return fmt.Errorf("row %q is scanned before the end of row %q", scanned, d.row.Key)
		}
	}
	if bytes.Compare(scanned, d.last) > 0 {
		d.last = append(d.last[:0], scanned...)
	}
	return nil
}

// keep copies what has arrived of a row, because the row goes on in another message.
func (d *decoder) keep() {
	d.row.Key, d.family, d.qualifier = bytes.Clone(d.row.Key), bytes.Clone(d.family), bytes.Clone(d.qualifier)
	for i := d.kept; i < len(d.row.Cells); i++ {
		c := &d.row.Cells[i]
		c.Family, c.Qualifier, c.Value = bytes.Clone(c.Family), bytes.Clone(c.Qualifier), bytes.Clone(c.Value)
	}
	d.kept = len(d.row.Cells)
}

// chunk takes the next chunk of a cell.
func (d *decoder) chunk(c *chunk) error {
	if err := d.check(c); err != nil {
		return err
	}
	if c.reset {
		d.drop()
		return nil
	}
	d.bytes += len(c.key) + len(c.qualifier) + len(c.value)
	if d.state == betweenRows {
		d.row.Key = c.key
	}
	if d.state != inCell {
		if c.hasFamily {
			d.family = c.family
		}
		if c.hasQualifier {
			d.qualifier = c.qualifier
		}
		d.time = c.time
	}
	if c.size > 0 {
		if d.state != inCell {
			d.value = make([]byte, 0, min(int(c.size), maxReserve))
		}
		d.state, d.value = inCell, append(d.value, c.value...)
		return nil
	}
	value := c.value
	if d.state == inCell {
		value, d.value = append(d.value, c.value...), nil
	}
	d.row.Cells = append(d.row.Cells, Cell{Family: d.family, Qualifier: d.qualifier, Time: d.time, Value: value})
	d.state = inRow
	if !c.commit {
		return nil
	}
	return d.commit()
}

// commit passes the row on.
func (d *decoder) commit() error {
	d.last = append(d.last[:0], d.row.Key...)
	d.rows++
	if d.to.Received != nil {
		d.to.Received(d.row.Key, d.bytes)
	}
	d.stopped = d.to.Row(&d.row)
	d.drop()
	return d.stopped
}

var (
	errReset  = errors.New("a row is reset by a chunk that says more, or when there is none")
	errCommit = errors.New("a row ends before its last value")
	errCell   = errors.New("a cell begins before the last value has ended")
	errColumn = errors.New("a cell begins with a family and without a column")
	errRow    = errors.New("a row begins without a key, a family or a column")
)

// check returns an error for a chunk that must not follow the chunks before it.
func (d *decoder) check(c *chunk) error {
	named := len(c.key) > 0 || c.hasFamily || c.hasQualifier || c.time != 0
	switch {
	case c.reset && (d.state == betweenRows || named || len(c.value) > 0 || c.size != 0 || c.labels):
		return errReset
	case c.reset:
		return nil
	case c.commit && c.size > 0:
		return errCommit
	case d.state == inCell && named:
		return errCell
	case d.state == inRow && len(c.key) > 0 && !bytes.Equal(c.key, d.row.Key):
		return fmt.Errorf("row %q begins before the end of row %q", c.key, d.row.Key)
	case d.state == inRow && c.hasFamily && !c.hasQualifier:
		return errColumn
	case d.state == betweenRows && (len(c.key) == 0 || !c.hasFamily || !c.hasQualifier):
		return errRow
	case d.state == betweenRows && bytes.Compare(c.key, d.last) <= 0:
		return fmt.Errorf("row %q follows row %q", c.key, d.last)
	}
	return nil
}
