package schema

import (
	"encoding/binary"
	"errors"

	"github.com/affinityengine/affinity/shared/event"
)

// Objects is the value of the cell m:o, which rows of both schemas have beside
// m:event: the kind of the event and the objects that it names. A reader of
// scores or of objects reads this cell instead of the original, which is ten
// times as large and needs a JSON decoder.
//
//	version byte 1; type, name, index; number of objects; their ids
//
// A text is its length in bytes, then the bytes. Lengths and numbers are
// uvarints. This is stored data: a new layout needs a new version byte.
type Objects struct {
	Type      event.Type
	Name      string
	Index     string   // of the objects; empty for an event by filters
	ObjectIDs []string // in the order of the event; empty for an event by filters
}

const objectsV1 = 1

var errObjects = errors.New("the objects of an event are damaged or of a form that this version does not read")

// ObjectsOf returns the kind of an event and its objects. The index of an event
// by filters says nothing about objects, so it is left out.
func ObjectsOf(e *event.Event) Objects {
	o := Objects{Type: e.Type, Name: e.Name}
	if len(e.ObjectIDs) > 0 {
		o.Index, o.ObjectIDs = e.Index, e.ObjectIDs
	}
	return o
}

// Append appends the value of the cell.
func (o Objects) Append(dst []byte) []byte {
	dst = append(dst, objectsV1)
	for _, text := range [...]string{string(o.Type), o.Name, o.Index} {
		dst = append(binary.AppendUvarint(dst, uint64(len(text))), text...)
	}
	dst = binary.AppendUvarint(dst, uint64(len(o.ObjectIDs)))
	for _, id := range o.ObjectIDs {
		dst = append(binary.AppendUvarint(dst, uint64(len(id))), id...)
	}
	return dst
}

// ParseObjects reads a value that Append made. The result does not share its
// memory. After an error the reader must take the objects from the original.
func ParseObjects(b []byte) (Objects, error) {
	if len(b) == 0 || b[0] != objectsV1 {
		return Objects{}, errObjects
	}
	all, rest, ok := string(b), b[1:], true
	next := func() string {
		text, after, whole := cutText(rest)
		if ok = ok && whole; !ok {
			return ""
		}
		rest = after
		end := len(all) - len(rest)
		return all[end-len(text) : end]
	}
	o := Objects{Type: event.Type(next()), Name: next(), Index: next()}
	n, w := binary.Uvarint(rest)
	if !ok || w <= 0 || n > uint64(len(rest)-w) { // an id takes a byte at least
		return Objects{}, errObjects
	}
	if rest = rest[w:]; n > 0 {
		o.ObjectIDs = make([]string, n)
	}
	for i := range o.ObjectIDs {
		o.ObjectIDs[i] = next()
	}
	if !ok || len(rest) > 0 {
		return Objects{}, errObjects
	}
	return o, nil
}
