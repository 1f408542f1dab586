package disk

import "bytes"

// Space is the first byte of a key. It keeps the owners of data apart.
type Space byte

// AppendPart adds a part to a key so that keys sort as their parts do, and none is a
// prefix of another: a zero byte gets a mark behind it, and so does the end.
func AppendPart(key, part []byte) []byte {
	for {
		zero := bytes.IndexByte(part, 0)
		if zero < 0 {
			return append(append(key, part...), 0, 1)
		}
		key = append(append(key, part[:zero]...), 0, 0xff)
		part = part[zero+1:]
	}
}

// CutPart returns the part that a key begins with, and what follows it. ok is false
// if the key begins with none.
func CutPart(key []byte) (part, rest []byte, ok bool) {
	for {
		zero := bytes.IndexByte(key, 0)
		if zero < 0 || zero+1 == len(key) {
			return nil, nil, false
		}
		part = append(part, key[:zero]...)
		mark := key[zero+1]
		key = key[zero+2:]
		if mark == 1 {
			return part, key, true
		}
		part = append(part, 0)
	}
}

// After returns the first key behind all that begin with a prefix. The prefix must
// not consist of bytes 0xff alone.
func After(prefix []byte) []byte {
	next := bytes.Clone(prefix)
	for i := len(next) - 1; ; i-- {
		if next[i]++; next[i] != 0 {
			return next[:i+1]
		}
	}
}
