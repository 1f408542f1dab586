package store

import (
	"context"

	"cloud.google.com/go/bigtable"
)

// The cell u:i of a user row says how the user's token is linked to others; package links has its
// form. Only apps whose tokens are linked read it with a ticket.

var nextLinked, nextLinkedMark = ticketOf(0, columnLinks), ticketOf(1, columnLinks)

// TakeLinked is TakeTicket, and reads the links of the token in the same instant.
func (s Users) TakeLinked(ctx context.Context, app, user string) (User, error) {
	return s.takeTicket(ctx, app, user, nextLinked)
}

// TakeLinkedMark is TakeMark, and reads the links of the token in the same instant.
func (s Users) TakeLinkedMark(ctx context.Context, app, user string) (User, error) {
	return s.takeTicket(ctx, app, user, nextLinkedMark)
}

// SwapLinks replaces the links of a token if they are still old; nil: if it has none. It returns
// false if they are not, or if the first answer was lost. In the second case they may have been
// replaced.
func (s Users) SwapLinks(ctx context.Context, app, user string, old, next []byte) (bool, error) {
	return s.swapLinks(ctx, app, user, next, differs(columnLinks, old))
}

// SwapLinksAt is SwapLinks on condition that ticket is the newest one.
func (s Users) SwapLinksAt(ctx context.Context, app, user string, ticket int64, old, next []byte) (bool, error) {
	return s.swapLinks(ctx, app, user, next, append(differs(columnLinks, old), latest(columnCounter, nil, bigEndian(ticket)),
		latest(columnCounter, bigEndian(ticket+1), nil)))
}

func (s *Store) swapLinks(ctx context.Context, app, user string, next []byte, unless []bigtable.Filter) (bool, error) {
	changed := unless[0]
	if len(unless) > 1 {
		changed = bigtable.InterleaveFilters(unless...)
	}
	return s.swap(ctx, app, user, bigtable.NewCondMutation(changed, nil, replace(columnLinks, next)), true)
}
