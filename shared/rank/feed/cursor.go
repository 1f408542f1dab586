package feed

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"math/bits"
	"time"

	"github.com/affinityengine/affinity/shared/fault"
	"github.com/affinityengine/affinity/shared/wire"
)

// Order is one of the two orders of a feed.
type Order string

// The orders.
const (
	Suggested Order = "suggested" // by the scores of package ranking
	Latest    Order = "latest"    // by date, the newest first, then by objectID
)

const (
	// CursorLife is how long a walk may take.
	CursorLife = 24 * time.Hour
	// MaxCursor is the length of the longest cursor that is decoded. One of a feed with
	// MaxCandidates takes up to 4 kB.
	MaxCursor = 16 << 10
	// MaxCandidates is how many of the newest records of its index a feed orders at most.
	MaxCandidates = 5_000

	// aheadOfClock is how much later than its own clock an instance accepts the start of
	// a walk: clocks differ.
	aheadOfClock = 10 * time.Second
)

// Walk is what a cursor holds: where the next page of a walk through a feed begins.
type Walk struct {
	Order Order
	// Feed is FeedHash of the app and the feed.
	Feed uint32
	// Version is that of the feed's definition.
	Version int64
	// Start is the instant (ms) as of which the candidates of the first page were
	// listed. Records that are dated later are not in the walk.
	Start int64

	// Shown are the records that the earlier pages of a suggested walk have shown.
	Shown *Shown

	// Date (ms) and ObjectID are those of the last record that a page of a latest walk
	// has shown or left out.
	Date     int64
	ObjectID string
	// Passed are the keys of records that lie before ObjectID and that no page has shown
	// yet, because a read of them was slow.
	Passed []uint64
}

// KeyOf returns the key by which a cursor names an object: the first 8 bytes of the
// SHA-256 of its objectID, the same in every process. Two objects of a catalog of a
// million have one key with a probability of 3e-8.
func KeyOf(objectID string) uint64 {
	sum := sha256.Sum256([]byte(objectID))
	return binary.BigEndian.Uint64(sum[:])
}

// HashOf returns the number by which a cursor names its feed.
func HashOf(app, name string) uint32 {
	sum := sha256.Sum256([]byte(app + "\x00" + name))
	return binary.BigEndian.Uint32(sum[:])
}

// The stored form of a cursor, before base64url without padding:
//
//	format byte 1 | kind byte | feed 4 bytes | version, start uvarint
//	suggested: bits byte, rice byte, count uvarint, Rice codes, to a whole byte
//	latest:    date varint, objectID with its length
//	keys (exceptions, passed): count uvarint, 8 bytes each
//	CRC-32C of all this, 4 bytes
const cursorFormat = 1

const (
	kindLatest = iota
	kindShown
	kindRemaining
)

// errDamaged refuses a text that no instance made.
func errDamaged() error {
	return fault.New(fault.Invalid, "cursor is damaged: send it as the last page gave it, or none to begin again")
}

// Cursor returns the cursor of the next page.
func (w *Walk) Cursor() string {
	kind := byte(kindLatest)
	if w.Order == Suggested {
		kind = kindShown
		if w.Shown.remaining {
			kind = kindRemaining
		}
	}
	b := binary.BigEndian.AppendUint32([]byte{cursorFormat, kind}, w.Feed)
	b = binary.AppendUvarint(b, uint64(w.Version))
	b = binary.AppendUvarint(b, uint64(w.Start))
	if w.Order == Suggested {
		b = appendKeys(w.Shown.append(b), w.Shown.exceptions)
	} else {
		b = binary.AppendVarint(b, w.Date)
		b = binary.AppendUvarint(b, uint64(len(w.ObjectID)))
		b = appendKeys(append(b, w.ObjectID...), w.Passed)
	}
	return base64.RawURLEncoding.EncodeToString(wire.Seal(b, 0))
}

// Want is what a cursor must belong to.
type Want struct {
	Order   Order
	Feed    uint32
	Version int64
	Now     time.Time
}

// ParseCursor reads a cursor. The error is a *fault.Error if the cursor is damaged, has
// expired, or belongs to something else.
func ParseCursor(cursor string, want Want) (*Walk, error) {
	if len(cursor) > MaxCursor {
		return nil, errDamaged()
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil {
		return nil, errDamaged()
	}
	content, err := wire.Unseal(b, cursorFormat)
	r := reader{content}
	kind, feed := r.Byte(), r.Take(4)
	if err != nil || r.Damaged || kind > kindRemaining {
		return nil, errDamaged()
	}
	w := &Walk{Order: Latest, Feed: binary.BigEndian.Uint32(feed), Version: int64(r.uvarint()), Start: int64(r.uvarint())}
	if kind == kindLatest {
		w.Date = r.Signed()
		w.ObjectID = string(r.Take(int(min(r.uvarint(), MaxCursor))))
		w.Passed = r.keys()
	} else {
		w.Order = Suggested
		w.Shown = r.shown(kind == kindRemaining, uint64(w.Start))
	}
	if r.End() != nil {
		return nil, errDamaged()
	}
	return w, w.check(want)
}

// check refuses a cursor that belongs to something else, or has expired.
func (w *Walk) check(want Want) error {
	age := want.Now.UnixMilli() - w.Start
	switch {
	case w.Feed != want.Feed:
		return fault.New(fault.Invalid, "cursor belongs to another feed")
	case w.Order != want.Order:
		return fault.New(fault.Invalid, "cursor belongs to the order %s", w.Order)
	case w.Version != want.Version:
		return fault.New(fault.Invalid, "the definition of the feed has changed since the cursor was made: begin "+
			"again without a cursor")
	case age > CursorLife.Milliseconds():
		return fault.New(fault.Invalid, "cursor has expired after %d hours: begin again without a cursor",
			int(CursorLife.Hours()))
	case age < -aheadOfClock.Milliseconds():
		return errDamaged()
	}
	return nil
}

func appendKeys(b []byte, keys []uint64) []byte {
	b = binary.AppendUvarint(b, uint64(len(keys)))
	for _, k := range keys {
		b = binary.BigEndian.AppendUint64(b, k)
	}
	return b
}

// reader reads the parts of a cursor.
type reader struct{ wire.Reader }

// uvarint reads a number in the form that Cursor gives it: others have longer ones.
func (r *reader) uvarint() uint64 {
	at, v := r.Next, r.Unsigned()
	if r.Next-at > max(1, (bits.Len64(v)+6)/7) || v > 1<<62 {
		r.Damaged = true
		return 0
	}
	return v
}

func (r *reader) keys() []uint64 {
	n := r.uvarint()
	all := r.Take(8 * int(min(n, uint64(len(r.B)))))
	var keys []uint64
	for ; len(all) > 0; all = all[8:] {
		keys = append(keys, binary.BigEndian.Uint64(all))
	}
	return keys
}
