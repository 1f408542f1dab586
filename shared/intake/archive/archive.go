// Package archive reads the archive of accepted events and restores events from it.
//
// The archive is files of the messages that ingest published (functions/docs/reference/messages.md describes
// them), one after the other, as a Cloud Storage subscription of Pub/Sub writes them in
// text, and the local stack too. A Reader reads the messages of a file. Lines turns a
// message into lines of an export, the one form in which events are imported with the
// id, the time of receipt and the filters that they had. A Restorer writes such lines to
// the log.
//
// An event may be in several messages, and a file may be read several times. All of them
// name one place in the log, where the write stays that knows most of the event's
// objects. So restoring changes nothing in a log that has the events. Of several
// re-enrichments of an event, who reads the files takes the last (Rank). Of an event that
// was sent several times, the log keeps the receipt of any of them.
package archive

import "cmp"

// Rank orders the writes of one event in an archive.
type Rank struct {
	// UnknownObjects is of how many of its objects the filters are not known. Of an
	// unresolved event, whose filters nobody knows, all are.
	UnknownObjects int
	// At is when the filters were read (ms): when a reenriched message was made, or
	// otherwise the receipt of the event.
	At int64
}

// Better reports whether a write ranks above another one: it knows more objects, or as
// many and is later.
func (r Rank) Better(than Rank) bool {
	return cmp.Or(cmp.Compare(than.UnknownObjects, r.UnknownObjects), cmp.Compare(r.At, than.At)) > 0
}
