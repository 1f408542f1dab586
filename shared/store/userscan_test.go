package store_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/affinityengine/affinity/shared/store"
)

func testScanUsers(t *testing.T, s fixture) {
	ctx := context.Background()
	users := []string{"a", "b", "b+", "b-", "b0", "c"}
	for _, u := range users {
		row := ticket(t, s, u)
		write(t, s, store.ProfileWrite{User: u, Row: row, Value: []byte("profile of " + u), Summary: []byte("summary"), Version: 4})
	}
	slices.SortFunc(users, store.UserOrder)
	if want := []string{"a", "b+", "b", "b-", "b0", "c"}; !slices.Equal(users, want) {
		t.Fatalf("order %q, want %q", users, want)
	}
	for _, parts := range []store.UserParts{store.UserState, store.UserSummary, store.UserProfile, store.UserSession} {
		var got []string
		err := s.Users.ScanUsers(ctx, app, "", "", 0, parts, func(user string, row store.User) error {
			got = append(got, user)
			profile, summary := "", ""
			if parts >= store.UserProfile {
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
		err := s.Users.ScanUsers(ctx, app, c.from, c.to, c.limit, store.UserState, func(user string, _ store.User) error {
			got = append(got, user)
			return nil
		})
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%+v: %q, %v", c, got, err)
		}
		err = s.Users.ScanUserKeys(ctx, app, c.from, c.to, func(user string) error {
			keys = append(keys, user)
			return nil
		})
		if err != nil || c.limit == 0 && !slices.Equal(keys, c.want) {
			t.Errorf("%+v: keys %q, %v", c, keys, err)
		}
	}
}

func testSampleUsers(t *testing.T, s fixture) {
	ctx := context.Background()
	const users, n, rounds = 120, 24, 30
	var writes []store.ProfileWrite
	for i := range users {
		writes = append(writes, store.ProfileWrite{User: fmt.Sprintf("u%03d", i), Row: store.User{Ticket: 1}, Version: 1})
	}
	write(t, s, writes...)
	rnd := rand.New(rand.NewPCG(1, 2))
	seen := map[string]int{}
	for range rounds {
		got, err := s.Users.SampleUsers(ctx, app, n, 1000, rnd)
		sample := got.Users
		if err != nil || len(sample) != n || got.Read != users || !got.All {
			t.Fatalf("%d users of %d, all: %t, %v", len(sample), got.Read, got.All, err)
		}
		slices.Sort(sample)
		if len(slices.Compact(sample)) != n {
			t.Fatal("a user is chosen twice")
		}
		for _, u := range sample {
			seen[u]++
		}
	}
	// 6 times each on average, with a deviation of 2.2.
	if len(seen) < users-5 {
		t.Errorf("only %d of %d users were ever chosen", len(seen), users)
	}
	for u, times := range seen {
		if times > 24 {
			t.Errorf("%s was chosen %d times of %d", u, times, rounds)
		}
	}
	for _, c := range []struct{ n, most int }{{1000, 1000}, {5, 50}, {50, 50}, {50, 5}, {0, 5}, {5, 0}, {5, users}, {5, users - 1}} {
		got, err := s.Users.SampleUsers(ctx, app, c.n, c.most, rnd)
		sample := got.Users
		slices.Sort(sample)
		if got.Read != min(c.most, users) || got.All != (c.most >= users) {
			t.Errorf("at most %d: %d read, all: %t", c.most, got.Read, got.All)
		}
		if len(sample) > 0 && !got.All {
			var first int
			if _, err := fmt.Sscanf(got.First, "u%03d", &first); err != nil {
				t.Fatal(err)
			}
			if last := fmt.Sprintf("u%03d", (first+c.most-1)%users); got.Last != last {
				t.Errorf("%d users from %s to %s, want to %s", c.most, got.First, got.Last, last)
			}
		}
		if want := min(c.n, c.most, users); err != nil || len(slices.Compact(sample)) != want {
			t.Errorf("%d of at most %d: %q, %v; want %d users", c.n, c.most, sample, err, want)
		}
	}
	if sample, err := s.Users.SampleUsers(ctx, app+"2", 5, 50, rnd); err != nil || len(sample.Users) != 0 || !sample.All {
		t.Errorf("an app without users: %+v, %v", sample, err)
	}
}
