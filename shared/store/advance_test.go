package store_test

import (
	"context"
	"testing"

	"github.com/affinityengine/affinity/shared/local/storetest"
)

func TestAdvanceTickets(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), storetest.New(t)
	const step = 1_000_000_000
	for _, id := range []string{"shop", "shop2"} {
		for _, user := range []string{"ann", "bob"} {
			if _, err := s.Users.TakeTicket(ctx, id, user); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n, err := s.Users.AdvanceTickets(ctx, "shop", step); n != 2 || err != nil {
		t.Fatalf("raised %d, %v; want 2", n, err)
	}
	for id, want := range map[string]int64{"shop": step + 2, "shop2": 2} {
		for _, user := range []string{"ann", "bob"} {
			if row, err := s.Users.TakeTicket(ctx, id, user); row.Ticket != want || err != nil {
				t.Errorf("%s of %s draws %d, %v; want %d", user, id, row.Ticket, err, want)
			}
		}
	}
	if n, err := s.Users.AdvanceTickets(ctx, "none", step); n != 0 || err != nil {
		t.Errorf("an app without users: %d, %v", n, err)
	}
}
