package store_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/affinityengine/affinity/shared/store"
	"github.com/affinityengine/affinity/shared/store/storetest"
)

func TestScanUsers(t *testing.T) {
	s, ctx := storetest.New(t), context.Background()
	users := []string{"a", "b", "b+", "b-", "b0", "c"}
	for _, u := range users {
		row := ticket(t, s, u)
		write(t, s, store.ProfileWrite{User: u, Row: row, Value: []byte("profile of " + u), Summary: []byte("summary"), Version: 4})
	}
	slices.SortFunc(users, store.UserOrder)
	if want := []string{"a", "b+", "b", "b-", "b0", "c"}; !slices.Equal(users, want) {
		t.Fatalf("order %q, want %q", users, want)
	}
	for _, parts := range []store.UserParts{store.UserState, store.UserSummary, store.UserProfile} {
		var got []string
		err := s.ScanUsers(ctx, app, "", "", 0, parts, func(user string, row store.User) error {
			got = append(got, user)
			profile, summary := "", ""
			if parts == store.UserProfile {
				profile = "profile of " + user
			}
			if parts == store.UserSummary {
				summary = "summary"
			}
			if row.Ticket != 1 || row.Version != 4 || string(row.Profile) != profile || string(row.Summary) != summary || row.HasProfile != (parts != store.UserState) {
				t.Errorf("parts %d of %s: %+v", parts, user, row)
			}
			return nil
		})
		if err != nil || !slices.Equal(got, users) {
			t.Errorf("parts %d: %q, %v; want %q", parts, got, err, users)
		}
	}
	for _, c := range []struct {
		from, to string
		limit    int
		want     []string
	}{
		{"b", "", 0, users[2:]},
		{"b+", "b-", 0, users[1:3]},
		{"", "b", 0, users[:2]},
		{"", "", 3, users[:3]},
		{"bb", "c", 1, nil},
	} {
		var got, keys []string
		err := s.ScanUsers(ctx, app, c.from, c.to, c.limit, store.UserState, func(user string, _ store.User) error {
			got = append(got, user)
			return nil
		})
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%+v: %q, %v", c, got, err)
		}
		err = s.ScanUserKeys(ctx, app, c.from, c.to, func(user string) error {
			keys = append(keys, user)
			return nil
		})
		if err != nil || c.limit == 0 && !slices.Equal(keys, c.want) {
			t.Errorf("%+v: keys %q, %v", c, keys, err)
		}
	}
}

func TestSampleUsers(t *testing.T) {
	s, ctx := storetest.New(t), context.Background()
	const users = 400
	for i := range users {
		ticket(t, s, fmt.Sprintf("u%03d", i))
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	seen := map[string]int{}
	for range 100 {
		sample, err := s.SampleUsers(ctx, app, 40, 1000, rnd)
		if err != nil || len(sample) != 40 {
			t.Fatalf("%d users, %v", len(sample), err)
		}
		slices.Sort(sample)
		if len(slices.Compact(sample)) != 40 {
			t.Fatal("a user is chosen twice")
		}
		for _, u := range sample {
			seen[u]++
		}
	}
	// 10 times each on average, with a deviation of 3.
	if len(seen) < users-5 {
		t.Errorf("only %d of %d users were ever chosen", len(seen), users)
	}
	for u, n := range seen {
		if n > 30 {
			t.Errorf("%s was chosen %d times of 100", u, n)
		}
	}
	for n, most := range map[int]int{1000: 1000, 5: 50} {
		sample, err := s.SampleUsers(ctx, app, n, most, rnd)
		if err != nil || len(sample) != min(n, users) {
			t.Errorf("%d of at most %d: %d users, %v", n, most, len(sample), err)
		}
	}
	if sample, err := s.SampleUsers(ctx, app+"2", 5, 50, rnd); err != nil || len(sample) != 0 {
		t.Errorf("an app without users: %q, %v", sample, err)
	}
}
