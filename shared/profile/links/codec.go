package links

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"github.com/affinityengine/affinity/shared/wire"
)

// format is the first byte of a cell.
const format = 2

// Append appends the stored form: format, role, number, entries, list, who has opted the token out,
// checksum. Times are varints of milliseconds; an end that is Open is 0.
func (c *Cell) Append(dst []byte) []byte {
	start := len(dst)
	dst = append(dst, format, byte(c.Role))
	dst = binary.AppendUvarint(dst, uint64(c.Number))
	dst = binary.AppendUvarint(dst, uint64(len(c.Entries)))
	for i := range c.Entries {
		dst = c.Entries[i].append(dst)
	}
	dst = binary.AppendUvarint(dst, uint64(len(c.List)))
	for _, l := range c.List {
		dst = wire.AppendText(dst, l.Token)
		dst = binary.AppendUvarint(binary.AppendUvarint(dst, uint64(l.At)), uint64(l.Shut))
	}
	return wire.Seal(wire.AppendText(dst, c.OutBy), start)
}

// Flags of an entry.
const (
	flagWeak byte = 1 << iota
	flagLimited
)

func (e *Entry) append(dst []byte) []byte {
	var flags byte
	if e.Weak {
		flags |= flagWeak
	}
	if e.Limited {
		flags |= flagLimited
	}
	dst = append(wire.AppendText(dst, e.Known), byte(e.State), byte(e.Source), flags)
	for _, n := range [...]int64{e.Since, end(e.To), e.From, e.At, e.Until.DeletedUntil, e.Until.ReceivedUntil, end(e.Was)} {
		dst = binary.AppendUvarint(dst, uint64(n))
	}
	key, err := hex.DecodeString(e.Key)
	if err != nil { // no key has such an ID
		key = nil
	}
	return binary.LittleEndian.AppendUint64(wire.AppendText(wire.AppendText(dst, e.By), string(key)), e.Done)
}

func end(to int64) int64 {
	if to == Open {
		return 0
	}
	return to
}

const (
	minEntry  = 21 // bytes of the stored form, at least
	minListed = 3
)

// Parse parses the stored form. An empty value is the zero Cell. The error is wire.ErrNewer or
// wire.ErrDamaged.
func Parse(value []byte) (Cell, error) {
	if len(value) == 0 {
		return Cell{}, nil
	}
	r, err := wire.Unseal(value, format)
	if err != nil {
		return Cell{}, fmt.Errorf("links: %w", err)
	}
	c := Cell{Role: Role(r.Byte()), Number: r.Number()}
	if n := r.Size(minEntry); n > 0 {
		c.Entries = make([]Entry, n)
	}
	for i := range c.Entries {
		c.Entries[i].read(&r)
	}
	if n := r.Size(minListed); n > 0 {
		c.List = make([]Listed, n)
	}
	for i := range c.List {
		c.List[i] = Listed{Token: string(r.Text()), At: r.Number(), Shut: r.Number()}
	}
	c.OutBy = string(r.Text())
	if err := r.End(); err != nil {
		return Cell{}, fmt.Errorf("links: %w", err)
	}
	return c, nil
}

func (e *Entry) read(r *wire.Reader) {
	e.Known, e.State, e.Source = string(r.Text()), State(r.Byte()), Source(r.Byte())
	flags := r.Byte()
	e.Weak, e.Limited = flags&flagWeak != 0, flags&flagLimited != 0
	for _, n := range [...]*int64{&e.Since, &e.To, &e.From, &e.At, &e.Until.DeletedUntil, &e.Until.ReceivedUntil, &e.Was} {
		*n = r.Number()
	}
	for _, to := range [...]*int64{&e.To, &e.Was} {
		if *to == 0 {
			*to = Open
		}
	}
	e.By = string(r.Text())
	e.Key = hex.EncodeToString(r.Text())
	if done := r.Take(8); done != nil {
		e.Done = binary.LittleEndian.Uint64(done)
	}
}
