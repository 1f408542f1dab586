package store

import (
	"context"

	"cloud.google.com/go/bigtable"
)

// The cell u:i of a user row says how the user's token is linked to others; package links has its
// form. Only apps whose tokens are linked read it with a ticket.

var (
	nextLinked, nextLinkedMark    = ticketOf(0, columnLinks), ticketOf(1, columnLinks)
	nextOwnedLinks, nextOwnedMark = ticketOf(0, columnOwner, columnLinks), ticketOf(1, columnOwner, columnLinks)
)

// TakeLinked is TakeTicket, and reads the links of the token in the same instant.
func (s Users) TakeLinked(ctx context.Context, app, user string) (User, error) {
	return s.takeTicket(ctx, app, user, nextLinked)
}

// TakeLinkedMark is TakeMark, and reads the links of the token in the same instant.
func (s Users) TakeLinkedMark(ctx context.Context, app, user string) (User, error) {
	return s.takeTicket(ctx, app, user, nextLinkedMark)
}

// TakeOwnedLinks is TakeOwned, and reads the links of the token in the same instant.
func (s Users) TakeOwnedLinks(ctx context.Context, app, user string) (User, error) {
	return s.takeTicket(ctx, app, user, nextOwnedLinks)
}

// TakeOwnedMark is TakeOwnedLinks with a mark.
func (s Users) TakeOwnedMark(ctx context.Context, app, user string) (User, error) {
	return s.takeTicket(ctx, app, user, nextOwnedMark)
}

// SwapLinks replaces the links of a token if they are still those of a row that the caller has read, and the row has
// the owner that it had then. So a row that counted still counts, and the next arrival of the user carries the new
// links. It returns false if one of them has changed, or if the first answer was lost. In the second case the links may
// have been replaced.
func (s Users) SwapLinks(ctx context.Context, app, user string, row User, next []byte) (bool, error) {
	return s.swapLinks(ctx, app, user, next, append(differs(columnLinks, row.Links), row.Owner.unchanged()...))
}

// SwapLinksAt is SwapLinks on condition that the ticket of the row is the newest one.
func (s Users) SwapLinksAt(ctx context.Context, app, user string, row User, next []byte) (bool, error) {
	return s.swapLinks(ctx, app, user, next, append(differs(columnLinks, row.Links),
		append(row.Owner.unchanged(), newest(row.Ticket)...)...))
}

// newest returns filters that pass the counter unless a ticket is the newest one.
func newest(ticket int64) []bigtable.Filter {
	before, after := bigEndian(ticket), bigEndian(ticket+1)
	return []bigtable.Filter{latest(columnCounter, nil, before), latest(columnCounter, after, nil)}
}

func (s *Store) swapLinks(ctx context.Context, app, user string, next []byte, unless []bigtable.Filter) (bool, error) {
	changed := unless[0]
	if len(unless) > 1 {
		changed = bigtable.InterleaveFilters(unless...)
	}
	return s.swap(ctx, app, user, bigtable.NewCondMutation(changed, nil, replace(columnLinks, next)), true)
}
